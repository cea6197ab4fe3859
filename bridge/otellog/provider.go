package otellog

import (
	"context"
	"log/slog"

	"github.com/rollway/rollway"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/log/embedded"
)

// NewProvider returns a log.LoggerProvider whose loggers write through l. It is safe
// for concurrent use and needs no shutdown.
//
//   - The scope's name is the Logger's, below that of l; its version is the
//     attribute scope_version, its attributes are attributes.
//   - The time is the record's timestamp, else when it was observed, else now. A
//     record without a severity is at INFO.
//   - The message is the body, if that is a string; else the name of the event,
//     and the body is the attribute body.
//   - The name of the event is the attribute event_name, if it is not the
//     message; a severity text other than the level's own name is severity_text.
//   - Maps are groups. The error is the line's error.
//   - Lines carry what l's outputs take from a context: rollway.ContextWith, and
//     the span with [Trace] as rollway.Options.Trace.
func NewProvider(l *rollway.Logger) log.LoggerProvider { return provider{log: l} }

type provider struct {
	embedded.LoggerProvider
	log *rollway.Logger
}

func (p provider) Logger(name string, options ...log.LoggerOption) log.Logger {
	cfg := log.NewLoggerConfig(options...)
	l := p.log.Named(name)
	if v := cfg.InstrumentationVersion(); v != "" {
		l = l.With(slog.String("scope_version", v))
	}
	set := cfg.InstrumentationAttributes()
	l = l.With(slogAttrs(set.ToSlice())...)
	return &logger{log: l}
}

// logger is immutable.
type logger struct {
	embedded.Logger
	log *rollway.Logger
}

func (l *logger) Enabled(ctx context.Context, p log.EnabledParameters) bool {
	return l.log.Enabled(ctx, levelOf(p.Severity))
}

func (l *logger) Emit(ctx context.Context, r log.Record) {
	level := levelOf(r.Severity())
	if !l.log.Enabled(ctx, level) {
		return
	}
	at := r.Timestamp()
	if at.IsZero() {
		at = r.ObservedTimestamp()
	}
	body, event := r.Body(), r.EventName()
	msg := event
	if body.Type() == attribute.STRING {
		msg = body.AsString()
	}
	out := make([]slog.Attr, 0, r.AttributesLen()+4)
	if body.Type() != attribute.STRING && body.Type() != attribute.EMPTY {
		out = append(out, slogAttr(attribute.KeyValue{Key: "body", Value: body}))
	}
	if event != "" && event != msg {
		out = append(out, slog.String("event_name", event))
	}
	if s := r.SeverityText(); s != "" && s != levelName(level) && s != r.Severity().String() {
		out = append(out, slog.String("severity_text", s))
	}
	if err := r.Err(); err != nil {
		out = append(out, slog.Any("error", err))
	}
	r.WalkAttributes(func(kv attribute.KeyValue) bool {
		out = append(out, slogAttr(kv))
		return true
	})
	l.log.LogAt(ctx, at, 0, level, msg, out...)
}
