package slab

import (
	"errors"
	"fmt"
	"io"

	"github.com/rollway/rollway/internal/linecount"
	"github.com/rollway/rollway/internal/slabfile"
)

// keeping is what a Writer with Options.Persist has besides: the file that its
// slabs are in. What a slab holds is in the file when the process is gone; see
// package slabfile for why. So it has to be told, in this order:
//
//   - that a slab is begun, before the first line (beginLocked);
//   - how much of it is whole lines, after each copy (put);
//   - where a Write of the destination is going to begin, if that can be known
//     (mark, in the goroutine that makes the call);
//   - how much has been delivered (deliveredLocked);
//   - that it is free (freeLocked).
type keeping struct {
	file      *slabfile.File // nil: the slabs are on the heap
	seq       uint64         // guarded by mu; of the slab begun next
	recovered uint64         // read-only; lines that were in the file
	unkept    uint64         // guarded by mu; oversized lines that the file had no room for
	aside     string         // read-only; where a damaged file is kept, or ""
	notes     []error        // for OnError, when run begins
}

// open opens the file and makes the slabs that it has room for. What earlier
// processes left there is queued before everything else, but for what the
// destination has already.
func (w *Writer) openFile(dst io.Writer) ([]*slab, error) {
	k, o := &w.kept, &w.opts
	if err := k.open(o); err != nil {
		return nil, fmt.Errorf("slab: option Persist: %w", err)
	}
	if g := k.file.Geometry(); g.SlabSize != o.SlabSize || g.SlabCount != o.SlabCount || g.LineLimit < o.OversizeLimit && o.OversizeLimit > o.SlabSize {
		k.notes = append(k.notes, fmt.Errorf("slab: %s holds lines in %d slabs of %d bytes: these are used until the next start", o.Persist, g.SlabCount, g.SlabSize))
		o.SlabSize, o.SlabCount, o.OversizeLimit = g.SlabSize, g.SlabCount, max(g.LineLimit, g.SlabSize)
	}
	if !k.file.InMemory() {
		k.notes = append(k.notes, fmt.Errorf("slab: %s is on a disk, where a Write may wait for it some milliseconds: put it on a tmpfs, as /dev/shm is", o.Persist))
	}
	k.seq = k.file.NextSeq()
	w.queue.ring = make([]*slab, o.SlabCount)
	slabs := newSlabs(o.SlabCount, 0)
	for i, s := range slabs {
		s.index = i
		s.own, s.committed = k.file.Slab(i)
	}
	if err := w.recover(dst, slabs); err != nil {
		return nil, errors.Join(fmt.Errorf("slab: option Persist: %w", err), k.file.Close())
	}
	return slabs, nil
}

// open opens the file. A damaged one is kept under another name, and what it
// holds is taken over.
func (k *keeping) open(o *Options) (err error) {
	wanted := slabfile.Geometry{SlabSize: o.SlabSize, SlabCount: o.SlabCount, LineLimit: o.OversizeLimit}
	k.file, err = slabfile.Open(o.Persist, slabfile.Options{Geometry: wanted})
	if !errors.Is(err, slabfile.ErrDamaged) {
		return err
	}
	kept, failed := slabfile.SetAside(o.Persist, wanted)
	if failed != nil {
		return errors.Join(err, failed)
	}
	k.aside = kept
	k.notes = append(k.notes, fmt.Errorf("slab: what was found in it is delivered, and it is kept as %s: %w", kept, err))
	k.file, err = slabfile.Open(o.Persist, slabfile.Options{Geometry: wanted})
	return err
}

// damaged notes what is wrong with a slab, and keeps the file before anything
// in it is freed.
func (k *keeping) damaged(b slabfile.Batch) {
	if b.Problem == nil {
		return
	}
	k.notes = append(k.notes, fmt.Errorf("slab: %s, %s of it delivered, %d bytes not: %w",
		k.file.Path(), count(linecount.Of(b.Data)), b.Cut, b.Problem))
	if k.aside != "" {
		return
	}
	kept, err := k.file.Copy()
	if err != nil {
		k.notes = append(k.notes, fmt.Errorf("slab: no copy of the damaged file is kept: %w", err))
		return
	}
	k.aside = kept
	k.notes = append(k.notes, fmt.Errorf("slab: a copy of the damaged file is kept as %s", kept))
}

// recover queues what the file holds.
func (w *Writer) recover(dst io.Writer, slabs []*slab) error {
	k := &w.kept
	for b, err := range k.file.Pending() {
		if err != nil {
			return err
		}
		k.damaged(b)
		held, err := slabfile.Held(b, dst)
		if err != nil {
			k.notes = append(k.notes, fmt.Errorf("slab: lines of %s may be repeated, as it is not known whether the destination has them: %w", w.opts.Persist, err))
		}
		if held == len(b.Data) {
			k.file.Free(b.Slab)
			continue
		}
		k.file.Delivered(b.Slab, b.Start+held)
		s := slabs[b.Slab]
		lines := linecount.Of(b.Data[held:])
		s.begun, s.base, s.data, s.lines = true, b.Start+held, b.Data[held:], int(lines)
		s.marks = append(s.marks, mark{0, unknown})
		k.recovered += lines
		w.pushLocked(s)
	}
	if k.aside != "" {
		k.notes = append(k.notes, fmt.Errorf("slab: %s recovered from the damaged file", count(k.recovered)))
	}
	return nil
}

// beginLocked takes s, which is free, into use.
func (w *Writer) beginLocked(s *slab) {
	if w.kept.file != nil {
		w.kept.file.Begin(s.index, w.kept.seq)
		w.kept.seq++
		s.begun, s.base = true, 0
	}
}

// beginLineLocked takes s, which is free and has the memory of one oversized
// line in data, into use. The line is written to the file here, with a system
// call; where that fails, it is kept in memory alone.
func (w *Writer) beginLineLocked(s *slab) {
	if w.kept.file == nil {
		return
	}
	if err := w.kept.file.BeginLine(s.index, w.kept.seq, s.data); err != nil {
		w.kept.unkept++
		return
	}
	w.kept.seq++
	s.begun, s.base = true, 0
}

// mark tells the file where the call is going to write, if the destination can
// tell.
func (c *call) mark(k *keeping) error {
	s := c.slab
	if k.file == nil || s == nil || !s.begun {
		return nil
	}
	p, ok := c.out.w.(slabfile.Positioner)
	if !ok || !c.whole {
		k.file.Unmark(s.index)
		return nil
	}
	volume, inode, offset, err := p.Prepare(len(c.p))
	if err != nil {
		return err
	}
	k.file.Mark(s.index, s.base+len(s.data)-len(c.p), volume, inode, offset)
	return nil
}

// deliveredLocked tells the file that the lines before byte n of what s holds
// are with a destination.
func (w *Writer) deliveredLocked(s *slab, n int) {
	if w.kept.file != nil && s != nil && s.begun {
		w.kept.file.Delivered(s.index, s.base+n)
	}
}

// holdLocked lets go of the slab in hand but for the line that goes in front,
// which ends at byte end and of which the file has no other copy.
func (w *Writer) holdLocked(end int) {
	f := &w.flight
	s := f.slab
	w.kept.file.Unmark(s.index)
	*s.committed = uint64(s.base + end)
	f.slab, f.main, f.held = nil, batch{}, s
}

// forgetLocked tells the file that nothing of s has to be delivered any more.
func (w *Writer) forgetLocked(s *slab) {
	if w.kept.file != nil && s.begun {
		w.kept.file.Free(s.index)
		s.begun = false
	}
}

// leaveFile closes the file, once no call of a destination holds a slab. What
// is in it is for the next process.
func (w *Writer) leaveFile() error {
	defer close(w.left)
	if w.kept.file == nil {
		return nil
	}
	return w.kept.file.Close()
}
