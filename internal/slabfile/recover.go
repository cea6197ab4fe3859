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
	// will begin, or errors.ErrUnsupported if it cannot know: a pipe.
	Prepare(n int) (volume, inode uint64, offset int64, err error)
	// Holds returns how many first bytes of p stand at offset of that file,
	// which may have been renamed or packed since; 0 if it is not found.
	Holds(volume, inode uint64, offset int64, p []byte) (n int, err error)
}

// Result is what Recover has done.
type Result struct {
	Batches     int    // slabs in which something was pending
	First, Last uint64 // their sequence numbers; 0 if there was none

	Lines, Bytes    uint64  // written
	HeldLines, Held uint64  // lines and bytes that the destination had already
	CutBytes        uint64  // left out: no whole lines, by damage
	Problems        []error // damage, and answers of Holds; see Batch.Problem

	complete bool
}

// Complete reports whether everything that the file held is with the
// destination and nothing was found damaged.
func (r Result) Complete() bool { return r.complete && len(r.Problems) == 0 }

// Recover writes to dst what is pending, in order, one Write a batch, and frees
// the slabs. If confirm is not nil it is called after the last Write, also when
// that failed, and a slab stays pending unless confirm returns nil: what was
// written may not have arrived. The error is of dst, confirm or the file. A
// later call, of this process or another, goes on where this one ended; what
// was written and is still pending is written again, unless dst is a Positioner
// and has it.
func Recover(f *File, dst io.Writer, confirm func() error) (Result, error) {
	d := delivery{f: f, dst: dst, at: map[int]int{}, late: confirm != nil}
	if f.options.ReadOnly {
		return d.Result, fmt.Errorf("slab file %s: recover: %w", f.path, fs.ErrPermission)
	}
	err := d.all()
	if confirm != nil && len(d.unconfirmed) > 0 {
		if e := guard("Sync", confirm); e != nil {
			return d.Result, errors.Join(err, fmt.Errorf("the destination does not confirm what was written: %w", e))
		}
		for _, b := range d.unconfirmed {
			if e := f.Done(b, d.at[b.Slab]); e != nil {
				return d.Result, errors.Join(err, e)
			}
		}
	}
	d.complete = err == nil
	return d.Result, err
}

// delivery is one call of Recover.
type delivery struct {
	Result
	f           *File
	dst         io.Writer
	late        bool        // slabs are freed after all writes
	unconfirmed []Batch     // without Data; written, in whole or in part
	at          map[int]int // by slab: how much of such a Batch
}

func (d *delivery) all() error {
	for b, err := range d.f.Pending() {
		if err != nil {
			return err
		}
		if d.Batches++; d.Batches == 1 {
			d.First = b.Seq
		}
		d.Last = b.Seq
		if b.Problem != nil {
			d.Problems = append(d.Problems, b.Problem)
		}
		d.CutBytes += uint64(b.Cut)
		if err := d.batch(b); err != nil {
			return err
		}
	}
	return nil
}

func (d *delivery) batch(b Batch) error {
	at, err := Held(b, d.dst)
	if err != nil { // rather twice than never
		d.Problems = append(d.Problems, fmt.Errorf("slab %d is written anew, as it is not known what the destination has of it: %w", b.Slab, err))
	}
	d.HeldLines += countLines(b.Data[:at])
	d.Held += uint64(at)
	begin := at
	for err = nil; at < len(b.Data) && err == nil; {
		var n int
		n, err = d.f.write(d.dst, b, at)
		d.Lines += countLines(b.Data[at : at+n])
		d.Bytes += uint64(n)
		at += n
		if n > 0 {
			err = nil // it makes progress, or has taken all
		}
	}
	if at > 0 || begin == len(b.Data) {
		if e := d.done(b, at); e != nil {
			return e
		}
	}
	if err != nil {
		return fmt.Errorf("write to the destination: %w", err)
	}
	return nil
}

// done says that at bytes of b are with the destination, now or later.
func (d *delivery) done(b Batch, at int) error {
	if !d.late {
		return d.f.Done(b, at)
	}
	b.Data = nil // an oversized line's would be kept for long
	d.at[b.Slab] = at
	d.unconfirmed = append(d.unconfirmed, b)
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
	if _, marked := f.mark(b.Slab); marked && at > 0 {
		f.Delivered(b.Slab, b.Start+at) // as only the mark tells until now
	}
	f.Unmark(b.Slab)
	if p, ok := dst.(Positioner); ok {
		var volume, inode uint64
		var offset int64
		err := guard("Prepare", func() (err error) {
			volume, inode, offset, err = p.Prepare(len(rest))
			return err
		})
		switch {
		case err == nil:
			f.Delivered(b.Slab, b.Start+at) // which a mark refers to
			f.Mark(b.Slab, b.Start+at, volume, inode, offset)
		case !errors.Is(err, errors.ErrUnsupported):
			return 0, err
		}
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
