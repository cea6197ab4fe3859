package otellog_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"github.com/rollway/rollway"
	"github.com/rollway/rollway/bridge/otellog"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/log"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/trace"
)

// exporter keeps what the SDK exports.
type exporter struct {
	mu      sync.Mutex
	records []sdklog.Record
}

func (e *exporter) Export(_ context.Context, records []sdklog.Record) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range records {
		e.records = append(e.records, r.Clone())
	}
	return nil
}

func (e *exporter) Shutdown(context.Context) error   { return nil }
func (e *exporter) ForceFlush(context.Context) error { return nil }

func (e *exporter) take() []sdklog.Record {
	e.mu.Lock()
	defer e.mu.Unlock()
	records := e.records
	e.records = nil
	return records
}

// one returns the only record that was exported since the last call.
func (e *exporter) one(t *testing.T) sdklog.Record {
	t.Helper()
	records := e.take()
	if len(records) != 1 {
		t.Fatalf("%d records exported, want 1", len(records))
	}
	return records[0]
}

// newProvider returns a provider of OpenTelemetry's SDK that exports at once.
func newProvider(t testing.TB) (*sdklog.LoggerProvider, *exporter) {
	e := new(exporter)
	p := sdklog.NewLoggerProvider(sdklog.WithProcessor(sdklog.NewSimpleProcessor(e)), sdklog.WithAttributeCountLimit(-1))
	t.Cleanup(func() { p.Shutdown(context.Background()) })
	return p, e
}

func attrsOf(r sdklog.Record) map[string]any {
	m := make(map[string]any)
	r.WalkAttributes(func(kv attribute.KeyValue) bool {
		m[string(kv.Key)] = plain(kv.Value)
		return true
	})
	return m
}

// plain returns a value as Go has it.
func plain(v attribute.Value) any {
	switch v.Type() {
	case attribute.MAP:
		m := make(map[string]any)
		for _, kv := range v.AsMap() {
			m[string(kv.Key)] = plain(kv.Value)
		}
		return m
	case attribute.SLICE:
		list := make([]any, 0)
		for _, e := range v.AsSlice() {
			list = append(list, plain(e))
		}
		return list
	case attribute.EMPTY:
		return nil
	}
	return v.AsInterface()
}

var (
	spanContext = trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{0x4b, 15: 0x36}, SpanID: trace.SpanID{0xf0, 7: 0xb7}, TraceFlags: trace.FlagsSampled,
	})
	traceID = "4b000000000000000000000000000036"
	spanID  = "f0000000000000b7"
)

func newLogger(t *testing.T, o rollway.Options) *rollway.Logger {
	t.Helper()
	l, err := rollway.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestTrace(t *testing.T) {
	if _, _, ok := otellog.Trace(t.Context()); ok {
		t.Error("a context without a span has one")
	}
	tr, sp, ok := otellog.Trace(trace.ContextWithSpanContext(t.Context(), spanContext))
	if !ok || tr != spanContext.TraceID() || sp != spanContext.SpanID() {
		t.Errorf("got %x %x %v", tr, sp, ok)
	}
}

// TestSeverities: every level stays what it is.
func TestSeverities(t *testing.T) {
	p, e := newProvider(t)
	all := otellog.NewOutput(p, otellog.Options{})
	all.Level = slog.Level(-1000)
	o := newLogger(t, rollway.Options{Outputs: []rollway.Output{all}})
	for level, want := range map[slog.Level]struct {
		severity log.Severity
		text     string
	}{
		-100: {1, "TRACE-92"}, rollway.LevelTrace: {log.SeverityTrace, "TRACE"}, -5: {log.SeverityTrace4, "TRACE+3"},
		slog.LevelDebug: {log.SeverityDebug, "DEBUG"}, slog.LevelInfo: {log.SeverityInfo, "INFO"}, slog.LevelWarn: {log.SeverityWarn, "WARN"},
		5: {log.SeverityWarn2, "WARN+1"}, slog.LevelError: {log.SeverityError, "ERROR"}, rollway.LevelPanic: {log.SeverityError3, "PANIC"},
		rollway.LevelFatal: {log.SeverityFatal, "FATAL"}, 15: {log.SeverityFatal4, "FATAL+3"}, 100: {log.SeverityFatal4, "FATAL+88"},
	} {
		o.Log(t.Context(), level, "m")
		if r := e.one(t); r.Severity() != want.severity || r.SeverityText() != want.text {
			t.Errorf("%v became %v %q, want %v %q", level, r.Severity(), r.SeverityText(), want.severity, want.text)
		}
	}
}
