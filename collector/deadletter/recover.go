package deadletter

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// recover finds out what the folder has.
func (s *Store) recover() error {
	if info, err := os.Lstat(s.dir); err == nil && !info.IsDir() {
		return fmt.Errorf("%s is no folder: move it away", s.dir)
	}
	if err := s.fs.MkdirAll(s.dir, 0o750); err != nil {
		return err
	}
	entries, err := s.fs.List(s.dir)
	if err != nil {
		return err
	}
	for _, e := range entries { // of each group the oldest first
		group, _, ok := parseName(e.Name)
		if !ok {
			continue
		}
		seg := &segment{name: e.Name}
		if err := s.scan(seg); err != nil {
			s.onError(fmt.Errorf("a file of dead letters is left alone: %w", err))
			continue
		}
		if seg.size == 0 {
			continue
		}
		principal, reason, _ := strings.Cut(group, ".")
		g := s.group(principal, reason)
		g.segs = append(g.segs, seg)
		s.growLocked(g, s.cost(seg.size))
		s.stats.Start += seg.events
		s.stats.Kept += seg.events
	}
	for s.total > s.max && s.evict("", 0) {
	}
	return nil
}

// scan counts the events of a file, and cuts a last line that was not finished.
func (s *Store) scan(seg *segment) (err error) {
	f, err := s.fs.OpenFile(s.path(seg), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	if err != nil {
		return err
	}
	err = eachLine(io.NewSectionReader(f, 0, size), s.path(seg), headSize+1, func(line []byte, at Place) error {
		if bytes.HasSuffix(line, []byte("\n")) {
			_, count, _ := parseHead(line)
			seg.events += count
			seg.size = at.Pos + int64(at.Len)
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case seg.size == 0:
		return s.fs.Remove(s.path(seg))
	case seg.size < size:
		s.onError(fmt.Errorf("%s: %d bytes of an unfinished line are cut", s.path(seg), size-seg.size))
		return f.Truncate(seg.size)
	}
	return nil
}
