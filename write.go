package rollway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/rollway/rollway/internal/encode"
	"github.com/rollway/rollway/line"
)

// errStuck is the error of a line that cannot wait for a stuck writer.
var errStuck = errors.New("another call is stuck in the writer")

// errNotEncoded is the error of a last line, or a report of sampling, whose encoding
// took too long.
var errNotEncoded = errors.New("the line was not encoded in time")

// errEnded is the error of a line whose writer called runtime.Goexit.
var errEnded = errors.New("the writer ended the goroutine")

// write hands one line to the destination, waits as that requires, and counts the
// outcome. part selects a part of the counter.
func (o *output) write(c *core, level slog.Level, p []byte, part uint32) {
	if o.buffer != nil {
		_ = o.settle(c, o.callBuffer(c, level, p), part)
	} else if o.lock.lock(c.maxWait) {
		_ = o.settle(c, o.callDirect(c, p), part)
	} else {
		_ = o.leaveOut(c, errStuck)
	}
}

// tryBuffer is write for a destination that buffers, if it need not wait; otherwise
// it returns false without effect. It is also done with a line that is dropped at
// once.
func (o *output) tryBuffer(c *core, level slog.Level, p []byte, part uint32) (done bool) {
	if o.tries == nil {
		return false // it may wait
	}
	switch err := o.callTry(c, level, p); err {
	case nil:
		o.handed.add(part)
	case line.ErrWouldWait:
		return false
	case line.ErrFull:
		o.write(c, level, p, part) // does not wait, and counts the line as dropped
	default:
		_ = o.fail(c, err)
	}
	return true
}

// tryDirect is tryBuffer for a direct destination.
func (o *output) tryDirect(c *core, p []byte, part uint32) (done bool) {
	if !o.lock.try() {
		if !o.lock.hopeless() {
			return false
		}
		_ = o.leaveOut(c, errStuck)
		return true
	}
	_ = o.settle(c, o.callDirect(c, p), part)
	return true
}

// writeLast is write for a line at the end of the process. It waits until ctx ends
// for a writer that is stuck or full, and returns the line's error.
func (o *output) writeLast(ctx context.Context, c *core, e *encodedLine) error {
	const part = 0
	p := e.lines[o.format.index]
	switch {
	case p == nil:
		return o.leaveOut(c, errNotEncoded)
	case len(p) == 0:
		return nil // it did not admit the level
	}
	if o.buffer == nil {
		if !o.lock.lockPatiently(lineTurn, untilDeadline(ctx)) {
			return o.leaveOut(c, errStuck)
		}
		return o.settle(c, o.callDirect(c, p), part)
	}
	if o.tries != nil {
		err := o.callTry(c, e.level, p)
		if err == line.ErrWouldWait || err == line.ErrFull {
			_ = o.flush(ctx) // makes room; the flush that follows reports its error
			err = o.callTry(c, e.level, p)
		}
		switch {
		case err != line.ErrWouldWait && err != line.ErrFull:
			return o.settle(c, err, part)
		case err == line.ErrWouldWait && ctx.Err() != nil:
			return o.leaveOut(c, err)
		}
	}
	return o.settle(c, o.callBuffer(c, e.level, p), part)
}

// settle counts a line whose outcome is known and returns err.
func (o *output) settle(c *core, err error, part uint32) error {
	if err != nil {
		return o.fail(c, err)
	}
	if o.counts {
		o.handed.add(part)
	}
	return nil
}

func (o *output) fail(c *core, err error) error {
	if o.buffer != nil { // leave has counted the line of a direct output
		o.count(err)
	}
	o.report(c, err)
	return err
}

// leaveOut drops a line that would have to wait too long.
func (o *output) leaveOut(c *core, err error) error {
	o.dropped.full.Add(1)
	o.unannounced.Add(1)
	o.report(c, err)
	return err
}

// count counts a line as dropped for err.
func (o *output) count(err error) {
	if isTooLarge(err) {
		o.dropped.tooLarge.Add(1)
	} else {
		o.dropped.gaveUp.Add(1)
	}
}

func isTooLarge(err error) bool {
	defer func() { _ = recover() }() // an Is of the user's may panic
	return errors.Is(err, line.ErrTooLarge)
}

// report stores err and passes it to the teller.
func (o *output) report(c *core, err error) {
	written, _ := o.written()
	o.lastError.Store(&failure{err, time.Now(), written})
	c.teller.lost(o)
}

func (o *output) callBuffer(c *core, level slog.Level, p []byte) (err error) {
	defer o.caught(c, &err)
	err = errEnded
	n, failed := o.buffer.WriteLevel(level, p)
	return checkWrite(n, failed, p)
}

func (o *output) callTry(c *core, level slog.Level, p []byte) (err error) {
	defer o.caught(c, &err)
	err = errEnded
	return o.tries.TryWriteLevel(level, p)
}

// caught is deferred. It turns a panic into an error, and settles the line if the
// goroutine ends.
func (o *output) caught(c *core, err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("writer panicked: %v", r)
	} else if *err == errEnded {
		o.count(errEnded)
		o.report(c, errEnded)
	}
}

// callDirect writes under the lock, which the caller has acquired, and releases it.
// It announces lost lines first.
func (o *output) callDirect(c *core, p []byte) (err error) {
	defer o.leave(c, &err)
	err = errEnded
	if o.unannounced.Load() > 0 {
		if err := o.announce(c); err != nil {
			return err
		}
	}
	n, failed := o.w.Write(p)
	return checkWrite(n, failed, p)
}

// leave is deferred. It turns a panic into an error, counts the line if it was lost,
// and releases the lock.
func (o *output) leave(c *core, err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("writer panicked: %v", r)
	}
	if *err != nil {
		o.count(*err)
		o.unannounced.Add(1)
	}
	o.lock.unlock()
	if *err == errEnded { // the goroutine ends
		o.report(c, errEnded)
	}
}

// announce writes a line in the output's format that says how many were lost. It is
// called under the lock.
func (o *output) announce(c *core) error {
	lost := o.unannounced.Load()
	r := encode.Record{Level: slog.LevelWarn, Message: "rollway: " + linesOf(lost) + " dropped"}
	r.SetUnix(c.clock.now())
	c.rewriteFields(&r)
	s := scratchPool.Get().(*scratch)
	defer s.free()
	s.Buf = o.format.Line(s.Buf[:0], &s.Scratch, new(encode.Scope), nil, &r, []slog.Attr{slog.String("reason", "writer stalled or failed"), slog.Uint64("dropped", lost)})
	n, err := o.w.Write(s.Buf)
	if err = checkWrite(n, err, s.Buf); err == nil {
		o.unannounced.Add(-lost)
	}
	return err
}

func checkWrite(n int, err error, p []byte) error {
	if err == nil && n < len(p) {
		return io.ErrShortWrite
	}
	return err
}

// linesOf returns "1 line", "2 lines" and so on.
func linesOf(n uint64) string {
	if n == 1 {
		return "1 line"
	}
	return slog.Uint64Value(n).String() + " lines"
}

// lost returns how many lines were dropped.
func (o *output) lost() uint64 {
	return o.dropped.full.Load() + o.dropped.tooLarge.Load() + o.dropped.gaveUp.Load()
}

// written returns how many lines the destination has taken, and whether a Write is in
// progress. The lock of a direct output counts its lines, unless outputs share it.
func (o *output) written() (written, pending uint64) {
	if o.counts {
		return o.handed.load(), 0
	}
	ended, pending := o.lock.turns() // read before the failed ones, so never too many
	return ended - min(ended, o.dropped.tooLarge.Load()+o.dropped.gaveUp.Load()), pending
}

func (o *output) stats() OutputStats {
	s := OutputStats{Name: o.name}
	f := o.lastError.Load()
	s.Written, s.Pending = o.written()
	s.Dropped = line.Drops{Full: o.dropped.full.Load(), TooLarge: o.dropped.tooLarge.Load(), GaveUp: o.dropped.gaveUp.Load()}
	s.Accepted = s.Written + s.Dropped.Total() + s.Pending
	s.Rejected = o.rejected.Load()
	if f != nil {
		s.Failing, s.LastError, s.LastErrorTime = s.Written == f.written, f.err, f.at
	}
	return s
}
