package slab

import (
	"bytes"
	"strconv"
	"time"

	"github.com/rollway/rollway/internal/jsonline"
)

// Stats is a consistent picture of a Writer at one moment. Lines, bytes and
// calls are counted from New on.
//
//	Accepted = Written + Dropped.Total() + Pending
type Stats struct {
	Accepted uint64 // lines given to Write before Close, dropped ones included
	Written  uint64 // lines of which the destination has taken the last byte
	Dropped  Drops
	Pending  uint64 // lines in slabs, being filled, queued or being written

	Rejected uint64 // lines given to Write after Close, or waiting when it came

	Bytes   uint64 // taken by the destination, notices included
	Errors  uint64 // failed calls of the destination's Write
	Retries uint64 // calls of the destination's Write that repeat a failed one
	Notices uint64 // lines written to announce losses; not in the ledger

	Slabs       int // allocated
	SlabsFree   int // neither being filled nor queued nor being written
	SlabsQueued int // sealed and waiting for the destination
	SlabsPeak   int // most that were not free at one time
	Waiting     int // producers waiting for a slab now

	LastError error // of the destination's latest Write; nil while it works
}

// Drops counts dropped lines by reason.
type Drops struct {
	BufferFull uint64 // no slab was free, under Drop
	TooLarge   uint64 // longer than Options.OversizeLimit; Write said so
	GaveUp     uint64 // the destination failed for longer than Retry.GiveUp
	Shutdown   uint64 // not written when the deadline of Close or Shutdown came
}

// Total returns the sum over all reasons.
func (d Drops) Total() uint64 {
	return d.BufferFull + d.TooLarge + d.GaveUp + d.Shutdown
}

// count is n lines in words.
func count(n uint64) string {
	if n == 1 {
		return "1 line"
	}
	return strconv.FormatUint(n, 10) + " lines"
}

func (d *Drops) add(o Drops) {
	d.BufferFull += o.BufferFull
	d.TooLarge += o.TooLarge
	d.GaveUp += o.GaveUp
	d.Shutdown += o.Shutdown
}

// appendNotices appends the line that announces d for each reason in it and
// returns their number. There is no stream left to announce Shutdown in.
func (d Drops) appendNotices(dst []byte, now time.Time) ([]byte, uint64) {
	n := uint64(0)
	for _, r := range [...]struct {
		count  uint64
		reason string
	}{
		{d.BufferFull, "buffer full"},
		{d.TooLarge, "line too large"},
		{d.GaveUp, "destination failed"},
	} {
		if r.count > 0 {
			dst = jsonline.AppendLossNotice(dst, now, r.count, r.reason)
			n++
		}
	}
	return dst, n
}

// tally holds the counters, guarded by mu.
type tally struct {
	sealed   uint64 // lines in slabs that were sealed and counted
	written  uint64
	dropped  Drops
	rejected uint64
	bytes    uint64
	errors   uint64
	retries  uint64
	notices  uint64
	lastErr  error // of the latest Write of the destination
	lossErr  error // for which lines were last given up
}

// Stats returns the state of the Writer. It does not wait for the destination,
// and holds up producers for no longer than it takes to count the lines of two
// slabs.
func (w *Writer) Stats() Stats {
	for range w.opts.SlabCount {
		if !w.countOne() {
			break
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	filling := uint64(bytes.Count(w.buf[:w.pos], newline))
	pending := filling
	for i := range w.queue.n {
		pending += w.countLocked(w.queue.at(i))
	}
	if w.flight.slab != nil {
		w.countLocked(w.flight.slab)
	}
	pending += w.flight.left
	t := &w.tally
	return Stats{
		Accepted:    t.sealed + filling + t.dropped.BufferFull + t.dropped.TooLarge,
		Written:     t.written,
		Dropped:     t.dropped,
		Pending:     pending,
		Rejected:    t.rejected,
		Bytes:       t.bytes,
		Errors:      t.errors,
		Retries:     t.retries,
		Notices:     t.notices,
		Slabs:       w.opts.SlabCount,
		SlabsFree:   len(w.filling.free),
		SlabsQueued: w.queue.n,
		SlabsPeak:   w.opts.SlabCount - w.filling.minFree,
		Waiting:     w.waiters.n,
		LastError:   t.lastErr,
	}
}

// countOne counts the lines of the last sealed slab that is not counted yet,
// and reports whether there was one. run counts each slab it takes off the
// queue, so only what has piled up behind a slow destination is left to do.
func (w *Writer) countOne() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := w.queue.n - 1; i >= 0; i-- {
		if s := w.queue.at(i); s.lines < 0 {
			w.countLocked(s)
			return true
		}
	}
	return false
}

// countLocked returns the number of lines of s, which is sealed or in flight.
func (w *Writer) countLocked(s *slab) uint64 {
	if s.lines < 0 {
		w.countedLocked(s, bytes.Count(s.data, newline))
	}
	return uint64(s.lines)
}

// countedLocked books that s has n lines, if nobody else was faster.
func (w *Writer) countedLocked(s *slab, n int) {
	if s.lines >= 0 {
		return
	}
	s.lines = n
	w.tally.sealed += uint64(n)
	if s == w.flight.slab {
		w.flight.left += uint64(n)
	}
}
