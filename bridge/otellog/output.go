package otellog

import (
	"bytes"
	"cmp"
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
	w := &recordWriter{Options: o, provider: p, loggers: make(map[string]log.Logger)}
	return rollway.Output{Writer: w, Encoder: rollway.Custom{LineEncoder: w}}
}

// recordWriter keeps what AppendLine makes of a record until Write gets its number,
// which is all that is in the line.
type recordWriter struct {
	Options
	provider log.LoggerProvider
	mu       sync.Mutex
	loggers  map[string]log.Logger // guarded by mu; by scope name
	last     uint64                // guarded by mu; number of the newest record
	kept     [1 << 10]pending      // guarded by mu; by number
}

// pending is a record that is not emitted yet. Later ones replace those of lines that
// the Logger has dropped.
type pending struct {
	number uint64
	logger string // name
	record log.Record
	ctx    context.Context
}

// maxScopes bounds the loggers that are kept, here and by the provider, which never
// removes one. Records of further loggers have the name in an attribute.
const maxScopes = 256

// AppendLine keeps r and appends its number.
func (w *recordWriter) AppendLine(dst []byte, r *rollway.Record) []byte {
	out := pending{logger: r.Logger, ctx: r.Context()}
	out.record.SetTimestamp(r.Time)
	out.record.SetSeverity(severityOf(r.Level))
	out.record.SetSeverityText(levelName(r.Level))
	out.record.SetBody(attribute.StringValue(r.Message))
	attrs, span := make([]attribute.KeyValue, 0, 8), trace.SpanContextConfig{TraceID: r.TraceID, SpanID: r.SpanID}
	for a := range r.Attrs {
		switch name := names[a.Key]; {
		case a.Value.Kind() == slog.KindString && name != "":
			attrs = append(attrs, name.String(a.Value.String()))
		case a.Value.Kind() != slog.KindString || !setSpan(&span, a):
			attrs = appendAttr(attrs, a, true)
		}
	}
	if i := strings.LastIndexByte(r.Source, ':'); i >= 0 {
		line, _ := strconv.Atoi(r.Source[i+1:]) // a number, in every Source
		attrs = append(attrs, keyFile.String(r.Source[:i]), keyLine.Int(line))
	}
	if r.Function != "" {
		attrs = append(attrs, keyFunction.String(r.Function))
	}
	out.record.AddAttributes(attrs...)
	if sc := trace.NewSpanContext(span); !trace.SpanContextFromContext(out.ctx).IsValid() && (sc.HasTraceID() || sc.HasSpanID()) {
		out.ctx = trace.ContextWithSpanContext(out.ctx, sc)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last++
	out.number = w.last
	w.kept[w.last%uint64(len(w.kept))] = out
	return strconv.AppendUint(dst, w.last, 10)
}

// names are the attributes of texts that have a name of their own in OpenTelemetry.
var names = map[string]attribute.Key{"service": keyService, "stack": keyStackOfCall}

// setSpan sets an id of span, and reports whether a is one.
func setSpan(span *trace.SpanContextConfig, a slog.Attr) bool {
	err := errors.New("no id")
	switch a.Key {
	case "trace_id":
		span.TraceID, err = trace.TraceIDFromHex(a.Value.String())
	case "span_id":
		span.SpanID, err = trace.SpanIDFromHex(a.Value.String())
	}
	return err == nil
}

// Write emits the record of a line.
func (w *recordWriter) Write(p []byte) (int, error) {
	number, err := strconv.ParseUint(string(bytes.TrimSpace(p)), 10, 64)
	if err != nil { // the Logger's line about a panic in AppendLine
		return 0, errors.New("otellog: encode: " + strings.TrimSpace(string(p)))
	}
	w.mu.Lock()
	kept := &w.kept[number%uint64(len(w.kept))]
	out := *kept
	if out.number == number {
		*kept = pending{}
	}
	w.mu.Unlock()
	if out.number != number {
		return 0, fmt.Errorf("otellog: emit: more than %d records at a time", len(w.kept))
	}
	w.loggerFor(&out).Emit(out.ctx, out.record)
	return len(p), nil
}

// loggerFor returns the logger of out's scope.
func (w *recordWriter) loggerFor(out *pending) log.Logger {
	w.mu.Lock()
	defer w.mu.Unlock()
	l, ok := w.loggers[out.logger]
	if !ok && len(w.loggers) >= maxScopes {
		out.record.AddAttributes(attribute.String("logger", out.logger))
		out.logger = ""
		l, ok = w.loggers[""]
	}
	if !ok {
		l = w.provider.Logger(cmp.Or(out.logger, w.Name, "rollway"), log.WithInstrumentationVersion(w.Version))
		w.loggers[out.logger] = l
	}
	return l
}

// Flush makes the provider export its records, if it has ForceFlush.
func (w *recordWriter) Flush(ctx context.Context) error {
	if p, ok := w.provider.(interface{ ForceFlush(context.Context) error }); ok {
		return p.ForceFlush(ctx)
	}
	return nil
}
