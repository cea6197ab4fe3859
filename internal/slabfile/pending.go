package slabfile

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"
	"slices"
)

// A Mark is where a Write was about to begin.
type Mark struct {
	Volume, Inode uint64
	Offset        int64
	Base          int64 // bytes of the slab that had been delivered before
}

// A Batch is what is pending in one slab.
type Batch struct {
	Slab int
	Seq  uint64 // the batches of all processes before rise by it
	// Data is whole lines: from the line in which delivery ended to the end. It
	// is the slab's memory, or for an oversized line memory of its own.
	Data      []byte
	Start     int // of Data within the slab
	Oversized bool

	end int // of Data within the slab

	// Mark is set if HasMark, and a Write of Data from its start may have
	// reached that place, whole or in part.
	Mark    Mark
	HasMark bool

	// Cut is how many committed bytes are not in Data because they are no whole
	// line, and Problem says what is wrong with the slab, if anything is. No
	// kill leads to either: something else has written to the file.
	Cut     int
	Problem error
}

// Pending yields what processes before this one have committed and not
// delivered, in the order of Seq. It ends early with the error of a line that
// cannot be read. It is called before the first Begin; Done, and Free of the
// batch's slab, may be called while it runs.
func (f *File) Pending() iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) {
		type ref struct {
			seq  uint64
			slab int
		}
		var order []ref
		for i := range f.geometry.SlabCount {
			if seq := f.load(i, dSeq); seq != 0 {
				order = append(order, ref{seq, i})
			}
		}
		slices.SortFunc(order, func(a, b ref) int {
			return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.slab, b.slab))
		})
		var before uint64
		for _, r := range order {
			b, err := f.batch(r.slab)
			if err != nil {
				yield(Batch{}, fmt.Errorf("slab file %s: read the line of slab %d: %w", f.path, r.slab, err))
				return
			}
			if r.seq == before && b.Problem == nil {
				b.Problem = fmt.Errorf("slab %d has the sequence number %d of another one: %w", r.slab, r.seq, ErrDamaged)
			}
			before = r.seq
			if len(b.Data) == 0 && b.Problem == nil {
				continue // delivered, and killed before it was freed
			}
			if !yield(b, nil) {
				return
			}
		}
	}
}

// batch reads what is pending in slab i, which is in use.
func (f *File) batch(i int) (Batch, error) {
	g := f.geometry
	b := Batch{Slab: i, Seq: f.load(i, dSeq)}
	committed, delivered, flags := f.load(i, dCommitted), f.load(i, dDelivered), f.load(i, dFlags)
	problem := func(format string, args ...any) {
		if b.Problem == nil {
			b.Problem = fmt.Errorf("slab %d: %s: %w", i, fmt.Sprintf(format, args...), ErrDamaged)
		}
	}
	if b.Seq >= maxSeq {
		problem("its sequence number is %d", b.Seq)
	}
	if flags&^flagLine != 0 {
		problem("its flags are %#x", flags)
	}
	room := uint64(g.SlabSize)
	if b.Oversized = flags&flagLine != 0; b.Oversized {
		room = uint64(g.LineLimit)
	}
	if committed > room {
		problem("%d bytes are said to be committed, there is room for %d", committed, room)
		committed = room
	}
	if delivered > committed {
		// What is right cannot be known: rather twice than never.
		problem("%d bytes are said to be delivered of %d", delivered, committed)
		delivered = 0
	}
	mem, _ := f.Slab(i)
	if b.Oversized && delivered < committed {
		var err error
		if mem, err = f.line(i, int64(committed)); err != nil {
			return b, err
		}
		if short := committed - uint64(len(mem)); short > 0 {
			problem("%d bytes of its line are not in the file", short)
			b.Cut = int(short)
			committed, delivered = uint64(len(mem)), min(delivered, uint64(len(mem)))
		}
	}
	if delivered == committed {
		b.Start, b.end = int(delivered), int(delivered)
		return b, nil
	}
	whole := bytes.LastIndexByte(mem[:committed], '\n') + 1
	if torn := int(committed) - whole; torn > 0 {
		problem("%d bytes at its end are no whole line", torn)
		b.Cut += torn
	}
	b.Start = bytes.LastIndexByte(mem[:delivered], '\n') + 1
	b.end = max(b.Start, whole)
	if b.Start < whole {
		b.Data = mem[b.Start:whole:whole]
	}
	if m, ok := f.mark(i); ok && m.Base == int64(delivered) && b.Start == int(delivered) {
		b.Mark, b.HasMark = m, true
	}
	return b, nil
}

// Done says that the destination has taken the first n bytes of b.Data, or has
// them already. With all of them the slab is free.
func (f *File) Done(b Batch, n int) error {
	if b.Start+n < b.end {
		f.Delivered(b.Slab, b.Start+n)
	} else {
		f.Free(b.Slab)
		if err := f.flush(0, headerSize); err != nil {
			return fmt.Errorf("slab file %s: %w", f.path, err)
		}
	}
	return f.flushSlab(b.Slab)
}

// flushSlab brings the descriptor of slab i to the file.
func (f *File) flushSlab(i int) error {
	at := headerSize + descriptorSize*int64(i)
	if err := f.flush(at, at+descriptorSize); err != nil {
		return fmt.Errorf("slab file %s: %w", f.path, err)
	}
	return nil
}
