package otellog

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"

	"github.com/rollway/rollway"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/trace"
)

// NewOutput returns an output that emits each record through p with the types
// that its values have and with the context of the call, so that what p's
// processors find there, as the span and whether it is sampled, is found. Its
// level can be set:
//
//	out := otellog.NewOutput(p, otellog.Options{})
//	out.Level = slog.LevelWarn
//	log, err := rollway.New(rollway.Options{Outputs: []rollway.Output{file, out}})
//
// Values and the source are as [NewHandler] has them; a type with an AppendLog
// method is what that appends. The logger's name is the name of the
// instrumentation scope. Outside groups, error is exception.message and
// exception.type, service is service.name, stack is code.stacktrace, and
// trace_id and span_id, where the context has no span, are the record's.
// Flush of the Logger has p export what it holds. Close and Shutdown are p's
// affair. A panic of p or its processors is counted as a failed line.
//
// A record is emitted after the other outputs have their line, and one at a time.
// If p does not return, for instance because it exports at once and the peer
// hangs, the call inside p waits until it does. Other calls wait for up to
// rollway.Options.MaxWait and then drop the record for this output. A LogValue
// method must not log to the same Logger: that call would wait for itself.
func NewOutput(p log.LoggerProvider, o Options) rollway.Output {
	e := &recordWriter{w: NewWriter(p, o)}
	return rollway.Output{Writer: e, Encoder: rollway.Custom{LineEncoder: e}}
}

// recordWriter emits where a format would encode, which the Logger has it do last
// as it is the Writer, too. What it encodes is an empty line, so all that is left
// to its Write is to tell whether that is so.
type recordWriter struct{ w *Writer }

// AppendLine emits r and appends nothing.
func (e *recordWriter) AppendLine(dst []byte, r *rollway.Record) []byte {
	var out entry
	out.logger = r.Logger
	out.record.SetTimestamp(r.Time)
	out.record.SetSeverity(severityOf(r.Level))
	out.record.SetSeverityText(levelName(r.Level))
	out.record.SetBody(attribute.StringValue(r.Message))
	out.span = trace.SpanContextConfig{TraceID: r.TraceID, SpanID: r.SpanID}
	attrs := make([]attribute.KeyValue, 0, 8)
	for a := range r.Attrs {
		if a.Value.Kind() != slog.KindString || !out.addNamed(a.Key, a.Value.String()) {
			attrs = appendAttr(attrs, a, true)
		}
	}
	out.record.AddAttributes(attrs...)
	if i := strings.LastIndexByte(r.Source, ':'); i >= 0 {
		if line, err := strconv.Atoi(r.Source[i+1:]); err == nil {
			out.record.AddAttributes(keyFile.String(r.Source[:i]), keyLine.Int(line))
		}
	}
	e.w.loggerFor(&out).Emit(out.context(r.Context()), out.record)
	return dst
}

// addNamed takes a string that has a place of its own, and reports whether it
// did.
func (e *entry) addNamed(key, s string) bool {
	switch key {
	case "service", "trace_id", "span_id":
		return e.addString(key, s)
	case "stack":
		e.record.AddAttributes(keyStackOfCall.String(s))
		return true
	}
	return false
}

// context returns ctx, with the span that the record names where it has none.
func (e *entry) context(ctx context.Context) context.Context {
	if trace.SpanContextFromContext(ctx).IsValid() {
		return ctx
	}
	if sc := trace.NewSpanContext(e.span); sc.HasTraceID() || sc.HasSpanID() {
		return trace.ContextWithSpanContext(ctx, sc)
	}
	return ctx
}

// Write returns an error if AppendLine has panicked.
func (e *recordWriter) Write(p []byte) (int, error) {
	if len(p) > 1 { // the Logger's line about a panic in AppendLine
		return 0, errors.New("otellog: emit: " + strings.TrimSpace(string(p)))
	}
	return len(p), nil
}

// Flush has the provider export what it holds, if it can be asked to.
func (e *recordWriter) Flush(ctx context.Context) error { return e.w.Flush(ctx) }
