package shard

import (
	"math/bits"
	"strconv"
	"time"

	"github.com/rollway/rollway/internal/jsonline"
)

// Stats is a picture of a Writer at one moment. Records, bytes and calls are
// counted from New on.
//
//	Accepted = Written + Dropped.Total() + Pending
type Stats struct {
	Accepted uint64 // records given before Close, dropped ones included
	Written  uint64 // records of which the destination has taken the last byte
	Dropped  Drops
	Pending  uint64 // records in buffers

	Rejected uint64 // records given after Close, or waiting when it came

	Bytes   uint64 // taken by the destination, notices included
	Notices uint64 // lines written to announce losses; not in the ledger
	Errors  uint64 // failed calls of the destination's write

	Flushes   uint64        // calls of the destination's write with records
	FlushMean time.Duration // of these calls
	FlushP95  time.Duration // of these calls, to an eighth of a power of two
	FlushP99  time.Duration // the same
	FlushMax  time.Duration // of these calls

	OldestAge time.Duration // of the oldest record not yet written; 0 if there is none
	Stalled   time.Duration // how long the destination's method under way has lasted, if longer than Options.StallAfter
	Stalls    uint64        // calls that lasted longer than that

	Memory    int // bytes of all buffers, and what is allocated for direct I/O
	Terms     int // buffers
	TermsFree int // neither being filled nor queued nor being written

	File FileStats // of a Writer that Open gave

	Shards []ShardStats // in no order that means anything

	LastError error // of the destination's latest write; nil while it works
}

// ShardStats is the part of Stats that belongs to one shard. Their sums are those
// of the Writer.
type ShardStats struct {
	Accepted uint64 // records, dropped ones included
	Dropped  Drops
}

// Drops counts dropped records by reason.
type Drops struct {
	BufferFull uint64 // no buffer was free
	TooLarge   uint64 // longer than a buffer; the call said so
	GaveUp     uint64 // the destination failed for longer than Retry.GiveUp
	Shutdown   uint64 // not written when the deadline of Close or Shutdown came
}

// Total returns the sum over all reasons.
func (d Drops) Total() uint64 { return d.BufferFull + d.TooLarge + d.GaveUp + d.Shutdown }

// losses returns what is to be announced. It is called by run.
func (w *Writer) losses() lost {
	l := lost{gaveUp: w.tally.gaveUp}
	for i := range w.shards {
		l.full += w.shards[i].full.Load()
		l.tooLarge += w.shards[i].tooLarge.Load()
	}
	return l
}

func (d *Drops) add(o Drops) {
	d.BufferFull += o.BufferFull
	d.TooLarge += o.TooLarge
	d.GaveUp += o.GaveUp
	d.Shutdown += o.Shutdown
}

// lost counts by reason what notices tell of. There is no stream left to tell
// of Shutdown in.
type lost struct{ full, tooLarge, gaveUp uint64 }

func (l lost) since(old lost) lost {
	return lost{l.full - old.full, l.tooLarge - old.tooLarge, l.gaveUp - old.gaveUp}
}

// appendNotices appends the line that announces l for each reason in it and
// returns their number.
func (l lost) appendNotices(dst []byte, now time.Time) ([]byte, uint64) {
	n := uint64(0)
	for _, r := range [...]struct {
		count  uint64
		reason string
	}{
		{l.full, "buffer full"},
		{l.tooLarge, "line too large"},
		{l.gaveUp, "destination failed"},
	} {
		if r.count > 0 {
			dst = jsonline.AppendLossNotice(dst, now, r.count, r.reason)
			n++
		}
	}
	return dst, n
}

// tally is guarded by Writer.mu; run alone changes gaveUp.
type tally struct {
	written, gaveUp, shutdown uint64
	bytes, notices, errors    uint64
	lastErr                   error // of the latest write
	lossErr                   error // for which records were last given up

	inside string    // the method of the destination that run is in, or ""
	since  time.Time // when it entered
	stalls uint64

	flushes   uint64
	flushTime time.Duration
	flushMax  time.Duration
	flushHist [64 * 8]uint64 // by flushBucket

	shards []shardTally
}

// shardTally counts the records that are or were in the terms of a shard.
type shardTally struct {
	records          uint64 // in terms that are free again
	gaveUp, shutdown uint64
}

func (t *tally) flushed(took time.Duration) {
	t.flushes++
	t.flushTime += took
	t.flushMax = max(t.flushMax, took)
	t.flushHist[flushBucket(took)]++
}

// flushBucket returns an index that grows with d: eight for each power of two.
func flushBucket(d time.Duration) int {
	n := uint64(max(d, 1))
	exp := bits.Len64(n) - 1
	return exp<<3 | int(n<<(63-exp)>>60&7)
}

// bucketTop returns the longest time of a bucket.
func bucketTop(i int) time.Duration {
	exp, part := i>>3, uint64(i&7)
	return time.Duration((8+part+1)<<exp>>3 - 1)
}

// percentile returns the time that a share p of the flushes did not exceed.
func (t *tally) percentile(p float64) time.Duration {
	want := uint64(float64(t.flushes) * p)
	seen := uint64(0)
	for i, n := range t.flushHist {
		seen += n
		if n > 0 && seen > want {
			return min(bucketTop(i), t.flushMax)
		}
	}
	return t.flushMax
}

// Stats returns the state of the Writer. It does not wait for the destination.
func (w *Writer) Stats() Stats {
	file := w.fileStats()
	w.mu.Lock()
	defer w.mu.Unlock()
	t := &w.tally
	now := time.Now()
	s := Stats{
		Written:   t.written,
		Bytes:     t.bytes,
		Notices:   t.notices,
		Errors:    t.errors,
		Flushes:   t.flushes,
		FlushP95:  t.percentile(0.95),
		FlushP99:  t.percentile(0.99),
		FlushMax:  t.flushMax,
		Stalls:    t.stalls,
		Memory:    w.memorySize,
		Terms:     len(w.terms),
		TermsFree: len(w.free),
		LastError: t.lastErr,
		File:      file,
	}
	if t.flushes > 0 {
		s.FlushMean = t.flushTime / time.Duration(t.flushes)
	}
	if d := now.Sub(t.since); t.inside != "" && d > w.opts.StallAfter {
		s.Stalled = d
	}
	s.Shards = make([]ShardStats, len(w.shards))
	for i := range w.shards {
		shard, tally := &w.shards[i], &t.shards[i]
		s.Rejected += shard.rejected.Load()
		s.Shards[i] = ShardStats{
			Accepted: tally.records,
			Dropped:  Drops{BufferFull: shard.full.Load(), TooLarge: shard.tooLarge.Load(), GaveUp: tally.gaveUp, Shutdown: tally.shutdown},
		}
		s.Dropped.add(s.Shards[i].Dropped)
		s.Shards[i].Accepted += s.Shards[i].Dropped.BufferFull + s.Shards[i].Dropped.TooLarge
	}
	for _, term := range w.terms {
		records := term.records()
		s.Shards[term.owner.Load()].Accepted += records
		pending := records - term.counted
		s.Pending += pending
		if since := term.since.Load(); pending > 0 && since > 0 {
			s.OldestAge = max(s.OldestAge, time.Duration(w.clock(now)-since))
		}
	}
	s.Accepted = s.Written + s.Dropped.Total() + s.Pending
	return s
}

// count is n records in words.
func count(n uint64) string {
	if n == 1 {
		return "1 record"
	}
	return strconv.FormatUint(n, 10) + " records"
}
