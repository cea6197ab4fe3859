package otellog_test

import (
	"errors"
	"log/slog"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway"
	"github.com/rollway/rollway/bridge/otellog"
	"github.com/rollway/rollway/rollwaytest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/trace"
)

func TestProvider(t *testing.T) {
	var rec rollwaytest.Recorder
	l := newLogger(t, rollway.Options{Outputs: []rollway.Output{{Writer: &rec}}, Trace: otellog.Trace})
	o := otellog.NewProvider(l.Named("otel")).Logger("lib", log.WithInstrumentationVersion("v1"), log.WithInstrumentationAttributes(attribute.String("kind", "db")))
	at := time.Date(2026, 5, 28, 12, 40, 0, 123456789, time.UTC)
	ctx := rollway.ContextWith(trace.ContextWithSpanContext(t.Context(), spanContext), slog.String("request_id", "r1"))

	emit := func(build func(r *log.Record)) rollwaytest.Record {
		t.Helper()
		rec.Reset()
		var r log.Record
		build(&r)
		o.Emit(ctx, r)
		got := rec.Records()
		if len(got) != 1 || len(rec.Invalid()) > 0 {
			t.Fatalf("%d records: %v %v", len(got), got, rec.Invalid())
		}
		return got[0]
	}
	r := emit(func(r *log.Record) {
		r.SetTimestamp(at)
		r.SetObservedTimestamp(at.Add(time.Hour))
		r.SetSeverity(log.SeverityWarn2)
		r.SetSeverityText("warning")
		r.SetBody(attribute.StringValue("slow\nquery"))
		r.SetEventName("db.slow")
		r.SetErr(errors.New("timeout"))
		r.AddAttributes(attribute.Int("n", 7), attribute.Float64("f", 1.5), attribute.Float64("nan", math.NaN()), attribute.Bool("b", true),
			attribute.StringSlice("s", []string{"x"}), attribute.ByteSlice("raw", []byte("hi")),
			attribute.Slice("list", attribute.IntValue(1), attribute.MapValue(attribute.String("k", "v")), attribute.Float64Value(math.Inf(1))),
			attribute.Map("g", attribute.Int("a", 1), attribute.Map("h", attribute.Int("b", 2))), attribute.Map("none"), attribute.KeyValue{Key: "empty"})
	})
	want := map[string]any{
		"request_id": "r1", "scope_version": "v1", "kind": "db", "event_name": "db.slow", "severity_text": "warning",
		"n": int64(7), "f": 1.5, "nan": "NaN", "b": true, "s": []any{"x"}, "raw": "aGk=", "list": []any{int64(1), map[string]any{"k": "v"}, "Infinity"},
		"g": map[string]any{"a": int64(1), "h": map[string]any{"b": int64(2)}}, "none": map[string]any{}, "empty": nil,
	}
	if !r.Time.Equal(at) || r.Level != slog.LevelWarn+1 || r.Msg != "slow\nquery" || r.Error != "timeout" || r.Logger != "otel.lib" ||
		r.TraceID != traceID || r.SpanID != spanID || r.Source != nil {
		t.Errorf("got %s", r.Line)
	}
	if !reflect.DeepEqual(r.Attrs, want) {
		t.Errorf("got  %v\nwant %v\n%s", r.Attrs, want, r.Line)
	}

	r = emit(func(r *log.Record) { r.SetObservedTimestamp(at); r.SetEventName("started") })
	if !r.Time.Equal(at) || r.Level != slog.LevelInfo || r.Msg != "started" || r.Attrs["event_name"] != nil || r.Attrs["body"] != nil {
		t.Errorf("got %s", r.Line)
	}
	r = emit(func(r *log.Record) {
		r.SetSeverity(log.SeverityError)
		r.SetSeverityText("ERROR")
		r.SetBody(attribute.MapValue(attribute.Int("a", 1)))
	})
	if since := time.Since(r.Time); since.Abs() > time.Minute || r.Msg != "" || r.Attrs["severity_text"] != nil || !reflect.DeepEqual(r.Attrs["body"], map[string]any{"a": int64(1)}) {
		t.Errorf("got %s", r.Line)
	}
}

func TestProviderLevels(t *testing.T) {
	var rec rollwaytest.Recorder
	levels, err := rollway.NewLevels("info,quiet.*=error,loud=trace")
	if err != nil {
		t.Fatal(err)
	}
	p := otellog.NewProvider(newLogger(t, rollway.Options{Outputs: []rollway.Output{{Writer: &rec}}, Levels: levels}))
	for _, c := range []struct {
		scope    string
		severity log.Severity
		enabled  bool
	}{
		{"any", log.SeverityUndefined, true}, {"any", log.SeverityDebug, false}, {"any", log.SeverityInfo, true},
		{"quiet.lib", log.SeverityWarn, false}, {"quiet.lib", log.SeverityError, true}, {"loud", log.SeverityTrace, true}, {"", log.SeverityInfo, true},
	} {
		rec.Reset()
		l := p.Logger(c.scope)
		var r log.Record
		r.SetSeverity(c.severity)
		l.Emit(t.Context(), r)
		if got := l.Enabled(t.Context(), log.EnabledParameters{Severity: c.severity}); got != c.enabled || (len(rec.Records()) == 1) != c.enabled {
			t.Errorf("%s at %v: enabled %v, %d lines, want %v", c.scope, c.severity, got, len(rec.Records()), c.enabled)
		}
	}
}

// TestProviderRoundTrip: what goes through OpenTelemetry and back says the same.
func TestProviderRoundTrip(t *testing.T) {
	var rec rollwaytest.Recorder
	back := newLogger(t, rollway.Options{Outputs: []rollway.Output{{Writer: &rec, Level: rollway.LevelTrace}}, Trace: otellog.Trace})
	there := otellog.NewOutput(otellog.NewProvider(back), otellog.Options{})
	there.Level = rollway.LevelTrace
	out := newLogger(t, rollway.Options{Outputs: []rollway.Output{there}, Caller: rollway.LevelOff, Trace: otellog.Trace})
	for _, level := range []slog.Level{rollway.LevelTrace, slog.LevelDebug, slog.LevelInfo, slog.LevelWarn + 1, rollway.LevelPanic, rollway.LevelFatal} {
		rec.Reset()
		out.Named("db").WithGroup("g").Log(trace.ContextWithSpanContext(t.Context(), spanContext), level, "m \u2028\x00", slog.Int("n", 1), slog.String("s", "\u00e4"))
		r := rec.Records()[0]
		if r.Level != level || r.Msg != "m \u2028\x00" || r.Logger != "db" || r.TraceID != traceID || r.SpanID != spanID ||
			!reflect.DeepEqual(r.Attrs, map[string]any{"g": map[string]any{"n": int64(1), "s": "\u00e4"}}) || strings.Contains(r.Line, "severity_text") {
			t.Errorf("got %s", r.Line)
		}
	}
}
