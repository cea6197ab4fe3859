package rollway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rollway/rollway/internal/encode"
	"github.com/rollway/rollway/internal/levels"
	"github.com/rollway/rollway/line"
)

// lastWords is the time that an output has after a deadline to report its state,
// which is worth more than that the time was up.
const lastWords = 100 * time.Millisecond

// encodedLine is one record in every format of a core.
type encodedLine struct {
	level       slog.Level
	lines       [][]byte // one for each format; nil: not encoded in time
	r           *encode.Record
	scopes, ctx []encode.Scope
	attrs       []slog.Attr
}

// encodeLines encodes lines in every format that they lack, into memory of their own,
// until ctx ends. Each format has an equal share of the remaining time, so
// that one that hangs costs no other.
func (c *core) encodeLines(ctx context.Context, lines ...*encodedLine) {
	for _, e := range lines {
		if e.lines == nil {
			e.lines = make([][]byte, len(c.formats))
		}
	}
	for i, f := range c.formats {
		if !slices.ContainsFunc(lines, func(e *encodedLine) bool { return e.lines[i] == nil }) {
			continue
		}
		encoded := make([][]byte, len(lines))
		if endsWithin(ctx, untilDeadline(ctx)/time.Duration(len(c.formats)-i), func() {
			for j, e := range lines {
				encoded[j] = f.keep(e)
			}
		}) {
			for j, e := range lines {
				e.lines[i] = encoded[j]
			}
		}
	}
}

// keep returns the line in f, or an empty one if no output of f takes it.
func (f *format) keep(e *encodedLine) []byte {
	if !f.admits(e.level) {
		return []byte{}
	}
	s := scratchPool.Get().(*scratch)
	defer s.free()
	s.Buf = f.Line(s.Buf[:0], &s.Scratch, &e.scopes[f.index], f.scopeIn(e.ctx), e.r, e.attrs)
	return bytes.Clone(s.Buf)
}

// endsWithin runs f and reports whether it ended within limit and before ctx.
func endsWithin(ctx context.Context, limit time.Duration, f func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
		return true
	case <-ctx.Done():
	case <-time.After(limit):
	}
	return false
}

// halfOf returns a context for half of the time until ctx ends.
func halfOf(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, untilDeadline(ctx)/2)
}

// each runs do for every output concurrently, once per Writer, after writing lines,
// so that a stuck one delays no other. It abandons an output that has not answered
// lastWords after the end of ctx.
func (c *core) each(ctx context.Context, verb string, lines []*encodedLine, do func(*output) error) (errs []outputError) {
	results := make(chan outputError, 2*len(c.outputs))
	wrote := make(map[*output]*atomic.Bool, len(c.outputs)) // outputs without an answer
	for _, o := range c.outputs {
		if o.again {
			continue
		}
		done := new(atomic.Bool)
		wrote[o] = done
		go func() {
			r := outputError{o, errEnded}
			defer func() { results <- r }()
			err := o.writeLines(ctx, c, lines)
			done.Store(true)
			r.err = errors.Join(err, do(o))
		}()
	}
	fail := func(o *output, err error) {
		delete(wrote, o)
		if err != nil {
			errs = append(errs, outputError{o, fmt.Errorf("%s %s: %w", verb, o.name, err)})
		}
	}
	end, late := ctx.Done(), (<-chan time.Time)(nil)
	for len(wrote) > 0 {
		select {
		case r := <-results:
			if wrote[r.o] != nil {
				fail(r.o, r.err)
			}
		case <-end:
			end, late = nil, time.After(lastWords)
			for o, done := range wrote {
				if o.buffer != nil && !done.Load() { // it waits for room, and can report what is pending
					go func() {
						if err := o.flush(ctx); err != nil {
							results <- outputError{o, err}
						}
					}()
				}
			}
		case <-late:
			for _, o := range c.outputs {
				if wrote[o] != nil {
					fail(o, o.abandoned(ctx.Err()))
				}
			}
		}
	}
	return errs
}

// writeLines writes the lines that the users of o's writer admit. Its error names
// those known to be lost.
func (o *output) writeLines(ctx context.Context, c *core, lines []*encodedLine) error {
	var errs []error
	for _, e := range lines {
		for _, user := range o.users {
			if user.admits(e.level) {
				if err := user.writeLast(ctx, c, e); err != nil {
					errs = append(errs, fmt.Errorf("%w: a line at %s: %w", line.ErrLost, levels.Append(nil, e.level), err))
				}
			}
		}
	}
	return errors.Join(errs...)
}

// abandoned returns the error of an output whose writer has not returned in time.
func (o *output) abandoned(err error) error {
	if o.buffer == nil && o.stats().Pending > 0 {
		return fmt.Errorf("%w: Write has not returned: %w", line.ErrPending, err)
	}
	return fmt.Errorf("the writer has not returned: %w", err)
}

func join(errs []outputError) error {
	all := make([]error, len(errs))
	for i := range errs {
		all[i] = errs[i].err
	}
	return errors.Join(all...)
}

// flush waits until the destination has passed on its lines; for a direct one, until
// the calls in progress have returned.
func (o *output) flush(ctx context.Context) (err error) {
	defer recoverTo(&err, "flush", o.w)
	if f, ok := o.w.(interface{ Flush(context.Context) error }); ok {
		return f.Flush(ctx)
	}
	if o.buffer != nil {
		return nil
	}
	return o.locked(ctx, func() error {
		if f, ok := o.w.(interface{ Flush() error }); ok { // such as a bufio.Writer
			return f.Flush()
		}
		return nil
	})
}

// isClosable reports whether w has a Shutdown or a Close. The Logger does not close
// standard streams.
func isClosable(w io.Writer) bool {
	switch w {
	case os.Stdin, os.Stdout, os.Stderr:
		return false
	}
	switch w.(type) {
	case io.Closer, interface{ Shutdown(context.Context) error }:
		return true
	}
	return false
}

// close shuts the destination down by Shutdown, if it has one, or else by a flush and
// Close.
func (o *output) close(ctx context.Context) (err error) {
	defer recoverTo(&err, "close", o.w)
	if s, ok := o.w.(interface{ Shutdown(context.Context) error }); ok {
		return s.Shutdown(ctx)
	}
	return errors.Join(o.flush(ctx), o.locked(ctx, o.w.(io.Closer).Close))
}

// syncStable calls the destination's Sync, if it has one. It is not an error that a
// terminal or pipe cannot sync.
func (o *output) syncStable(ctx context.Context) (err error) {
	defer recoverTo(&err, "sync", o.w)
	if s, ok := o.w.(interface{ Sync() error }); ok {
		if o.buffer != nil {
			err = s.Sync()
		} else {
			err = o.locked(ctx, s.Sync)
		}
	}
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		err = nil
	}
	return err
}

// locked calls f under the lock, for which it waits until ctx ends.
func (o *output) locked(ctx context.Context, f func() error) error {
	if !o.lock.lockPatiently(otherTurn, untilDeadline(ctx)) {
		return errStuck
	}
	defer o.lock.unlockTurn(otherTurn)
	return f()
}

func recoverTo(err *error, verb string, w io.Writer) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%s of %T panicked: %v", verb, w, r)
	}
}

// untilDeadline returns the time until ctx's deadline, or an hour without one.
func untilDeadline(ctx context.Context) time.Duration {
	if t, ok := ctx.Deadline(); ok {
		return max(time.Until(t), time.Millisecond)
	}
	return time.Hour
}
