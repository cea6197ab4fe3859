package rollway

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rollway/rollway/internal/encode"
	"github.com/rollway/rollway/internal/levels"
	"github.com/rollway/rollway/internal/panicsite"
)

// Panic logs at PANIC (10), syncs every output, and panics with msg, whether or not
// an output takes that level. The line and the sync together take at most
// Options.CloseTimeout. After Close, Options.OnError receives the message.
func (l *Logger) Panic(ctx context.Context, msg string, attrs ...slog.Attr) {
	l.logLast(ctx, LevelPanic, msg, attrs)
	panic(msg)
}

// Fatal logs at FATAL (12), syncs every output, and ends the process with status 1
// through Options.Exit, whether or not an output takes that level. The line and the
// sync together take at most Options.CloseTimeout; Options.OnError receives what is
// not delivered. After Close it receives the message.
func (l *Logger) Fatal(ctx context.Context, msg string, attrs ...slog.Attr) {
	l.logLast(ctx, LevelFatal, msg, attrs)
	l.core.exit(1)
}

// logLast is log for the methods above.
//
//go:noinline
func (l *Logger) logLast(ctx context.Context, level slog.Level, msg string, attrs []slog.Attr) {
	l.last(ctx, l.newRecord(level, msg, callerPC(callerSkip+l.skip), callerSkip+1+l.skip), attrs, true)
}

// LogSync is LogAt followed by Sync, within Options.CloseTimeout together: for code
// that logs the last line of a process, at FATAL or above, or of a task that
// panicked. Options.OnError receives what is not delivered; at FATAL and above
// LogSync waits for it.
func (l *Logger) LogSync(ctx context.Context, at time.Time, pc uintptr, level slog.Level, msg string, attrs ...slog.Attr) {
	r := l.newRecord(level, msg, pc, callerSkip+l.skip)
	if !at.IsZero() {
		r.SetTime(at)
	}
	l.last(ctx, r, attrs, level >= LevelFatal)
}

// lastRecord is a record whose stack, if it has one, was taken early.
type lastRecord struct {
	encode.Record
	stack string
}

// newRecord returns a record of the call at pc. Its stack begins skip frames above
// the caller.
func (l *Logger) newRecord(level slog.Level, msg string, pc uintptr, skip int) lastRecord {
	c := l.core
	r := lastRecord{Record: encode.Record{Level: level, Message: msg}}
	r.SetUnix(c.clock.now())
	if c.caller.admits(level) {
		r.Source = sourceOf(pc)
	}
	if c.stack.admits(level) {
		r.stack = stack(skip)
	}
	return r
}

// LogPanic logs the value p of a panic at PANIC, with the stack and the source of the
// panic, and syncs every output, within Options.CloseTimeout together. Options.Redact
// redacts p like an attribute. LogPanic is for a deferred function that has recovered
// p and does not panic again, as in servers. The time is at, or now if at is zero.
func (l *Logger) LogPanic(ctx context.Context, at time.Time, p any) {
	l.logPanic(ctx, at, p, false)
}

// FlushOnPanic is for defer statements in main and in functions that run on
// goroutines of their own. If the function panics, FlushOnPanic logs that as LogPanic
// does and panics again. After Close, OnError receives the message.
//
//	defer log.FlushOnPanic()
func (l *Logger) FlushOnPanic() {
	if p := recover(); p != nil {
		l.logPanic(context.Background(), time.Time{}, p, true)
		panic(p)
	}
}

// logPanic is LogPanic; end says that the process is about to end. Its caller is a
// deferred function or is called by one; panicsite.Find requires that.
func (l *Logger) logPanic(ctx context.Context, at time.Time, p any, end bool) {
	pc, stack := panicsite.Find()
	if rd := l.core.redact; rd != nil {
		p = rd.Panic(p)
	}
	r := l.newRecord(LevelPanic, panicsite.Text(p), pc, 2)
	if !at.IsZero() {
		r.SetTime(at)
	}
	l.last(ctx, r, []slog.Attr{slog.String("stack", stack)}, end)
}

// ExitOnSignal ends the process at one of the signals, by default os.Interrupt and
// SIGTERM. It logs the signal at INFO and syncs every output, within
// Options.CloseTimeout together, passes what is not delivered to Options.OnError, and
// exits through Options.Exit with status 128 + the signal's number, as shells do. It
// is for programs without a graceful shutdown; others call Shutdown. stop cancels it
// and waits for its goroutine; Options.Exit must not call stop.
func (l *Logger) ExitOnSignal(signals ...os.Signal) (stop func()) {
	if len(signals) == 0 {
		signals = []os.Signal{os.Interrupt, syscall.SIGTERM}
	}
	return l.exitOn(func(c chan<- os.Signal) func() {
		signal.Notify(c, signals...)
		return func() { signal.Stop(c) }
	})
}

// exitOn is ExitOnSignal for signals sent to the channel that notify gets, until the
// function that notify returns is called.
func (l *Logger) exitOn(notify func(chan<- os.Signal) func()) (stop func()) {
	ch := make(chan os.Signal, 1)
	done, ended := make(chan struct{}), make(chan struct{})
	unnotify := notify(ch)
	go func() {
		defer close(ended)
		select {
		case sig := <-ch:
			l.last(context.Background(), l.newRecord(slog.LevelInfo, "signal: "+sig.String(), 0, 0), nil, true)
			number, _ := sig.(syscall.Signal)
			l.core.exit(128 + int(number))
		case <-done:
		}
	}()
	var once sync.Once
	return func() {
		once.Do(func() {
			unnotify()
			close(done)
		})
		<-ended
	}
}

// last logs r and syncs every output within Options.CloseTimeout. It abandons
// outputs, and values in attrs, that do not return in time. end says that the process
// is about to end. After Close no output takes a Fatal or Panic, so OnError receives
// its message.
func (l *Logger) last(ctx context.Context, r lastRecord, attrs []slog.Attr, end bool) {
	c := l.core
	limit, cancel := context.WithTimeout(context.Background(), c.closeTimeout)
	defer cancel()
	if c.closed.Load() {
		c.reject(r.Level)
		if end && r.Level >= LevelPanic && l.gate.Level() <= r.Level {
			c.tellLate(&r.Record)
		}
		select {
		case <-c.shutdown.done:
		case <-limit.Done():
		}
		c.teller.finish(limit, nil, end)
		return
	}
	c.teller.finish(limit, c.sync(limit, l.encodeLast(limit, ctx, r, slices.Clone(attrs))), end)
}

// tellLate reports the message of a record that comes after Shutdown.
func (c *core) tellLate(r *encode.Record) {
	if c.redact != nil {
		r.Message = c.redact.Text(r.Message)
	}
	err := fmt.Errorf("rollway: logged after Close, at %s: %s", levels.Append(nil, r.Level), r.Message)
	c.teller.queue.Do(func() { c.teller.tell(err, nil) })
}

// encodeLast returns the line for r, if it is to be written, and those that report
// sampling. It takes half of the time until limit ends; the rest is for lines logged
// before.
func (l *Logger) encodeLast(limit, ctx context.Context, r lastRecord, attrs []slog.Attr) (lines []*encodedLine) {
	limit, cancel := halfOf(limit)
	defer cancel()
	if l.gate.Level() <= r.Level {
		if e := l.lastLine(limit, ctx, r, attrs); e != nil {
			lines = append(lines, e)
		}
	}
	return append(lines, l.core.leftOutLines(limit)...)
}

// lastLine returns the line for r, or nil if it is not to be written. If encoding
// takes more than half of the time until limit ends, attributes are left out.
func (l *Logger) lastLine(limit, ctx context.Context, r lastRecord, attrs []slog.Attr) *encodedLine {
	c, plain := l.core, l.plainLine(ctx, r, attrs)
	half, cancel := halfOf(limit)
	defer cancel()
	var whole *encodedLine
	taken := true
	ended := endsWithin(half, untilDeadline(half), func() {
		if taken = !c.picky || l.accepts(ctx, r.Level, r.Message, attrs); taken {
			if c.extras || r.stack != "" { // in a scratch that the record keeps
				attrs = l.complete(ctx, scratchPool.Get().(*scratch), &r.Record, attrs, r.stack)
			}
			whole = &encodedLine{level: r.Level, r: &r.Record, scopes: l.scopes, ctx: c.scopesOf(ctx), attrs: attrs}
		}
	})
	switch {
	case ended && !taken:
		return nil
	case !ended || whole == nil:
		c.encodeLines(limit, plain)
		return plain
	}
	c.encodeLines(half, whole)
	if !slices.ContainsFunc(whole.lines, func(line []byte) bool { return line == nil }) {
		return whole
	}
	plain.lines = whole.lines
	c.encodeLines(limit, plain)
	return plain
}

// plainLine returns a line for r with only those attributes that run no code of the
// user's. It names the others.
func (l *Logger) plainLine(ctx context.Context, r lastRecord, attrs []slog.Attr) *encodedLine {
	e := &encodedLine{level: r.Level, r: &r.Record, scopes: l.scopes}
	path := strings.Join(append(slices.Clone(l.groups), ""), ".")
	var names []string
	for _, a := range attrs {
		switch a.Value.Kind() {
		case slog.KindAny, slog.KindGroup, slog.KindLogValuer:
			names = append(names, path+a.Key)
		default:
			e.attrs = append(e.attrs, a)
		}
	}
	if len(names) > 0 {
		r.Outer = append(r.Outer, slog.Any(encode.LeftOutKey, names))
	}
	if r.stack != "" && !encode.HasKey(attrs, stackKey) {
		r.Outer = append(r.Outer, slog.String(stackKey, r.stack))
	}
	if rd := l.core.redact; rd != nil {
		r.Message, e.attrs = rd.Text(r.Message), rd.Attrs(l.groups, e.attrs)
	}
	if l.core.custom {
		r.Context = ctx
	}
	return e
}
