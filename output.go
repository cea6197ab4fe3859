package rollway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"sync/atomic"
	"syscall"
	"time"
)

// levelWriter is a writer that chooses by importance what to do when it cannot
// keep up. It is safe for concurrent use.
type levelWriter interface {
	WriteLevel(level slog.Level, p []byte) (int, error)
}

// output is one destination at run time. Its methods are safe for concurrent
// use.
type output struct {
	w      io.Writer
	buffer levelWriter // w, if it is one; else nil and w is written under lock
	lock   *stallLock  // outputs with the same Writer share it
	shares bool        // lock
	again  bool        // an output before it has the same Writer, and flushes and closes it
	format *format     // set when all formats are known
	closes bool

	level  slog.Leveler
	filter interface{ Admits(slog.Level) bool } // level, if it is one; else nil
	fixed  bool                                 // level never changes
	min    slog.Level                           // where fixed

	handed          counter       // lines written; of a direct output that shares no lock, the lock counts them
	failed, stalled atomic.Uint64 // lines
	unannounced     atomic.Uint64 // of a direct output: failed and stalled lines that no notice tells of yet
	lastError       atomic.Pointer[error]
	nextReport      atomic.Int64 // unix ns from which an error may be reported again
}

// counter is an atomic counter in parts, so that goroutines on different
// processors do not share a cache line.
type counter [8]struct {
	n atomic.Uint64
	_ [56]byte
}

func (c *counter) add(part uint32) { c[part%uint32(len(c))].n.Add(1) }

func (c *counter) load() (sum uint64) {
	for i := range c {
		sum += c[i].n.Load()
	}
	return sum
}

func newOutput(o Output, named bool) *output {
	out := &output{w: o.Writer, level: o.Level, closes: o.Close, lock: new(stallLock)}
	out.buffer, _ = o.Writer.(levelWriter)
	if out.level == nil && named {
		out.level = lowestLevel
	} else if out.level == nil {
		out.level = slog.LevelInfo
	}
	out.filter, _ = out.level.(interface{ Admits(slog.Level) bool })
	switch l := out.level.(type) {
	case slog.Level:
		out.fixed, out.min = true, l
	case LevelRange:
		out.fixed, out.min = true, l.Min
	}
	return out
}

// sameWriter reports whether both outputs write to one Writer.
func (o *output) sameWriter(p *output) bool {
	t := reflect.TypeOf(o.w)
	return t == reflect.TypeOf(p.w) && t.Comparable() && o.w == p.w
}

// admits reports whether the output takes records of level l.
func (o *output) admits(l slog.Level) bool {
	if o.fixed && o.filter == nil {
		return l >= o.min
	}
	return o.asks(l)
}

// asks is admits for a level that is code of the user's. Where that panics the
// record is taken.
func (o *output) asks(l slog.Level) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = true
		}
	}()
	if o.filter != nil {
		return o.filter.Admits(l)
	}
	return l >= o.level.Level()
}

// write hands one line to the destination and counts what became of it. part
// spreads the counting.
func (o *output) write(c *core, level slog.Level, line []byte, part uint32) {
	var err error
	if o.buffer != nil {
		err = o.callBuffer(level, line)
	} else if !o.enter(c, level) {
		o.stalled.Add(1)
		o.unannounced.Add(1)
		o.report(c, errStuck)
		return
	} else {
		err = o.callDirect(c, line)
	}
	if err != nil {
		if o.buffer != nil {
			o.failed.Add(1)
		}
		o.report(c, err)
		return
	}
	if o.buffer != nil || o.shares {
		o.handed.add(part)
	}
}

// written returns how many lines the destination took. A direct output with a
// lock of its own takes it once for each line, and the lock counts that anyway.
func (o *output) written() uint64 {
	if o.buffer != nil || o.shares {
		return o.handed.load()
	}
	lines := o.lock.turns() // before what is not a line or failed: never too many
	if other := o.lock.others.Load() + o.failed.Load(); lines > other {
		return lines - other
	}
	return 0
}

// errStuck is what a line gets when another is stuck in the writer.
var errStuck = errors.New("another call is stuck in the writer")

// errEnded is what a line gets whose writer called runtime.Goexit.
var errEnded = errors.New("the writer ended the goroutine")

// enter takes the lock of a direct output. A line before the end of the process
// waits for it as long as that may take.
func (o *output) enter(c *core, level slog.Level) bool {
	if level >= LevelPanic {
		return o.lock.lock(c.exitTimeout, true)
	}
	return o.lock.lock(c.stallBound, false)
}

func (o *output) callBuffer(level slog.Level, line []byte) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("writer panicked: %v", r)
		} else if err == errEnded {
			o.failed.Add(1) // nobody else will
		}
	}()
	err = errEnded
	n, failed := o.buffer.WriteLevel(level, line)
	return checkWrite(n, failed, line)
}

// callDirect writes under the lock, which the caller has taken, and gives it
// back. Lines that were lost are announced first.
func (o *output) callDirect(c *core, line []byte) (err error) {
	defer o.leave(&err)
	err = errEnded
	if o.unannounced.Load() > 0 {
		if err := o.announce(c); err != nil {
			return err
		}
	}
	n, failed := o.w.Write(line)
	return checkWrite(n, failed, line)
}

// announce writes a line that says how many were lost, in the output's format.
// It is called under the lock.
func (o *output) announce(c *core) error {
	lost := o.unannounced.Load()
	noun := " lines dropped"
	if lost == 1 {
		noun = " line dropped"
	}
	r := record{level: slog.LevelWarn, msg: "rollway: " + slog.Uint64Value(lost).String() + noun}
	r.setUnix(c.clock.now())
	s := scratchPool.Get().(*scratch)
	defer s.free()
	var bare state
	s.buf = o.format.append(s.buf[:0], s, &bare, nil, &r, []slog.Attr{slog.String("reason", "writer stalled or failed"), slog.Uint64("dropped", lost)})
	n, err := o.w.Write(s.buf)
	if err = checkWrite(n, err, s.buf); err == nil {
		o.unannounced.Add(-lost)
	}
	return err
}

// leave is deferred: it makes an error of a panic, counts the line if it was
// lost, and gives the lock back.
func (o *output) leave(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("writer panicked: %v", r)
	}
	if *err != nil {
		o.failed.Add(1)
		o.unannounced.Add(1)
	}
	o.lock.unlock()
}

func checkWrite(n int, err error, line []byte) error {
	if err == nil && n < len(line) {
		return io.ErrShortWrite
	}
	return err
}

// report passes err on, at a bounded rate.
func (o *output) report(c *core, err error) {
	err = fmt.Errorf("rollway: write to %T: %w", o.w, err)
	o.lastError.Store(&err)
	pause := time.Second
	if c.onError == nil {
		pause = 10 * time.Second
	}
	now := time.Now().UnixNano()
	next := o.nextReport.Load()
	if now < next || !o.nextReport.CompareAndSwap(next, now+int64(pause)) {
		return
	}
	c.tell(err, o.w)
}

// flush waits until the destination has passed on what it was given: for a
// direct one, until the calls under way have returned.
func (o *output) flush(ctx context.Context) (err error) {
	defer recoverTo(&err, "flush", o.w)
	if f, ok := o.w.(interface{ Flush(context.Context) error }); ok {
		return f.Flush(ctx)
	}
	if o.buffer != nil {
		return nil
	}
	return o.locked(ctx, func() error {
		if f, ok := o.w.(interface{ Flush() error }); ok { // a bufio.Writer and its kind
			return f.Flush()
		}
		return nil
	})
}

// close ends the destination: by Shutdown, if it has one that takes the
// deadline, else by Close.
func (o *output) close(ctx context.Context) (err error) {
	defer recoverTo(&err, "close", o.w)
	if s, ok := o.w.(interface{ Shutdown(context.Context) error }); ok {
		return s.Shutdown(ctx)
	}
	return o.locked(ctx, o.w.(io.Closer).Close)
}

// syncStable asks a destination that has a Sync to make its data stable. That
// a terminal or a pipe cannot is no error.
func (o *output) syncStable(ctx context.Context) (err error) {
	defer recoverTo(&err, "sync", o.w)
	switch s := o.w.(type) {
	case interface{ SyncContext(context.Context) error }:
		err = s.SyncContext(ctx)
	case interface{ Sync() error }:
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
	if !o.lock.lock(untilDeadline(ctx), true) {
		return errStuck
	}
	defer o.lock.unlockOther()
	return f()
}

func recoverTo(err *error, verb string, w io.Writer) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%s of %T panicked: %v", verb, w, r)
	}
}

// untilDeadline returns how long ctx allows to wait: an hour where it says
// nothing.
func untilDeadline(ctx context.Context) time.Duration {
	if t, ok := ctx.Deadline(); ok {
		return max(time.Until(t), time.Millisecond)
	}
	return time.Hour
}
