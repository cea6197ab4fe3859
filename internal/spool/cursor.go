package spool

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

// The cursor file is written after this much was settled, or this long after
// the time before.
const (
	saveBytes = 1 << 20
	saveEvery = time.Second
)

// saved is what the cursor file says; guarded by Spool.op.
type saved struct {
	line  uint64
	when  time.Time
	since int64 // bytes settled after it
}

// saveIfDue writes the cursor file if enough has happened.
func (s *Spool) saveIfDue() {
	if s.firstLine() != s.saved.line && (s.saved.since >= saveBytes || time.Since(s.saved.when) >= saveEvery) {
		s.save()
	}
}

// save writes the cursor file. An error costs deliveries that are made again,
// nothing else.
func (s *Spool) save() error {
	line, batch := s.at.line, s.at.batch
	if s.head.loaded {
		line, batch = s.head.line, s.head.batch
	}
	if line == s.saved.line {
		return nil
	}
	s.saved.when, s.saved.since = time.Now(), 0 // also after an error: not again at once
	if err := s.writeCursor(appendCursor(nil, cursor{formatVersion, line, batch})); err != nil {
		err = fmt.Errorf("write cursor: %w", err)
		s.fail(err)
		return err
	}
	s.saved.line = line
	return nil
}

func (s *Spool) writeCursor(b []byte) error {
	f, err := s.o.Disk.OpenFile(s.path(cursorNew), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o640)
	if err != nil {
		return err
	}
	if err := errors.Join(writeAt(f, b, 0), f.Close()); err != nil {
		return err
	}
	return s.o.Disk.Rename(s.path(cursorNew), s.path(cursorName))
}

// readCursor returns where reading goes on; 0 if that is not known.
func (s *Spool) readCursor() (position, error) {
	b, err := s.readAll(cursorName, 4<<10)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return position{}, nil
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return position{}, fmt.Errorf("read cursor: %w", err)
	}
	c, err := parseCursor(b)
	if err != nil {
		s.find(Finding{Kind: CursorLost, File: cursorName, Bytes: int64(len(b)), Detail: err.Error()})
		return position{}, nil
	}
	if c.version != formatVersion {
		return position{}, &UnsupportedError{File: s.path(cursorName), Version: c.version}
	}
	return position{c.line, c.batch}, nil
}
