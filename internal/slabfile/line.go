package slabfile

import (
	"errors"
	"fmt"
	"io"
)

// BeginLine is Begin for one line that is longer than a slab. It is written to
// the room that slab i has for it, with a system call, before BeginLine
// returns. After an error slab i is free as before; a disk without room is one.
// The memory of Slab is not used.
func (f *File) BeginLine(i int, seq uint64, line []byte) error {
	g := f.geometry
	if len(line) > g.LineLimit {
		return fmt.Errorf("slab file %s: a line of %d bytes, there is room for %d", f.path, len(line), g.LineLimit)
	}
	f.mu.Lock()
	_, err := f.file.WriteAt(line, g.lineAt(i))
	if err == nil {
		f.lines++
	}
	f.mu.Unlock()
	if err != nil {
		return fmt.Errorf("slab file: write a line: %w", err)
	}
	f.store(i, dFlags, flagLine)
	f.store(i, dCommitted, uint64(len(line)))
	f.store(i, dSeq, seq)
	return nil
}

// freeLine gives the blocks of all line rooms back when none is in use.
func (f *File) freeLine() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lines--; f.lines == 0 {
		f.file.Truncate(f.geometry.mapped()) // if it fails the room stays taken
	}
}

// line reads the line of slab i.
func (f *File) line(i int, n int64) ([]byte, error) {
	p := make([]byte, n)
	got, err := f.file.ReadAt(p, f.geometry.lineAt(i))
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return p[:got], err
}
