package rollway

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Flush waits until every output that buffers has passed on what was logged
// before the call, or ctx ends. Outputs are flushed at the same time; the error
// names each that failed.
func (l *Logger) Flush(ctx context.Context) error {
	ctx = orBackground(ctx)
	l.core.reportLeftOut()
	return l.core.each(ctx, "flush", func(o *output) error { return o.flush(ctx) })
}

// Sync is Flush and then a Sync of every output that has one, as files and
// slab.Writer do: what was logged before the call is stable when it returns
// nil. That a terminal or a pipe cannot be synced is no error.
func (l *Logger) Sync(ctx context.Context) error {
	ctx = orBackground(ctx)
	l.core.reportLeftOut()
	return l.core.each(ctx, "sync", func(o *output) error {
		return errors.Join(o.flush(ctx), o.syncStable(ctx))
	})
}

// flushToExit is the barrier before the process ends.
func (l *Logger) flushToExit() {
	ctx, cancel := context.WithTimeout(context.Background(), l.core.exitTimeout)
	defer cancel()
	if err := l.Sync(ctx); err != nil {
		l.core.tell(fmt.Errorf("rollway: %w", err), nil)
	}
}

// Shutdown flushes every output and closes those whose Output.Close is set, or
// gives up when ctx ends; the error names each output that failed. Records
// logged afterwards are counted in Stats.AfterClose and go nowhere. It concerns
// all Loggers derived from the same New; later calls of Shutdown and Close
// return what the first one did.
func (l *Logger) Shutdown(ctx context.Context) error {
	ctx = orBackground(ctx)
	c := l.core
	c.shutdown.once.Do(func() {
		c.reportLeftOut()
		c.closed.Store(true)
		c.shutdown.err = c.each(ctx, "close", func(o *output) error {
			if o.closes {
				return errors.Join(o.flush(ctx), o.close(ctx))
			}
			return o.flush(ctx)
		})
	})
	return c.shutdown.err
}

// Close is Shutdown within Options.ExitTimeout.
func (l *Logger) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), l.core.exitTimeout)
	defer cancel()
	return l.Shutdown(ctx)
}

// Stats counts what became of the lines.
type Stats struct {
	// Outputs in the order of Options.Outputs.
	Outputs []OutputStats

	// LeftOut counts records that sampling left out and that were reported.
	LeftOut uint64

	// AfterClose counts records logged after Shutdown or Close.
	AfterClose uint64
}

// OutputStats counts the lines of one output. A line that the output's level
// admitted is counted once: Written, Failed or Stalled.
type OutputStats struct {
	Written uint64 // handed to the writer, which returned no error
	Failed  uint64 // the writer returned an error, wrote short or panicked
	Stalled uint64 // left out because another call was stuck in the writer

	LastError error // the newest error, nil if there was none
}

// Stats returns the counts of all Loggers derived from the same New. It never
// blocks.
func (l *Logger) Stats() Stats {
	s := Stats{LeftOut: l.core.leftOut.Load(), AfterClose: l.core.afterClose.Load()}
	for _, o := range l.core.outputs {
		out := OutputStats{Written: o.written(), Failed: o.failed.Load(), Stalled: o.stalled.Load()}
		if err := o.lastError.Load(); err != nil {
			out.LastError = *err
		}
		s.Outputs = append(s.Outputs, out)
	}
	return s
}

// orBackground is for callers that pass no context.
func orBackground(ctx context.Context) context.Context {
	if ctx == nil {
		return context.Background()
	}
	return ctx
}

// lastWords is how long an output may take, when the time is up, to say what is
// left and why: that is worth more than that the time was up.
const lastWords = 100 * time.Millisecond

// each runs do for every output at the same time, once for each Writer, so that
// a stuck one holds up no other, and joins the errors. An output that has not
// answered within lastWords after the end of ctx is left behind with an error.
func (c *core) each(ctx context.Context, verb string, do func(*output) error) error {
	type result struct {
		o   *output
		err error
	}
	results := make(chan result, len(c.outputs))
	waiting := make(map[*output]bool, len(c.outputs))
	for _, o := range c.outputs {
		if o.again {
			continue
		}
		waiting[o] = true
		go func() { results <- result{o, do(o)} }()
	}
	var errs []error
	done, late := ctx.Done(), (<-chan time.Time)(nil)
	for len(waiting) > 0 {
		select {
		case r := <-results:
			delete(waiting, r.o)
			if r.err != nil {
				errs = append(errs, fmt.Errorf("%s %T: %w", verb, r.o.w, r.err))
			}
		case <-done:
			done, late = nil, time.After(lastWords)
		case <-late:
			for o := range waiting {
				errs = append(errs, fmt.Errorf("%s %T: %w", verb, o.w, ctx.Err()))
			}
			return errors.Join(errs...)
		}
	}
	return errors.Join(errs...)
}
