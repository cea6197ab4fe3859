package slabfile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/rollway/rollway/internal/recordlog"
)

// A Mark is where a Write was about to begin.
type Mark struct {
	Volume, Inode uint64
	Offset        int64
	Base          int64 // bytes of the slab that were delivered before
}

// A Batch is what is pending in one slab.
type Batch struct {
	Slab int
	Seq  uint64 // rises from batch to batch
	// Data is whole lines in memory of their own, from the line in which delivery ended,
	// without damaged ones.
	Data  []byte
	Start int // of Data within the slab

	size   int  // of Data
	gapped bool // Data is not contiguous in the slab
	taken  int  // bytes of Data that Recover's destination has

	// Mark is set if HasMark, and a Write of Data from its start may have
	// reached that place, whole or in part.
	Mark    Mark
	HasMark bool

	// Problem is damage of the slab that no kill causes: another program has written to
	// the file, or cut it. Cut and CutLines are how many committed bytes and lines are
	// therefore not in Data, as far as that is known.
	Cut      int
	CutLines int
	Problem  error
}

// Pending yields what earlier processes have committed and not delivered: first batches
// without Data for lost descriptors, then the others in the order of Seq. It ends early
// with the error of a slab that cannot be read. It is called before the first Begin; Done,
// and Free of the batch's slab, may be called while it runs.
func (f *File) Pending() iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) {
		var lost, order []int // slabs whose descriptor is lost, and slabs in use
		for i := range f.geometry.SlabCount {
			if !f.tagged(i) {
				lost = append(lost, i)
			} else if f.load(i, dSeq) != 0 {
				order = append(order, i)
			}
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(f.load(a, dSeq), f.load(b, dSeq)) })
		for n, i := range lost {
			b := Batch{Slab: i}
			if n == 0 {
				b.Problem = fmt.Errorf("%d descriptors are lost, and so is what these slabs held, if anything: %w", len(lost), ErrDamaged)
			}
			if !yield(b, nil) {
				return
			}
		}
		var before uint64
		for _, i := range order {
			b, err := f.batch(i)
			if err != nil {
				yield(Batch{}, f.errorf("read slab %d: %w", i, err))
				return
			}
			if b.Seq == before && b.Problem == nil {
				b.Problem = fmt.Errorf("slab %d has the sequence number %d of another one: %w", i, b.Seq, ErrDamaged)
			}
			before = b.Seq
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
	problem := func(format string, args ...any) {
		if b.Problem == nil {
			b.Problem = fmt.Errorf("slab %d: %s: %w", i, fmt.Sprintf(format, args...), ErrDamaged)
		}
	}
	word, state := f.load(i, dCommitted), f.load(i, dDelivered)
	flags := state >> 32
	if b.Seq >= maxSeq {
		problem("its sequence number is %d", b.Seq)
	}
	if flags&^flagLine != 0 {
		problem("its flags are %#x", flags)
	}
	at, room := g.slabAt(i), g.SlabSize
	if flags&flagLine != 0 {
		at, room = g.lineAt(i), g.LineLimit
	}
	if n := uint32(word); n > uint32(room) {
		problem("%d bytes are said to be committed, there is room for %d", n, room)
	}
	committed, lines := int(min(uint32(word), uint32(room))), int(word>>32)
	delivered := int(uint32(state))
	if uint32(state) > uint32(committed) {
		// Rather twice than never.
		problem("%d bytes are said to be delivered of %d", uint32(state), committed)
		delivered = 0
	}
	if delivered == committed {
		return b, nil
	}
	content := make([]byte, committed) // zeros beyond the end of the file
	if _, err := f.file.ReadAt(content, at); err != nil && !errors.Is(err, io.EOF) {
		return b, err
	}
	b.Start = bytes.LastIndexByte(content[:delivered], '\n') + 1
	done := bytes.Count(content[:b.Start], newline)
	seal := uint32(f.load(i, dSeal))
	check := max(recordlog.Extend(f.SealStart(i, committed, lines), content), 1)
	if b.Data = content[b.Start:]; seal != check {
		if b.Data, b.gapped = salvage(b.Data); seal != 0 {
			problem("its checksum does not fit")
		}
	}
	if b.Cut = committed - b.Start - len(b.Data); b.Cut > 0 {
		problem("%d bytes are no whole lines", b.Cut)
		b.CutLines = min(max(lines-done-bytes.Count(b.Data, newline), 0), b.Cut)
	}
	if b.size = len(b.Data); b.Problem == nil && seal == 0 && !f.options.ReadOnly {
		f.Seal(i, check)
	}
	if m, ok := f.mark(i); ok && m.Base == int64(delivered) && b.Start == delivered {
		b.Mark, b.HasMark = m, true
	}
	return b, nil
}

// salvage returns the whole lines without a zero byte of p, which has no checksum that
// fits: lost pages read as zeros. gapped means that the result is not the beginning of p,
// whose memory it uses.
func salvage(p []byte) (lines []byte, gapped bool) {
	if bytes.IndexByte(p, 0) < 0 {
		return p[:bytes.LastIndexByte(p, '\n')+1], false
	}
	lines = p[:0]
	for line := range bytes.Lines(p) {
		if line[len(line)-1] == '\n' && bytes.IndexByte(line, 0) < 0 {
			lines = append(lines, line...)
		}
	}
	return lines, true
}

// Done says that the destination has the first n bytes of b.Data. With all of them the
// slab is free.
func (f *File) Done(b Batch, n int) error {
	if n >= b.size && f.Free(b.Slab) || n < b.size && (b.gapped || f.Delivered(b.Slab, b.Start+n)) {
		return nil
	}
	return f.errorf("it was cut: %w", ErrDamaged)
}
