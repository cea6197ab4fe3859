// Package sink passes the journal's lines on to destinations. Each Runner reads with a
// cursor of its own, which outlives the process. So a dead or slow destination delays no
// other: its lines stay in the journal.
//
//  1. Every line is delivered at least once, unless it is dropped and counted;
//     batches go out in the order of the journal, one after the other.
//  2. The cursor is saved after the lines before it were delivered. What was
//     delivered since the last save is delivered again by the next process.
//  3. In every snapshot of Stats, counting lines from the Runner's first offset on:
//     stored = Delivered + Pending + the sum of Dropped.
package sink

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/rollway/rollway/collector/journal"
	"github.com/rollway/rollway/internal/backoff"
)

// A Destination takes batches. It is used by one goroutine.
type Destination interface {
	// Deliver returns nil when each line of b is delivered, or refused for good
	// and marked by b.Refuse. After an error the same batch comes again, with
	// what b.Settle marked. Once ctx has ended it returns soon, and is not called
	// again.
	Deliver(ctx context.Context, b *Batch) error
}

// Reasons for which lines are dropped: a closed set, fit for the label of a
// metric.
const (
	ReasonRetention = "retention" // deleted before they were delivered, as DropOldest allows
	ReasonDamaged   = "damaged"   // could not be read from the journal
	ReasonRefused   = "refused"   // the destination will never take them
)

// Reasons returns every key that Stats.Dropped can have.
func Reasons() []string { return []string{ReasonRetention, ReasonDamaged, ReasonRefused} }

// Options of a Runner; a field that is zero means its default.
type Options struct {
	Name       string        // of the cursor, and in Stats; required
	MaxEvents  int           // lines in a batch; default 1000
	MaxBytes   int           // bytes in a batch, unless a single line has more; default 1 MiB
	MaxAge     time.Duration // for a batch to fill up; default 100 ms
	MinBackoff time.Duration // before a batch is tried again, doubled each time; default 100 ms
	MaxBackoff time.Duration // default 10 s
	SaveEvery  time.Duration // between two saves of the cursor; default 1 s
	DropOldest bool          // retention may delete what was not delivered; otherwise it waits, and a full journal refuses lines

	Log *slog.Logger // default: none
}

func (o Options) withDefaults() Options {
	o.MaxEvents = positive(o.MaxEvents, 1000)
	o.MaxBytes = positive(o.MaxBytes, 1<<20)
	o.MaxAge = positive(o.MaxAge, 100*time.Millisecond)
	o.MinBackoff = positive(o.MinBackoff, 100*time.Millisecond)
	o.MaxBackoff = positive(o.MaxBackoff, 10*time.Second)
	o.SaveEvery = positive(o.SaveEvery, time.Second)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return o
}

func positive[T int | time.Duration](value, def T) T {
	if value <= 0 {
		return def
	}
	return value
}

// Stats is a snapshot of a Runner. Counters begin at New.
type Stats struct {
	Name      string
	Delivered uint64            // lines
	Pending   uint64            // lines that are in the journal and not delivered
	Dropped   map[string]uint64 // lines, by reason
	Batches   uint64            // delivered
	Retries   uint64            // batches tried again
	From      uint64            // offset at which it began
	At        uint64            // all before is delivered or dropped: At - From = Delivered + the sum of Dropped
	Cursor    uint64            // offset saved
	LastError error             // of the destination or the cursor; nil: the last try went well
}

// A Runner passes lines on while Run runs. Stats may be called by anybody.
type Runner struct {
	o       Options
	journal *journal.Journal
	cursor  *journal.Cursor
	reader  *journal.Reader
	dest    Destination

	// of Run
	batch     Batch
	rest      journal.Frame // lines read and not yet in a batch
	gap       *journal.Gap  // found after them
	lastLost  time.Time     // when lost lines were logged
	lastSaved time.Time

	mu sync.Mutex
	s  Stats  // guarded by mu, without Pending, At and Cursor
	at uint64 // all before is delivered or dropped; guarded by mu
}

// New opens the cursor named o.Name, which goes on where it was saved and otherwise begins
// at the oldest line. The caller calls Close. Retention keeps what was not delivered
// before New only if the journal was opened with that name in its Options.Hold.
func New(j *journal.Journal, dest Destination, o Options) (*Runner, error) {
	o = o.withDefaults()
	c, err := j.OpenCursor(o.Name, !o.DropOldest)
	if err != nil {
		return nil, fmt.Errorf("sink: %w", err)
	}
	if why := c.Reset(); why != "" {
		o.Log.Warn("sink: all lines are delivered again: "+why, "sink", o.Name)
	}
	r := &Runner{o: o, journal: j, cursor: c, dest: dest, reader: j.NewReader(c.Offset()), at: c.Offset()}
	r.s.Name, r.s.From, r.s.Dropped = o.Name, c.Offset(), make(map[string]uint64)
	return r, nil
}

// Stats returns the counters. It never waits for the disk or the destination.
func (r *Runner) Stats() Stats {
	next := r.journal.Next() // before at, which may pass it: lines come meanwhile
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.s
	s.Dropped = maps.Clone(r.s.Dropped)
	s.At, s.Pending = r.at, max(next, r.at)-r.at
	s.Cursor = r.cursor.Offset()
	return s
}

// Run delivers until ctx ends or the journal is closed and read to its end, then saves
// the cursor and returns the error of that. A batch that is under way when ctx ends is
// delivered again by the next process.
func (r *Runner) Run(ctx context.Context) error {
	defer r.reader.Close() // it only reads
	r.lastSaved = time.Now()
	for ctx.Err() == nil {
		more := r.fill(ctx)
		if r.batch.Len() > 0 && !r.deliver(ctx) {
			break
		}
		if r.gap != nil && r.rest.Records == 0 {
			r.lose(r.gap)
			r.gap = nil
		}
		if time.Since(r.lastSaved) >= r.o.SaveEvery {
			r.save()
		}
		if !more {
			break
		}
	}
	return r.save()
}

// Close lets retention delete what was not delivered: call it once nothing is stored any
// more. Run must have returned.
func (r *Runner) Close() {
	r.reader.Close() // it only reads
	r.cursor.Close()
}

// fill makes the next batch; false: no more will come.
func (r *Runner) fill(ctx context.Context) (more bool) {
	b := &r.batch
	b.reset()
	var until time.Time // when the batch has waited long enough
	for b.Len() < r.o.MaxEvents {
		if r.rest.Records > 0 {
			if !b.add(&r.rest, r.o.MaxEvents, r.o.MaxBytes) {
				return true
			}
			continue
		}
		if r.gap != nil {
			return true
		}
		f, ok, err := r.reader.TryNext()
		switch {
		case err == nil && ok:
			r.rest = f
		case err == nil:
			if b.Len() > 0 && until.IsZero() {
				until = time.Now().Add(r.o.MaxAge)
			}
			if !r.wait(ctx, until) {
				return ctx.Err() == nil
			}
		case !errors.As(err, &r.gap):
			return r.readFailed(ctx, err)
		}
	}
	return true
}

// wait returns true when there is more to read, and false when until has come, ctx has
// ended or, while the batch is empty, the cursor is to be saved.
func (r *Runner) wait(ctx context.Context, until time.Time) bool {
	if until.IsZero() && r.unsaved() {
		until = r.lastSaved.Add(r.o.SaveEvery)
	}
	if !until.IsZero() {
		timed, cancel := context.WithDeadline(ctx, until)
		defer cancel()
		ctx = timed
	}
	f, err := r.reader.Next(ctx)
	if err == nil {
		r.rest = f
	}
	return err == nil || errors.As(err, &r.gap) || errors.Is(err, io.EOF) // which TryNext says again
}

func (r *Runner) readFailed(ctx context.Context, err error) bool {
	if errors.Is(err, io.EOF) {
		return false
	}
	r.note(err)
	var newer *journal.UnsupportedError
	if errors.As(err, &newer) {
		r.o.Log.Error("sink: stopped, the journal cannot be read on", "sink", r.o.Name, "error", err)
		return false
	}
	return backoff.Sleep(ctx, r.o.MinBackoff)
}

// deliver tries until the batch is delivered; false: ctx ended before.
func (r *Runner) deliver(ctx context.Context) bool {
	b := &r.batch
	for failures := 0; ; failures++ {
		err := r.dest.Deliver(ctx, b)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return false
		}
		first := r.note(err)
		if first {
			r.o.Log.Warn("sink: a batch was not delivered and is tried again", "sink", r.o.Name, "lines", b.Len(), "error", err)
		}
		if !backoff.Sleep(ctx, backoff.Wait(failures, r.o.MinBackoff, r.o.MaxBackoff)) {
			return false
		}
		r.mu.Lock()
		r.s.Retries++
		r.mu.Unlock()
	}
	refused := uint64(b.refused)
	if refused > 0 {
		r.o.Log.Error("sink: lines are refused for good and dropped", "sink", r.o.Name, "lines", refused, "first_offset", b.First, "error", b.refusal)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.s.LastError = nil
	r.s.Batches++
	r.s.Delivered += uint64(b.Len()) - refused
	if refused > 0 {
		r.s.Dropped[ReasonRefused] += refused
	}
	r.at = b.First + uint64(b.Len())
	return true
}

// lose counts the lines of a gap. One that goes back is of a journal that lost what the
// cursor had seen, which recovery has reported.
func (r *Runner) lose(g *journal.Gap) {
	reason := ReasonDamaged
	if g.Retention || g.To <= r.journal.First() {
		reason = ReasonRetention
	}
	missed := g.Missed()
	if missed > 0 && (!g.Retention || time.Since(r.lastLost) > time.Second) { // there may be one before each line
		r.lastLost = time.Now()
		r.o.Log.Error("sink: lines are lost", "sink", r.o.Name, "lines", missed, "first_offset", g.From, "reason", g.Reason)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at = g.To
	if missed > 0 {
		r.s.Dropped[reason] += missed
	}
}

// note keeps err for Stats and reports whether the try before went well.
func (r *Runner) note(err error) (first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first = r.s.LastError == nil
	r.s.LastError = err
	return first
}

func (r *Runner) unsaved() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.at != r.cursor.Offset()
}

func (r *Runner) save() error {
	r.lastSaved = time.Now()
	r.mu.Lock()
	at := r.at
	r.mu.Unlock()
	err := r.cursor.Save(at)
	if err != nil && r.note(err) {
		r.o.Log.Warn("sink: the cursor is not saved", "sink", r.o.Name, "error", err)
	}
	return err
}
