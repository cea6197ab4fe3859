package slabfile

import "fmt"

// BeginLine is Begin for one line that is longer than a slab. It is written to
// the room that slab i has for it, with a system call, before BeginLine
// returns. An error, such as a full disk, leaves slab i free. After one that wraps
// ErrDamaged the file keeps nothing any more. The memory of Slab is not used.
func (f *File) BeginLine(i int, seq uint64, line []byte) error {
	g := f.geometry
	if len(line) > g.LineLimit {
		return fmt.Errorf("slab file %s: a line of %d bytes, there is room for %d", f.path, len(line), g.LineLimit)
	}
	_, err := f.file.WriteAt(line, g.lineAt(i))
	if err == nil {
		f.end.Store(max(f.end.Load(), g.lineAt(i)+int64(len(line))))
	} else if f.lines == 0 {
		f.cutLines() // of what there was room for
	}
	if err == nil && !f.guard(func() {
		f.store(i, dDelivered, pair(0, flagLine))
		f.store(i, dCommitted, Committed(len(line), 1))
		f.store(i, dSeq, seq)
	}) {
		err = ErrDamaged
	}
	if err != nil {
		return fmt.Errorf("slab file: write a line: %w", err)
	}
	f.lines++
	return nil
}

// freeLine gives the blocks of all line rooms back when none is in use.
func (f *File) freeLine() {
	if f.lines--; f.lines == 0 {
		f.cutLines()
	}
}

// cutLines cuts the line rooms off, and never makes the file longer. If it fails
// the room stays taken.
func (f *File) cutLines() {
	n := f.geometry.mapped()
	f.end.Store(n)
	if info, err := f.file.Stat(); err == nil && info.Size() > n {
		f.file.Truncate(n)
	}
}
