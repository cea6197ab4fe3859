package slabfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// A Positioner is a destination that knows where its bytes are. It gets each line exactly
// once; others get it at least once.
type Positioner interface {
	// Prepare is called before a Write of n bytes, which goes to one file. It returns the
	// file's volume and inode and the offset at which the Write begins, or
	// errors.ErrUnsupported if it cannot know, as for a pipe.
	Prepare(n int) (volume, inode uint64, offset int64, err error)
	// Holds returns how many of the first bytes of p are at offset of that file, which
	// may have been renamed or packed since; 0 if it is not found.
	Holds(volume, inode uint64, offset int64, p []byte) (n int, err error)
}

// Result is what Recover has done.
type Result struct {
	Lines, Bytes    uint64  // written
	HeldLines, Held uint64  // lines and bytes that the destination had already
	CutLines, Cut   uint64  // lines and bytes left out for damage, as far as known
	Problems        []error // damage, and errors of Holds; see Batch.Problem
}

// Recover writes to dst what is pending, in order, one Write a batch, and then frees the
// slabs. A confirm that is not nil is called after the last Write, even if that failed, and
// the slabs stay pending unless it returns nil. The error is of dst, confirm or the file. A
// later call, of this process or another, continues; what was written and is still pending
// is written again, unless dst is a Positioner and has it.
func Recover(f *File, dst io.Writer, confirm func() error) (r Result, err error) {
	if f.options.ReadOnly {
		return r, f.errorf("recover: %w", fs.ErrPermission)
	}
	var written []Batch
	for b, e := range f.Pending() {
		if err = e; err == nil {
			err = f.deliver(&b, dst, &r)
			b.Data = nil // may be large
			written = append(written, b)
		}
		if err != nil {
			break
		}
	}
	if confirm != nil && len(written) > 0 {
		if e := confirmed(confirm); e != nil {
			return r, errors.Join(err, fmt.Errorf("the destination does not confirm what was written: %w", e))
		}
	}
	for _, b := range written {
		if b.taken > 0 || b.size == 0 {
			err = errors.Join(err, f.Done(b, b.taken))
		}
	}
	return r, err
}

func confirmed(confirm func() error) (err error) {
	defer caught("Sync", &err)
	return confirm()
}

// deliver writes b, as much as dst takes.
func (f *File) deliver(b *Batch, dst io.Writer, r *Result) error {
	if b.Problem != nil {
		r.Problems = append(r.Problems, b.Problem)
	}
	r.Cut += uint64(b.Cut)
	r.CutLines += uint64(b.CutLines)
	var err error
	if b.taken, err = Held(*b, dst); err != nil { // rather twice than never
		r.Problems = append(r.Problems, fmt.Errorf("slab %d is written anew, as it is not known what the destination has of it: %w", b.Slab, err))
	}
	r.HeldLines += countLines(b.Data[:b.taken])
	r.Held += uint64(b.taken)
	for b.taken < len(b.Data) {
		n, err := f.write(dst, b)
		r.Lines += countLines(b.Data[b.taken:][:n])
		r.Bytes += uint64(n)
		b.taken += n
		if n == 0 { // else it makes progress, or has taken all
			return fmt.Errorf("write to the destination: %w", err)
		}
	}
	return nil
}

// Held returns how many of the first bytes of b.Data, in whole lines, dst has already. It
// asks only a Positioner, and only if a Write of b had begun. After an error the caller
// delivers all of b.
func Held(b Batch, dst io.Writer) (n int, err error) {
	p, ok := dst.(Positioner)
	if !ok || !b.HasMark {
		return 0, nil
	}
	defer caught("Holds", &err)
	if n, err = p.Holds(b.Mark.Volume, b.Mark.Inode, b.Mark.Offset, b.Data); err != nil {
		return 0, err
	}
	n = min(max(n, 0), len(b.Data))
	return bytes.LastIndexByte(b.Data[:n], '\n') + 1, nil
}

// write writes the rest of b to dst, marked if possible. n is less only with an error.
func (f *File) write(dst io.Writer, b *Batch) (n int, err error) {
	rest := b.Data[b.taken:]
	if _, marked := f.mark(b.Slab); marked && b.taken > 0 {
		if err := f.Done(*b, b.taken); err != nil { // until now only the mark tells
			return 0, err
		}
	}
	f.Unmark(b.Slab)
	if p, ok := dst.(Positioner); ok && !b.gapped {
		if err := f.prepare(p, b); err != nil {
			return 0, err
		}
	}
	defer caught("Write", &err)
	n, err = dst.Write(rest)
	n = min(max(n, 0), len(rest))
	if n < len(rest) && err == nil {
		err = io.ErrShortWrite
	}
	return n, err
}

// prepare marks the Write of what is left of b, if p knows where it goes.
func (f *File) prepare(p Positioner, b *Batch) (err error) {
	defer caught("Prepare", &err)
	volume, inode, offset, err := p.Prepare(len(b.Data) - b.taken)
	if err == nil {
		f.Delivered(b.Slab, b.Start+b.taken) // which a mark refers to
		f.Mark(b.Slab, b.Start+b.taken, volume, inode, offset)
	} else if errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return err
}

// caught, deferred, turns a panic of a destination's method into an error.
func caught(method string, err *error) {
	if v := recover(); v != nil {
		*err = errors.Join(*err, fmt.Errorf("the destination panicked in %s: %v", method, v))
	}
}

func countLines(p []byte) uint64 { return uint64(bytes.Count(p, newline)) }

var newline = []byte{'\n'}
