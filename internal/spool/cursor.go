package spool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/recordlog"
)

// The cursor file has two slots, at 0 and 512, written in turn. The sound one with the
// greater count is valid. Each is a small file of package recordlog. docs/FORMAT.md has the
// same table.
//
//	Slot of a spool's cursor: a file header with the kind 51, and a body of 80 bytes
//	  file header: the id is the count of writes, odd in the slot at 512; the first
//	  record is the oldest line that is not settled
//	       0     8  number after the last line that was appended
//	       8     8  number of the first line of the segment with the oldest line
//	      16    64  8 numbers, rising: the ends of the pieces that are being delivered; then 0
const (
	cursorName = "CURSOR"
	cursorSize = recordlog.HeaderSize + 16 + 8*MaxInFlight
	cursorSlot = recordlog.SlotSize
)

// cursor is the content of a slot.
type cursor struct {
	count uint64 // of writes
	line  uint64 // oldest that is not settled
	next  uint64 // after the last line that was appended
	file  uint64 // first line of the segment with line
	ends  [MaxInFlight]uint64
}

func (c *cursor) append(dst []byte) []byte {
	body := make([]byte, 0, cursorSize-recordlog.HeaderSize)
	body = binary.LittleEndian.AppendUint64(body, c.next)
	body = binary.LittleEndian.AppendUint64(body, c.file)
	for _, end := range c.ends {
		body = binary.LittleEndian.AppendUint64(body, end)
	}
	return recordlog.AppendFile(dst, recordlog.Header{Kind: recordlog.SpoolCursor, ID: c.count, First: c.line}, body)
}

// parseCursor reads a slot. The error is ErrDamaged or an UnsupportedError.
func parseCursor(b []byte, path string) (cursor, error) {
	h, body, err := recordlog.ParseFile(b, recordlog.SpoolCursor, path)
	if err != nil {
		return cursor{}, err
	}
	if len(body) != cursorSize-recordlog.HeaderSize || h.ID == 0 || h.ID >= recordlog.MaxNumber {
		return cursor{}, recordlog.ErrDamaged
	}
	c := cursor{count: h.ID, line: h.First, next: binary.LittleEndian.Uint64(body), file: binary.LittleEndian.Uint64(body[8:])}
	for i := range c.ends {
		c.ends[i] = binary.LittleEndian.Uint64(body[16+8*i:])
	}
	if c.next >= recordlog.MaxNumber {
		return cursor{}, recordlog.ErrDamaged
	}
	return c, nil
}

// saved is the cursor file and its content; guarded by Spool.op.
type saved struct {
	cursor
	file disk.File // or nil
	time time.Time // of the latest writing
}

// saveEvery bounds the age of the cursor's number of the next line while lines are
// appended.
const saveEvery = 100 * time.Millisecond

// save writes the cursor if it has moved: one slot in place, which needs no room on a full
// disk. An error costs only repeated deliveries. A new number of the next line alone is
// written only if next is set, and is never ahead of the files.
func (s *Spool) save(next bool) error {
	first := s.firstStored()
	c := cursor{count: s.saved.count + 1, line: first, next: s.next}
	n := 0
	for _, b := range s.out {
		c.ends[n] = b.end
		n++
	}
	for _, end := range s.ends { // not handed out again yet
		if end > s.at && n < len(c.ends) {
			c.ends[n] = end
			n++
		}
	}
	c.file = c.line
	for i, seg := range s.segs {
		if c.line < s.limit(i) {
			c.file = seg.line
			break
		}
	}
	if c.line == s.saved.line && c.ends == s.saved.ends && (!next || c.next == s.saved.next) {
		return nil
	}
	if err := s.writeCursor(c); err != nil {
		err = fmt.Errorf("write cursor: %w", err)
		s.fail(err)
		return err
	}
	s.saved.cursor = c
	return nil
}

func (s *Spool) writeCursor(c cursor) error {
	s.saved.time = time.Now()
	if s.saved.file == nil {
		if !s.owns() {
			return errGone
		}
		f, err := s.o.Disk.OpenFile(s.path(cursorName), os.O_RDWR|os.O_CREATE, 0o640)
		if err != nil {
			return err
		}
		s.saved.file = f
	}
	s.cursorBuf = c.append(s.cursorBuf[:0])
	_, err := s.saved.file.WriteAt(s.cursorBuf, int64(c.count%2)*cursorSlot)
	return err
}

// forgetCursor makes the next save write a new file.
func (s *Spool) forgetCursor() {
	s.saved.file.Close()
	s.saved = saved{cursor: cursor{count: s.saved.count}}
}

// readCursor fills s.saved from the cursor file, if there is a sound slot.
func (s *Spool) readCursor() error {
	f, err := s.o.Disk.OpenFile(s.path(cursorName), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if errors.Is(err, disk.ErrNotFile) {
		s.find(Finding{Kind: recordlog.CursorLost, File: cursorName, Detail: "set aside as .bad: " + err.Error()})
		return s.setAside(cursorName)
	}
	if err != nil {
		return fmt.Errorf("open cursor: %w", err)
	}
	s.saved.file = f
	size, err := f.Size()
	if err != nil {
		return fmt.Errorf("read cursor: %w", err)
	}
	b := make([]byte, min(size, 2*cursorSlot))
	if n, err := f.ReadAt(b, 0); n < len(b) {
		return fmt.Errorf("read cursor: %w", err)
	}
	found := false
	for _, slot := range [][]byte{b, b[min(cursorSlot, len(b)):]} {
		c, err := parseCursor(slot, s.path(cursorName))
		switch {
		case err == nil:
			if found = true; c.count > s.saved.count {
				s.saved.cursor = c
			}
		case err != recordlog.ErrDamaged:
			return err
		}
	}
	if !found && size > 0 {
		s.find(Finding{Kind: recordlog.CursorLost, File: cursorName, Bytes: size, Detail: recordlog.ErrDamaged.Error()})
	}
	return nil
}
