package rollway

import (
	"context"
	"errors"
	"time"

	"github.com/rollway/rollway/line"
)

// Flush waits until every output that buffers has passed on what was logged before
// the call, or ctx ends. Outputs are flushed concurrently; the error names each that
// failed.
func (l *Logger) Flush(ctx context.Context) error {
	ctx, c := orBackground(ctx), l.core
	return join(c.each(ctx, "flush", c.leftOutLines(ctx), func(o *output) error { return o.flush(ctx) }))
}

// Sync is Flush followed by the Sync of every output that has one, such as files and
// slab.Writer. If it returns nil, what was logged before the call is stable. It is
// not an error that a terminal or pipe cannot sync.
func (l *Logger) Sync(ctx context.Context) error {
	ctx, c := orBackground(ctx), l.core
	return join(c.sync(ctx, c.leftOutLines(ctx)))
}

func (c *core) sync(ctx context.Context, lines []*encodedLine) []outputError {
	return c.each(ctx, "sync", lines, func(o *output) error {
		return errors.Join(o.flush(ctx), o.syncStable(ctx))
	})
}

// Shutdown flushes every output and closes its Writer, except standard streams and
// Outputs with KeepOpen. It gives up when ctx ends; the error names each output that
// failed. Losses not yet reported go to OnError. Later records are counted as
// Rejected and discarded. Shutdown applies to all Loggers derived from the same New;
// later calls of Shutdown and Close return the result of the first.
func (l *Logger) Shutdown(ctx context.Context) error {
	ctx, c := orBackground(ctx), l.core
	if c.closed.Swap(true) {
		select {
		case <-c.shutdown.done:
			return c.shutdown.err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	defer close(c.shutdown.done)
	c.shutdown.err = errEnded // until known
	c.shutdown.err = join(c.each(ctx, "close", c.leftOutLines(ctx), func(o *output) error {
		if !o.closes {
			return o.flush(ctx)
		}
		return o.close(ctx)
	}))
	limit, cancel := context.WithTimeout(ctx, c.closeTimeout) // outputs that have not returned still use ctx
	defer cancel()
	c.teller.finish(limit, nil, true)
	return c.shutdown.err
}

// Close is Shutdown within Options.CloseTimeout.
func (l *Logger) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), l.core.closeTimeout)
	defer cancel()
	return l.Shutdown(ctx)
}

// Stats counts lines by outcome.
type Stats struct {
	// Outputs in the order of Options.Outputs.
	Outputs []OutputStats

	// Sampled counts records that sampling left out and that were reported.
	Sampled uint64
}

// OutputStats counts the lines of one output, those that its level admits.
//
// Written counts lines that its writer took without an error; a buffering writer has
// Stats of its own for what followed. A line that waits for a writer is counted when
// the wait is over.
type OutputStats struct {
	Name string // Output.Name or its default

	// Dropped.Full counts lines dropped because another call was stuck in the writer,
	// or because they were not encoded in time at a Flush or at the end;
	// Dropped.TooLarge those that the writer found too large; Dropped.GaveUp those
	// with which it failed otherwise, wrote short or panicked. Pending is 1 while a
	// plain writer that no other output shares is in Write. Rejected counts records
	// logged after Shutdown or Close.
	line.Ledger

	Failing       bool  // the newest line was dropped
	LastError     error // of the last dropped line, or nil
	LastErrorTime time.Time
}

// Stats returns the counts of all Loggers derived from the same New. It never
// blocks.
func (l *Logger) Stats() Stats {
	s := Stats{Sampled: l.core.leftOut.Load()}
	for _, o := range l.core.outputs {
		s.Outputs = append(s.Outputs, o.stats())
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
