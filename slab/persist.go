package slab

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	panics "runtime/debug"
	"time"

	"github.com/rollway/rollway/internal/aside"
	"github.com/rollway/rollway/internal/slabfile"
	"github.com/rollway/rollway/line"
)

// keeping is what Options.Persist adds to a Writer: a file with a second copy of the slabs
// for the next process; see package slabfile. The file is told, in this order:
//
//   - that a slab is begun, before the first line (beginLocked);
//   - how much of it is whole lines, after each copy (put);
//   - where a Write of the destination begins, if that is known (mark, in the goroutine
//     that makes the call);
//   - how much has been delivered (deliveredLocked);
//   - that it is free (forgetLocked).
//
// This process delivers from its own slabs. When the file is found cut, deleted, replaced
// or overwritten, the Writer continues without it, and maintenance makes a new one.
type keeping struct {
	file   *slabfile.File // replaced by maintenance with mu held; nil: no Persist
	lost   error          // guarded by mu; why the file is of no use; nil while it is
	mem    []byte         // guarded by mu; the open slab in the file, nil if it is not there
	end    int            // guarded by mu; what opened.end is otherwise, if mem is not nil
	seq    uint64         // guarded by mu; of the slab begun last
	slabs  []*slab        // read-only; all of them
	unkept uint64         // guarded by mu; sealed lines that are not in the file

	recovered uint64  // read-only; lines that were in the file
	cut       uint64  // read-only; bytes of slabs that were left out as damaged
	aside     string  // read-only; the copy of a damaged file, or ""
	notes     []error // for OnError, when run begins

	wake  chan struct{} // holds one token, sent when lost is set
	quit  chan struct{} // closed to end maintenance
	ended chan struct{} // closed when maintenance has ended
}

// fileState is the state of a slab in the file, guarded by mu.
type fileState struct {
	begun  bool   // it is in the file
	sealed bool   // the file has its checksum, or need not
	base   int    // of data within the slab in the file
	seq    uint64 // in the file
}

// openFile opens the file, makes the slabs that it has room for, and queues what earlier
// processes left.
func (w *Writer) openFile(dst io.Writer) ([]*slab, error) {
	k, o := &w.kept, &w.opts
	wanted := slabfile.Geometry{SlabSize: o.SlabSize, SlabCount: o.SlabCount, LineLimit: o.MaxLine}
	var err error
	if k.file, err = slabfile.Open(o.Persist, slabfile.Options{Geometry: wanted}); err != nil {
		return nil, fmt.Errorf("slab: option Persist: %w", err)
	}
	if k.aside, err = k.file.Damage(); err != nil {
		k.notes = append(k.notes, fmt.Errorf("slab: what is sound in %s is delivered, and it is kept as %s: %w", o.Persist, k.aside, err))
	}
	if g := k.file.Geometry(); g.SlabSize != o.SlabSize || g.SlabCount != o.SlabCount || g.LineLimit < o.MaxLine && o.MaxLine > o.SlabSize {
		k.notes = append(k.notes, fmt.Errorf("slab: %s holds lines in %d slabs of %d bytes: these are used until the next start", o.Persist, g.SlabCount, g.SlabSize))
		o.SlabSize, o.SlabCount, o.MaxLine = g.SlabSize, g.SlabCount, max(g.LineLimit, g.SlabSize)
	}
	if !k.file.InMemory() {
		k.notes = append(k.notes, fmt.Errorf("slab: %s is on a disk, where a Write may wait for it some milliseconds: put it on a tmpfs, as /dev/shm is", o.Persist))
	}
	k.seq = k.file.LastSeq()
	w.queue.ring = make([]*slab, o.SlabCount)
	k.slabs = slabsOf(onHeap(o.SlabCount, o.SlabSize))
	for i, s := range k.slabs {
		s.index = i
	}
	if err := w.recover(dst); err != nil {
		return nil, errors.Join(fmt.Errorf("slab: option Persist: %w", err), k.file.Close())
	}
	k.wake, k.quit, k.ended = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	return k.slabs, nil
}

// recover queues what is in the file and not at the destination.
func (w *Writer) recover(dst io.Writer) error {
	k := &w.kept
	var problems []error
	for b, err := range k.file.Pending() {
		if err != nil {
			return err
		}
		if b.Problem != nil {
			if k.aside == "" && len(problems) == 0 { // before anything in it is freed
				if k.aside, err = k.file.Copy(); err != nil {
					k.notes = append(k.notes, fmt.Errorf("slab: no copy of the damaged file is kept: %w", err))
				}
			}
			problems = append(problems, fmt.Errorf("%s of it delivered, %s and %d bytes not: %w",
				count(line.Count(b.Data)), count(uint64(b.CutLines)), b.Cut, b.Problem))
		}
		k.cut += uint64(b.Cut)
		w.tally.dropped.by[damaged] += uint64(b.CutLines)
		w.tally.dropped.byLevel[unknown] += uint64(b.CutLines)
		w.filling.gap[damaged] += uint64(b.CutLines)
		w.tally.noRoom += uint64(b.CutLines)
		w.tally.noRoomBytes += uint64(b.Cut)
		held, err := slabfile.Held(b, dst)
		if err != nil {
			k.notes = append(k.notes, fmt.Errorf("slab: lines of %s may be repeated, as it is not known whether the destination has them: %w", w.opts.Persist, err))
		}
		if held == len(b.Data) {
			k.file.Free(b.Slab)
			continue
		}
		if err := k.file.Done(b, held); err != nil {
			return err
		}
		s := k.slabs[b.Slab]
		lines := line.Count(b.Data[held:])
		s.fileState = fileState{begun: true, seq: b.Seq, sealed: true, base: b.Start + held}
		s.data, s.lines = b.Data[held:], int(lines)
		s.marks = append(s.marks, mark{0, unknown})
		k.recovered += lines
		w.pushLocked(s)
	}
	if len(problems) > 0 {
		w.tally.toldLost = w.tally.dropped.by // which the note says
		const most = 10
		more := max(0, len(problems)-most)
		k.notes = append(k.notes, fmt.Errorf("slab: %s was damaged, %s recovered, %s and %d bytes left out; a copy is kept as %s; %d of the slabs: %w",
			w.opts.Persist, count(k.recovered), count(w.tally.dropped.by[damaged]), k.cut, k.aside, len(problems), errors.Join(problems[:len(problems)-more]...)))
	} else if k.aside != "" {
		k.notes = append(k.notes, fmt.Errorf("slab: %s recovered from the damaged file", count(k.recovered)))
	}
	return nil
}

// beginLocked takes s, which is free, into use.
func (w *Writer) beginLocked(s *slab) {
	k := &w.kept
	if k.file == nil || k.lost != nil {
		return
	}
	k.seq++
	if !k.file.Begin(s.index, k.seq) {
		w.loseLocked(nil)
		return
	}
	k.mem, s.committed = k.file.Slab(s.index)
	s.fileState = fileState{begun: true, seq: k.seq}
}

// beginLineLocked takes s, which is free and has the memory of one oversized line in data,
// into use. It writes the line to the file, with a system call; if that fails, the line is
// in memory alone.
func (w *Writer) beginLineLocked(s *slab) {
	k := &w.kept
	if k.file == nil || k.lost != nil {
		return
	}
	k.seq++
	if err := k.file.BeginLine(s.index, k.seq, s.data); err == nil {
		s.fileState = fileState{begun: true, seq: k.seq}
	} else if errors.Is(err, slabfile.ErrDamaged) {
		w.loseLocked(nil)
	}
}

// putKept is the fast path of Write into a slab that is also in the file. It reports
// whether it took p, and has then unlocked mu.
func (w *Writer) putKept(p []byte, c class) (done bool) {
	n := len(p)
	if n == 0 || n > w.kept.end-w.pos || p[n-1] != '\n' {
		return false
	}
	if w.class != c {
		w.setClassLocked(c)
	}
	old := panics.SetPanicOnFault(true)
	defer func() {
		if !done {
			w.caughtLocked(recover(), old)
		}
	}()
	copy(w.kept.mem[w.pos:], p)
	w.putUnlock(p)
	panics.SetPanicOnFault(old)
	return true
}

// putBothLocked is put into the open slab and the file. It reports whether the file was
// there.
func (w *Writer) putBothLocked(p []byte, bare bool) (done bool) {
	old := panics.SetPanicOnFault(true)
	defer func() {
		if !done {
			w.caughtLocked(recover(), old)
		}
	}()
	if n := copy(w.kept.mem[w.pos:], p); bare {
		w.kept.mem[w.pos+n] = '\n'
	}
	w.put(p, bare)
	panics.SetPanicOnFault(old)
	return true
}

// caughtLocked handles the panic v of a copy, which committed nothing. If the caller's
// memory was gone, and not the file, the caller gets the panic. A fault in a look at p
// before the copy is not caught: mu stays locked.
func (w *Writer) caughtLocked(v any, old bool) {
	panics.SetPanicOnFault(old)
	if w.kept.file.Covers(v) {
		w.loseLocked(nil)
		return
	}
	if s := w.filling.cur; w.pos == 0 { // the slab was opened for these lines
		w.detachLocked()
		w.filling.gap.add(s.gap)
		w.releaseLocked(s)
	}
	w.wakeUnlock()
	panic(v)
}

// loseLocked continues without the file because of err; nil means that something else has
// written to it.
func (w *Writer) loseLocked(err error) {
	k := &w.kept
	if k.lost != nil {
		return
	}
	if err == nil {
		if err = k.file.Check(); err == nil {
			err = fmt.Errorf("slab file %s: something else has written to it", k.file.Path())
		}
	}
	k.lost = err
	k.file.Void()
	f := &w.filling
	for _, s := range k.slabs {
		if s.begun && s != f.cur { // cur is counted when it is sealed
			k.unkept += w.pendingIn(s)
		}
		s.begun, s.committed = false, &s.heap
	}
	if k.mem, k.end = nil, 0; f.cur != nil {
		w.committed = f.cur.committed
		w.openLocked()
	}
	aside.Signal(k.wake)
}

// pendingIn returns how many lines of s, which is not being filled, are pending.
func (w *Writer) pendingIn(s *slab) uint64 {
	switch f := &w.flight; s {
	case f.slab:
		return f.main.lines
	case f.held:
		return f.front.lines
	}
	if s.over {
		return 0
	}
	return uint64(s.lines)
}

// mark tells the file where the call is going to write, if the destination knows.
func (c *call) mark(w *Writer) error {
	s := c.slab
	if w.opts.Persist == "" || s == nil {
		return nil
	}
	p, ok := c.out.w.(slabfile.Positioner)
	var volume, inode uint64
	var offset int64
	if ok = ok && c.whole; ok {
		var err error
		volume, inode, offset, err = p.Prepare(c.size)
		if ok = !errors.Is(err, errors.ErrUnsupported); ok && err != nil {
			return err
		}
	}
	notices := max(0, c.size-len(s.data)) // before what the slab holds
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case !s.begun:
	case !ok && !w.kept.file.Unmark(s.index),
		ok && !w.kept.file.Mark(s.index, s.base+len(s.data)+notices-c.size, volume, inode, offset+int64(notices)):
		w.loseLocked(nil)
	}
	return nil
}

// deliveredLocked tells the file that a destination has what s holds before byte n.
func (w *Writer) deliveredLocked(s *slab, n int) {
	if s != nil && s.begun && !w.kept.file.Delivered(s.index, s.base+n) {
		w.loseLocked(nil)
	}
}

// holdLocked releases the slab in hand except for the line, ending at byte end, that goes
// in front. The file has the only copy of it.
func (w *Writer) holdLocked(end int) {
	f := &w.flight
	s := f.slab
	f.slab, f.main, f.held = nil, batch{}, s
	if !w.kept.file.Shrink(s.index, s.base+end, bytes.Count(s.data[:end], newline)) {
		w.loseLocked(nil)
	}
}

// forgetLocked tells the file that nothing of s has to be delivered any more.
func (w *Writer) forgetLocked(s *slab) {
	if s.begun {
		s.begun = false
		if !w.kept.file.Free(s.index) {
			w.loseLocked(nil)
		}
	}
	s.committed = &s.heap
}

// leaveFile closes the file once no call of a destination uses a slab. What is in it is for
// the next process.
func (w *Writer) leaveFile() error {
	defer close(w.left)
	k := &w.kept
	if w.opts.Persist == "" {
		return nil
	}
	close(k.quit)
	<-k.ended
	return k.file.Close()
}

// maintainEvery is the interval between two checks of the file and of sealed slabs.
const maintainEvery = time.Second

// maintain notices when the file is lost and makes a new one. It is a goroutine of its own
// since run may be inside a destination for ever.
func (w *Writer) maintain() {
	k := &w.kept
	defer close(k.ended)
	ticker := time.NewTicker(maintainEvery)
	defer ticker.Stop()
	told := false
	for {
		ticked, quits := false, false
		select {
		case <-k.quit:
			quits = true
		case <-k.wake:
		case <-ticker.C:
			ticked = true
		}
		w.mu.Lock()
		lost := k.lost
		w.mu.Unlock()
		if ticked && lost == nil {
			lost = w.check()
		}
		if lost != nil && !told {
			told = true
			w.teller.Tell(note, fmt.Errorf("slab: lines are not kept in a file any more, and would be lost with the process: %w", lost))
		}
		if quits {
			return
		}
		for i := 0; w.sealSlab(i); i++ {
		}
		if ticked && told && w.renew() {
			told = false
			w.teller.Tell(note, fmt.Errorf("slab: lines are kept in a new file: %s", w.opts.Persist))
		}
	}
}

// check checks that the file is still there.
func (w *Writer) check() error {
	if w.kept.file.Check() == nil {
		return nil
	}
	w.mu.Lock()
	err := w.kept.file.Check() // for sure
	if err != nil {
		w.loseLocked(err)
	}
	w.mu.Unlock()
	return err
}

// renew makes a new file and reports whether it could.
func (w *Writer) renew() bool {
	k := &w.kept
	file, err := k.file.Renew() // which nobody uses: it is lost
	w.mu.Lock()
	defer w.mu.Unlock()
	k.file, k.lost = file, err
	k.seq = max(k.seq, file.LastSeq())
	return err == nil
}

// sealSlab gives the i-th slab in the queue, or with i = 0 the one in hand, a checksum in
// the file, and checks that the file has the slab as it was written. It reports whether
// there is such a slab.
func (w *Writer) sealSlab(i int) bool {
	for part := (sealing{}); ; {
		w.mu.Lock()
		s := w.flight.slab
		if i > 0 {
			if i > w.queue.n {
				w.mu.Unlock()
				return false
			}
			s = w.queue.at(i - 1)
		}
		more := s != nil && w.sealPartLocked(s, &part)
		w.mu.Unlock()
		if !more {
			return true
		}
	}
}

// sealing is the checksum of the first at bytes of a slab.
type sealing struct {
	seq   uint64
	at    int
	check uint32
}

// sealPartLocked does a part of sealSlab, some microseconds long, and reports whether more
// is left.
func (w *Writer) sealPartLocked(s *slab, part *sealing) bool {
	file := w.kept.file
	switch {
	case !s.begun:
		return false
	case s.sealed:
		if !file.Matches(s.index, 0, nil) {
			w.loseLocked(nil)
		}
		return false
	case part.at == 0:
		*part = sealing{seq: s.seq, check: file.SealStart(s.index, len(s.data), s.lines)}
	case part.seq != s.seq:
		return false // the slabs have moved on
	}
	next := min(part.at+16<<10, len(s.data))
	at, data := part.at, s.data[part.at:next]
	part.check = slabfile.Extend(part.check, data)
	if len(s.data) > w.opts.SlabSize { // then it is in the line room, which is not mapped
		at, data = 0, nil
	}
	if !file.Matches(s.index, at, data) {
		w.loseLocked(nil)
		return false
	}
	if part.at = next; next == len(s.data) {
		s.sealed = true
		file.Seal(s.index, part.check)
	}
	return !s.sealed
}
