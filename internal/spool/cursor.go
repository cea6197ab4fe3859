package spool

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/rollway/rollway/internal/disk"
)

// saved is the cursor file and what it says; guarded by Spool.op.
type saved struct {
	cursor
	file disk.File // nil if there is none
	time time.Time // of the latest writing
}

// saveEvery is how old the cursor's number of the next line may get while lines
// are appended.
const saveEvery = 100 * time.Millisecond

// save writes the cursor if it has moved: 128 bytes in place, which need no
// room on a full disk. An error costs deliveries that are made again, nothing
// else. The number of the next line alone is written only if next is set; it is
// never ahead of what the files hold.
func (s *Spool) save(next bool) error {
	first := s.firstStored()
	c := cursor{version: formatVersion, count: s.saved.count + 1, line: first.line, batch: first.batch, next: s.next.line}
	n := 0
	for _, b := range s.out {
		c.ends[n] = b.end
		n++
	}
	for _, end := range s.ends { // not handed out again yet
		if end > s.at.line && n < len(c.ends) {
			c.ends[n] = end
			n++
		}
	}
	c.file = c.line
	for i, seg := range s.segs {
		if c.line < s.limit(i).line {
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
	s.cursorBuf = appendCursor(s.cursorBuf[:0], c)
	return writeAt(s.saved.file, s.cursorBuf, int64(c.count%2)*cursorSlot)
}

// forgetCursor lets the next save write a new file.
func (s *Spool) forgetCursor() {
	s.saved.file.Close()
	s.saved = saved{cursor: cursor{count: s.saved.count}}
}

// readCursor fills s.saved from the cursor file; all is zero if that says
// nothing.
func (s *Spool) readCursor() error {
	f, err := s.o.Disk.OpenFile(s.path(cursorName), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if errors.Is(err, disk.ErrNotFile) {
		s.find(Finding{Kind: CursorLost, File: cursorName, Detail: "set aside as .bad: " + err.Error()})
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
	found := false
	for slot := int64(0); slot < 2; slot++ {
		b := make([]byte, cursorSize)
		if slot*cursorSlot+cursorSize > size {
			continue
		}
		if _, err := f.ReadAt(b, slot*cursorSlot); err != nil {
			return fmt.Errorf("read cursor: %w", err)
		}
		c, err := parseCursor(b)
		if err != nil {
			continue
		}
		if c.version != formatVersion {
			return &UnsupportedError{File: s.path(cursorName), Version: c.version}
		}
		if found = true; c.count > s.saved.count {
			s.saved.cursor = c
		}
	}
	if !found && size > 0 {
		s.find(Finding{Kind: CursorLost, File: cursorName, Bytes: size, Detail: errDamaged.Error()})
	}
	return nil
}

// closeCursor makes the cursor durable.
func (s *Spool) closeCursor() error {
	f := s.saved.file
	if f == nil {
		return nil
	}
	s.saved.file = nil
	return errors.Join(f.Sync(), f.Close())
}
