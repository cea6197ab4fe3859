// Package zaplog is a core of go.uber.org/zap that writes through a rollway Logger: zap's
// calls stay, and lines get the Logger's formats, outputs and counts.
package zaplog

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rollway/rollway"
	"go.uber.org/zap/zapcore"
)

// New returns a core that writes through l, for zap.New(zaplog.New(l), zap.AddCaller()).
//
//   - The outputs of l decide what is written, by level and, with rollway.Levels, by the
//     name of the zap logger, which becomes [rollway.Logger.Named].
//   - zap's levels are slog's; DPanic is ERROR+1, and -2 TRACE. A line above ERROR is
//     synced before zap goes on, within rollway.Options.CloseTimeout.
//   - The time is the entry's. The source is that of zap.AddCaller, from the level of
//     rollway.Options.Caller on, and the attribute stack that of zap.AddStacktrace.
//   - Namespaces and objects are groups, as in slog. An inline object's namespaces end
//     with it. Times, durations, bytes and errors are written as the output does.
//   - A marshaler that fails becomes a group of its value and its error, one that panics
//     !PANIC and a text.
//   - A field with a context.Context is not written: it is the context of the call, and in
//     With of all later calls.
//   - Sync gives up after 5 s. Write returns no error: what outputs fail with is in Stats
//     and goes to rollway.Options.OnError.
//   - A line allocates only what zap does, and memory for objects and arrays.
func New(l *rollway.Logger) zapcore.Core {
	l = l.WithCallerSkip(2) // stacks begin after Write of core and of CheckedEntry
	return &core{log: l, lowest: l.LowestLevel(), ctx: context.Background()}
}

const maxNamed = 64 // cores that a core keeps

// core is immutable, except that it keeps named cores.
type core struct {
	log    *rollway.Logger
	lowest slog.Leveler    // of log and all names below it
	ctx    context.Context // from a field of With

	name   string               // of the zap logger that calls Write, or ""
	root   *core                // the core that a named core belongs to, or nil
	newest atomic.Pointer[core] // of the named cores that belong to this one
	older  *core                // the next of them
	made   atomic.Int64         // named cores, kept or not
}

// of returns the core for zap loggers of that name.
func (c *core) of(name string) *core {
	if name == c.name {
		return c
	}
	if c.root != nil { // a zapcore.CheckPreWriteHook has changed the name
		return c.root.of(name)
	}
	newest := c.newest.Load()
	for n := newest; n != nil; n = n.older {
		if n.name == name {
			return n
		}
	}
	n := &core{log: c.log.Named(name), lowest: c.lowest, ctx: c.ctx, name: name, root: c, older: newest}
	if c.made.Add(1) <= maxNamed {
		c.newest.CompareAndSwap(newest, n)
	}
	return n
}

// Enabled reports whether loggers of any name write at that level. Check knows the name.
func (c *core) Enabled(level zapcore.Level) bool { return c.lowest.Level() <= levelOf(level) }

func (c *core) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if n := c.of(e.LoggerName); n.log.Enabled(n.ctx, levelOf(e.Level)) {
		return ce.AddCore(e, n)
	}
	return ce
}

func (c *core) With(fields []zapcore.Field) zapcore.Core {
	d := &core{log: c.log, lowest: c.lowest, ctx: c.ctx}
	fields = slices.Clone(fields) // a Custom format keeps them
	for {
		attrs, rest := appendAttrs(&d.ctx, nil, fields)
		if d.log = d.log.With(attrs...); len(rest) == 0 {
			return d
		}
		d.log, fields = d.log.WithGroup(rest[0].Key), rest[1:]
	}
}

func (c *core) Write(e zapcore.Entry, fields []zapcore.Field) error {
	c = c.of(e.LoggerName)
	ctx, level := c.ctx, levelOf(e.Level)
	var buf [16]slog.Attr
	attrs, rest := appendAttrs(&ctx, buf[:0], fields)
	if len(rest) > 0 {
		attrs = append(attrs, group(&ctx, rest))
	}
	if e.Stack != "" {
		ctx = rollway.ContextWith(ctx, slog.String("stack", e.Stack)) // outside groups
	}
	pc := e.Caller.PC
	if pc != 0 {
		pc++ // zap has the address of the call; rollway wants that of the return
	}
	if e.Level > zapcore.ErrorLevel {
		c.log.LogSync(ctx, e.Time, pc, level, e.Message, slices.Clone(attrs)...) // so that buf need not be on the heap
	} else {
		c.log.LogAt(ctx, e.Time, pc, level, e.Message, attrs...)
	}
	return nil
}

func (c *core) Sync() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return c.log.Sync(ctx)
}

func levelOf(l zapcore.Level) slog.Level {
	switch l {
	case zapcore.DPanicLevel:
		return slog.LevelError + 1
	case zapcore.PanicLevel:
		return rollway.LevelPanic
	case zapcore.FatalLevel:
		return rollway.LevelFatal
	}
	return slog.Level(l) * slog.LevelWarn
}
