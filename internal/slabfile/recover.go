package slabfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// A Positioner is a destination that can tell where its bytes stand. With one,
// a line is delivered exactly once, without, at least once.
type Positioner interface {
	// Prepare is called before a Write of n bytes, which goes to one file. It
	// returns the file's volume and inode and the offset at which the Write
	// will begin.
	Prepare(n int) (volume, inode uint64, offset int64, err error)
	// Holds returns how many first bytes of p stand at offset of that file,
	// which may have been renamed or packed since; 0 if it is not found.
	Holds(volume, inode uint64, offset int64, p []byte) (n int, err error)
}

// Result is what Recover has done.
type Result struct {
	Batches int // slabs in which something was pending

	Lines, Bytes     uint64 // delivered
	HeldLines, Held  uint64 // the destination had them already, lines and bytes
	CutBytes         uint64 // left out: not whole lines, by damage
	First, Last      uint64 // sequence numbers of the batches; 0 if there was none
	Problems         []error
	remainingBatches bool
}

// Complete reports whether everything that the file held was delivered and
// nothing was found damaged.
func (r Result) Complete() bool { return !r.remainingBatches && len(r.Problems) == 0 }

// Recover delivers to dst what is pending, in order, one Write a batch, and
// frees the slabs. The error is the destination's, or of reading the file; what
// was delivered until then is, and a later call goes on there. So does one by
// another process if this one is killed: then the Write that was under way is
// repeated, unless dst is a Positioner.
func Recover(f *File, dst io.Writer) (Result, error) {
	r := Result{remainingBatches: true}
	if f.options.ReadOnly {
		return r, fmt.Errorf("slab file %s: recover: %w", f.path, fs.ErrPermission)
	}
	for b, err := range f.Pending() {
		if err != nil {
			return r, err
		}
		if r.Batches++; r.Batches == 1 {
			r.First = b.Seq
		}
		r.Last = b.Seq
		if b.Problem != nil {
			r.Problems = append(r.Problems, b.Problem)
		}
		r.CutBytes += uint64(b.Cut)
		if err := r.deliver(f, dst, b); err != nil {
			return r, err
		}
	}
	r.remainingBatches = false
	return r, nil
}

func (r *Result) deliver(f *File, dst io.Writer, b Batch) error {
	held, err := Held(b, dst)
	if err != nil { // rather twice than never
		r.Problems = append(r.Problems, fmt.Errorf("slab %d is written anew, as it is not known what the destination has of it: %w", b.Slab, err))
	}
	if held > 0 || len(b.Data) == 0 {
		if err := f.Done(b, held); err != nil {
			return err
		}
	}
	r.HeldLines += countLines(b.Data[:held])
	r.Held += uint64(held)
	for at := held; at < len(b.Data); {
		n, err := f.write(dst, b, at)
		r.Lines += countLines(b.Data[at : at+n])
		r.Bytes += uint64(n)
		at += n
		if n > 0 {
			if err := f.Done(b, at); err != nil {
				return err
			}
		}
		if err != nil && at < len(b.Data) && n == 0 {
			return fmt.Errorf("write to the destination: %w", err)
		}
	}
	return nil
}

// Held returns how many first bytes of b.Data, in whole lines, dst has already.
// It asks only a Positioner, and only if a Write of b was under way. After an
// error of Holds the caller delivers all of b.
func Held(b Batch, dst io.Writer) (int, error) {
	p, ok := dst.(Positioner)
	if !ok || !b.HasMark {
		return 0, nil
	}
	var n int
	err := guard("Holds", func() (err error) {
		n, err = p.Holds(b.Mark.Volume, b.Mark.Inode, b.Mark.Offset, b.Data)
		return err
	})
	if err != nil {
		return 0, err
	}
	n = min(max(n, 0), len(b.Data))
	return bytes.LastIndexByte(b.Data[:n], '\n') + 1, nil
}

// write gives dst what is left of b from at on, marked if that is possible. n
// is less than that only with an error.
func (f *File) write(dst io.Writer, b Batch, at int) (n int, err error) {
	rest := b.Data[at:]
	f.Unmark(b.Slab)
	if p, ok := dst.(Positioner); ok {
		var volume, inode uint64
		var offset int64
		err := guard("Prepare", func() (err error) {
			volume, inode, offset, err = p.Prepare(len(rest))
			return err
		})
		if err != nil {
			return 0, err
		}
		f.Delivered(b.Slab, b.Start+at) // which a mark refers to
		f.Mark(b.Slab, b.Start+at, volume, inode, offset)
	}
	if err := f.flushSlab(b.Slab); err != nil {
		return 0, err
	}
	err = guard("Write", func() (err error) {
		n, err = dst.Write(rest)
		return err
	})
	n = min(max(n, 0), len(rest))
	if n < len(rest) && err == nil {
		err = io.ErrShortWrite
	}
	return n, err
}

// guard calls a method of a destination and turns a panic into an error.
func guard(method string, call func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = errors.Join(err, fmt.Errorf("the destination panicked in %s: %v", method, v))
		}
	}()
	return call()
}

func countLines(p []byte) uint64 { return uint64(bytes.Count(p, newline)) }

var newline = []byte{'\n'}
