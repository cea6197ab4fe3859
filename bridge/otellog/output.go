package otellog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"

	"github.com/rollway/rollway"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/trace"
)

// NewOutput returns an output that emits each record through p, with the types of its
// values and the context of the call, so that p's processors find the span there and
// whether it is sampled. Its level can be set:
//
//	out := otellog.NewOutput(p, otellog.Options{})
//	out.Level = slog.LevelWarn
//	log, err := rollway.New(rollway.Options{Outputs: []rollway.Output{file, out}})
//
// Groups are maps. Values keep their type if OpenTelemetry has it. A duration is an
// integer of nanoseconds and a time RFC 3339, as in a line. A uint64 beyond an int64 is
// a string of digits. A value of another type is encoded as by encoding/json, in maps
// and slices, or as its AppendLog method says. The source is code.file.path,
// code.line.number and code.function.name. The logger's name is the name of the
// instrumentation scope. Outside groups, error is exception.message and exception.type,
// service is service.name, stack is code.stacktrace, and trace_id and span_id are the
// record's if the context has no span. Flush of the Logger makes p export its records. Close
// and Shutdown leave p open. A panic of p or its processors counts as a failed line.
//
// The output is a plain writer of the Logger. If p does not return, for instance because
// it exports at once and the peer hangs, the call inside p hangs too. Other calls wait
// for at most rollway.Options.MaxWait and then drop the record for this output.
func NewOutput(p log.LoggerProvider, o Options) rollway.Output {
	e := &recordWriter{w: NewWriter(p, o)}
	return rollway.Output{Writer: e, Encoder: rollway.Custom{LineEncoder: e}}
}

// recordWriter keeps what AppendLine makes of a record until Write gets its number,
// which is all that is in the line.
type recordWriter struct {
	w    *Writer
	mu   sync.Mutex
	last uint64           // guarded by mu; number of the newest record
	kept [1 << 10]pending // guarded by mu; by number
}

// pending is a record that is not emitted yet. Later ones replace those of lines that
// the Logger has dropped.
type pending struct {
	number uint64
	*entry
	ctx context.Context
}

// AppendLine keeps r and appends its number.
func (e *recordWriter) AppendLine(dst []byte, r *rollway.Record) []byte {
	out := new(entry)
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
	out.addString("source", r.Source)
	if r.Function != "" {
		out.record.AddAttributes(keyFunction.String(r.Function))
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last++
	e.kept[e.last%uint64(len(e.kept))] = pending{e.last, out, r.Context()}
	return strconv.AppendUint(dst, e.last, 10)
}

// Write emits the record of a line.
func (e *recordWriter) Write(p []byte) (int, error) {
	number, err := strconv.ParseUint(string(bytes.TrimSpace(p)), 10, 64)
	if err != nil { // the Logger's line about a panic in AppendLine
		return 0, errors.New("otellog: encode: " + strings.TrimSpace(string(p)))
	}
	e.mu.Lock()
	kept := &e.kept[number%uint64(len(e.kept))]
	out := *kept
	if out.number == number {
		*kept = pending{}
	}
	e.mu.Unlock()
	if out.number != number {
		return 0, fmt.Errorf("otellog: emit: more than %d records at a time", len(e.kept))
	}
	e.w.loggerFor(out.entry).Emit(out.context(out.ctx), out.record)
	return len(p), nil
}

// addNamed adds a string that has an attribute of its own in OpenTelemetry, and
// reports whether it did.
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

// context returns ctx, with the span of the record if ctx has none.
func (e *entry) context(ctx context.Context) context.Context {
	if trace.SpanContextFromContext(ctx).IsValid() {
		return ctx
	}
	if sc := trace.NewSpanContext(e.span); sc.HasTraceID() || sc.HasSpanID() {
		return trace.ContextWithSpanContext(ctx, sc)
	}
	return ctx
}

// Flush makes the provider export its records, if it has ForceFlush.
func (e *recordWriter) Flush(ctx context.Context) error { return e.w.Flush(ctx) }
