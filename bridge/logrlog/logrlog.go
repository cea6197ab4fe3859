// Package logrlog is a github.com/go-logr/logr, the logging interface of Kubernetes'
// libraries, that writes through a rollway Logger.
package logrlog

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/go-logr/logr"
	"github.com/rollway/rollway"
)

// Options configures a sink. Its zero value is the recommended setting.
type Options struct {
	// Level returns the level of logr's V(v). Default: V(0) is INFO, V(1) DEBUG, V(2)
	// TRACE, and each further one is one lower, TRACE-1 and so on, so that an
	// output's level can tell them apart. Every log call calls it.
	Level func(v int) slog.Level
}

// New returns a logr.Logger that writes through log:
//
//   - WithName becomes [rollway.Logger.Named]: dots join its names, and rules of
//     [rollway.Levels] apply to them.
//   - WithValues becomes [rollway.Logger.With].
//   - Error logs at ERROR at every V level, with err, if it is not nil, under the key
//     error.
//   - The source is the call of the logr.Logger's method, or the one that
//     WithCallDepth selects.
//   - A key that is not a string is formatted by package fmt. A last key without a
//     value becomes the value of !BADKEY, as in log/slog.
//   - A value with a MarshalLog method is the result of that method; all others, and
//     slog's LogValuer, are written as by rollway.
//
// logr passes no context, so its lines have no attributes from one. Records of
// log/slog through logr.ToSlogHandler do, and keep their level, source and groups:
// the sink is a logr.SlogSink. That handler uses V levels to ask whether a level is
// enabled, V(0) for INFO and WARN and V(4) for DEBUG, so Enabled of these is true if
// either meaning is written.
func New(log *rollway.Logger, o Options) logr.Logger {
	if o.Level == nil {
		o.Level = levelOf
	}
	return logr.New(&sink{Options: o, log: log})
}

func levelOf(v int) slog.Level {
	switch {
	case v <= 0:
		return slog.LevelInfo
	case v == 1:
		return slog.LevelDebug
	}
	return rollway.LevelTrace - slog.Level(v-2)
}

// sink is immutable, except during Init, which logr.New calls first.
type sink struct {
	Options
	log *rollway.Logger
}

var (
	_ logr.CallDepthLogSink = (*sink)(nil)
	_ logr.SlogSink         = (*sink)(nil)
)

// Init removes the frames of logr and of the sink from the source.
func (s *sink) Init(info logr.RuntimeInfo) { s.log = s.log.WithCallerSkip(info.CallDepth + 1) }

func (s *sink) Enabled(v int) bool {
	ctx := context.Background()
	if s.log.Enabled(ctx, s.Level(v)) {
		return true
	}
	switch v { // the questions of logr.ToSlogHandler
	case 0:
		return s.log.Enabled(ctx, slog.LevelError-1) // the highest level that it may mean
	case int(-slog.LevelDebug), int(-rollway.LevelTrace):
		return s.log.Enabled(ctx, slog.Level(-v))
	}
	return false
}

func (s *sink) Info(v int, msg string, keysAndValues ...any) {
	var buf [16]slog.Attr
	s.log.Log(context.Background(), s.Level(v), msg, appendAttrs(buf[:0], keysAndValues)...)
}

func (s *sink) Error(err error, msg string, keysAndValues ...any) {
	var buf [16]slog.Attr
	attrs := buf[:0]
	if err != nil {
		attrs = append(attrs, slog.Any("error", err))
	}
	s.log.Log(context.Background(), slog.LevelError, msg, appendAttrs(attrs, keysAndValues)...)
}

func (s *sink) WithValues(keysAndValues ...any) logr.LogSink {
	return &sink{s.Options, s.log.With(appendAttrs(nil, keysAndValues)...)}
}

func (s *sink) WithName(name string) logr.LogSink { return &sink{s.Options, s.log.Named(name)} }

func (s *sink) WithCallDepth(depth int) logr.LogSink {
	return &sink{s.Options, s.log.WithCallerSkip(depth)}
}

// Handle writes a record of slog.
func (s *sink) Handle(ctx context.Context, r slog.Record) error {
	if !s.log.Enabled(ctx, r.Level) {
		return nil
	}
	return s.log.Handler().Handle(ctx, r)
}

func (s *sink) WithAttrs(attrs []slog.Attr) logr.SlogSink {
	return &sink{s.Options, s.log.With(attrs...)}
}

func (s *sink) WithGroup(name string) logr.SlogSink { return &sink{s.Options, s.log.WithGroup(name)} }

func appendAttrs(dst []slog.Attr, list []any) []slog.Attr {
	for len(list) > 1 {
		key, ok := list[0].(string)
		if !ok {
			key = fmt.Sprint(list[0]) // package fmt reports panics in the text
		}
		dst = append(dst, slog.Attr{Key: key, Value: valueOf(list[1])})
		list = list[2:]
	}
	if len(list) == 1 {
		dst = append(dst, slog.Attr{Key: "!BADKEY", Value: valueOf(list[0])})
	}
	return dst
}

func valueOf(v any) slog.Value {
	if m, ok := v.(logr.Marshaler); ok {
		return slog.AnyValue(marshaler{m})
	}
	return slog.AnyValue(v)
}

// marshaler makes the Logger call MarshalLog when it encodes the value, so only if it
// does, and catch its panics.
type marshaler struct{ m logr.Marshaler }

func (m marshaler) LogValue() slog.Value { return slog.AnyValue(m.m.MarshalLog()) }
