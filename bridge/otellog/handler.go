package otellog

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"slices"

	"github.com/rollway/rollway"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/log"
)

// NewHandler returns a slog.Handler that emits every record through p. It is safe for
// concurrent use and follows slog's rules for handlers.
//
//   - Enabled asks OpenTelemetry.
//   - The span is that of the context; the message is the body.
//   - Groups are maps. Values keep their type if OpenTelemetry has it. A duration is an
//     integer of nanoseconds and a time RFC 3339, as in a line. A uint64 beyond an int64
//     is a string of digits. A value of another type is encoded as by encoding/json, in
//     maps and slices.
//   - An error under the key error, outside groups, is exception.message and
//     exception.type.
//   - The source is code.file.path, code.line.number and code.function.name.
//
// Attributes that rollway.ContextWith put into the context come first, outside
// groups.
func NewHandler(p log.LoggerProvider, o Options) slog.Handler {
	return &handler{logger: o.logger(p, ""), scopes: []scope{{}}}
}

// handler is immutable.
type handler struct {
	logger log.Logger
	scopes []scope // the first is outside groups, the others are a group each
}

// scope is a group that WithGroup opened, and the attributes that WithAttrs added
// there.
type scope struct {
	group string
	attrs []attribute.KeyValue
}

func (h *handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.logger.Enabled(ctx, log.EnabledParameters{Severity: severityOf(level)})
}

func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	var out log.Record
	out.SetTimestamp(r.Time)
	out.SetSeverity(severityOf(r.Level))
	out.SetSeverityText(levelName(r.Level))
	out.SetBody(attribute.StringValue(r.Message))

	attrs := make([]attribute.KeyValue, 0, r.NumAttrs())
	r.Attrs(func(a slog.Attr) bool {
		attrs = appendAttr(attrs, a, len(h.scopes) == 1)
		return true
	})
	for i := len(h.scopes) - 1; i > 0; i-- {
		attrs = append(slices.Clip(h.scopes[i].attrs), attrs...)
		if len(attrs) > 0 {
			attrs = []attribute.KeyValue{attribute.Map(h.scopes[i].group, attrs...)}
		}
	}
	for _, a := range rollway.ContextAttrs(ctx) {
		out.AddAttributes(appendAttr(nil, a, true)...)
	}
	out.AddAttributes(h.scopes[0].attrs...)
	out.AddAttributes(attrs...)
	if r.PC != 0 {
		f, _ := runtime.CallersFrames([]uintptr{r.PC}).Next()
		out.AddAttributes(keyFile.String(f.File), keyLine.Int(f.Line), keyFunction.String(f.Function))
	}
	h.logger.Emit(ctx, out)
	return nil
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	d := &handler{h.logger, slices.Clone(h.scopes)}
	last := &d.scopes[len(d.scopes)-1]
	last.attrs = slices.Clip(last.attrs)
	for _, a := range attrs {
		last.attrs = appendAttr(last.attrs, a, len(d.scopes) == 1)
	}
	return d
}

func (h *handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return &handler{h.logger, append(slices.Clip(h.scopes), scope{group: name})}
}

// appendAttr appends the attributes that a becomes: none, one, or several. outside
// says that a is outside groups.
func appendAttr(dst []attribute.KeyValue, a slog.Attr, outside bool) []attribute.KeyValue {
	v := a.Value.Resolve()
	if a.Key == "" && v.Equal(slog.Value{}) {
		return dst
	}
	if v.Kind() == slog.KindGroup {
		if a.Key == "" {
			for _, g := range v.Group() {
				dst = appendAttr(dst, g, outside)
			}
			return dst
		}
		if len(v.Group()) == 0 {
			return dst
		}
	}
	if outside && a.Key == "error" {
		if err, ok := v.Any().(error); ok {
			return append(dst, keyMessage.String(text(err, err.Error)), keyType.String(fmt.Sprintf("%T", err)))
		}
	}
	return append(dst, attribute.KeyValue{Key: attribute.Key(a.Key), Value: valueOf(v)})
}

// text returns the result of method, or a text that says that it panicked: a value
// must not take down the caller of a log method.
func text(value any, method func() string) (s string) {
	defer func() {
		if p := recover(); p != nil {
			s = fmt.Sprintf("!PANIC: %T: %v", value, p)
		}
	}()
	return method()
}
