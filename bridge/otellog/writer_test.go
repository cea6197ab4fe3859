package otellog_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollway/rollway"
	"github.com/rollway/rollway/bridge/otellog"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/trace"
)

// TestWriter: what a Logger is told arrives.
func TestWriter(t *testing.T) {
	p, e := newProvider(t)
	l := newLogger(t, rollway.Options{
		Outputs: []rollway.Output{{Writer: otellog.NewWriter(p, otellog.Options{Name: "pay", Version: "v1"}), Encoder: rollway.JSON{Errors: rollway.ErrorDetail}}},
		Trace:   otellog.Trace,
	})
	ctx := rollway.ContextWith(trace.ContextWithSpanContext(t.Context(), spanContext), slog.String("request_id", "r1"))
	begin := time.Now().Add(-time.Second)
	l.With(slog.String("service", "payment-api")).WithGroup("g").Warn(ctx, "failed\n\"so\"", slog.Int("n", 7), slog.Float64("f", 1.5),
		slog.Bool("b", true), slog.Uint64("u", math.MaxUint64), slog.Any("list", []any{1, "x", nil, map[string]int{"k": 1}}), slog.Duration("d", time.Second), slog.Float64("nan", math.NaN()))
	r := e.one(t)
	got := attrsOf(r)
	if file, _ := got["code.file.path"].(string); file != "otellog/writer_test.go" || got["code.line.number"].(int64) < 10 {
		t.Errorf("source: %v", got)
	}
	delete(got, "code.file.path")
	delete(got, "code.line.number")
	want := map[string]any{
		"service.name": "payment-api", "request_id": "r1",
		"g": map[string]any{"n": int64(7), "f": 1.5, "b": true, "u": "18446744073709551615", "d": int64(time.Second), "nan": "NaN",
			"list": []any{int64(1), "x", nil, map[string]any{"k": int64(1)}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("attributes:\n%v, want\n%v", got, want)
	}
	if r.Body().AsString() != "failed\n\"so\"" || r.Timestamp().Before(begin) || r.Timestamp().After(time.Now().Add(time.Second)) ||
		r.TraceID().String() != traceID || r.SpanID().String() != spanID || r.TraceFlags() != 0 {
		t.Errorf("record: %v %v %v %v %v", r.Body(), r.Timestamp(), r.TraceID(), r.SpanID(), r.TraceFlags())
	}
	if scope := r.InstrumentationScope(); scope.Name != "pay" || scope.Version != "v1" {
		t.Errorf("scope: %v", scope)
	}

	l.Named("db").Info(t.Context(), "m", slog.Any("error", fmt.Errorf("charge: %w", errors.New("declined"))))
	r = e.one(t)
	got = attrsOf(r)
	if got["exception.message"] != "charge: declined" || got["exception.type"] != "*fmt.wrapError" || r.InstrumentationScope().Name != "db" || r.TraceID().IsValid() {
		t.Errorf("error: %v of %v", got, r.InstrumentationScope())
	}
	if chain, _ := got["error"].(map[string]any); chain["causes"] == nil {
		t.Errorf("the chain is lost: %v", got)
	}
}

// TestWriterLines: lines as other programs may give them.
func TestWriterLines(t *testing.T) {
	p, e := newProvider(t)
	w := otellog.NewWriter(p, otellog.Options{})
	at := time.Date(2026, 5, 28, 12, 40, 0, 123456789, time.UTC)
	for _, c := range []struct {
		line string
		want map[string]any // of the attributes
	}{
		{`{}`, map[string]any{}},
		{`{"time":"2026-05-28T12:40:00.123456789Z","level":"INFO","msg":"m","error":"gone"}`, map[string]any{"exception.message": "gone"}},
		{`{"error":7,"attrs":[1],"time":1,"level":9,"msg":{"a":1}}`, map[string]any{"error": int64(7), "attrs": []any{int64(1)}, "time": int64(1), "level": int64(9), "msg": map[string]any{"a": int64(1)}}},
		{`{"level":"LOUD","time":"yesterday","source":"nowhere","trace_id":"xyz","span_id":""}`, map[string]any{"level": "LOUD", "time": "yesterday", "source": "nowhere", "trace_id": "xyz", "span_id": ""}},
		{`{"source":{"file":"a.go"},"extra":true}`, map[string]any{"source": map[string]any{"file": "a.go"}, "extra": true}},
		{`{"attrs":{"n":123456789012345678901234567890,"e":1e999,"m":-1.5e3,"d":{"a":{"b":[]}}}}`, map[string]any{"n": "123456789012345678901234567890", "e": "1e999", "m": -1500.0, "d": map[string]any{"a": map[string]any{"b": []any{}}}}},
		{`{"attrs":{"a":1,"a":2}}`, map[string]any{"a": int64(2)}}, // the SDK keeps the last
	} {
		n, err := w.Write([]byte(c.line + "\n"))
		if err != nil || n != len(c.line)+1 {
			t.Errorf("%s: %d, %v", c.line, n, err)
			continue
		}
		r := e.one(t)
		if got := attrsOf(r); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\n got %v\nwant %v", c.line, got, c.want)
		}
		if c.want["exception.message"] != nil && !r.Timestamp().Equal(at) {
			t.Errorf("time %v", r.Timestamp())
		}
	}
	good := `{"msg":"m"}` + "\n"
	for _, bad := range []string{"\n", "text\n", "[1]\n", `{"a":1` + "\n", `{"a" 1}` + "\n", `{}{}` + "\n", `{"attrs":{"a":tru}}` + "\n", "\"{}\"\n"} {
		if n, err := w.Write([]byte(good + bad + good)); err == nil || n != len(good) {
			t.Errorf("%q: %d, %v", bad, n, err)
		}
		e.one(t) // the one before
	}
	deep := `{"attrs":{"a":` + strings.Repeat("[", 1000) + `"end"` + strings.Repeat("]", 1000) + `}}`
	if _, err := w.Write([]byte(deep)); err != nil {
		t.Error(err)
	}
	if text := fmt.Sprint(attrsOf(e.one(t))["a"]); !strings.Contains(text, `["end"]`) {
		t.Errorf("deep value: %.100s", text)
	}
}

func FuzzWriter(f *testing.F) {
	f.Add([]byte(`{"time":"2026-05-28T12:40:00.123456789Z","level":"INFO","msg":"m","error":{"type":"b","message":"a"},"attrs":{"a":[1,{"b":null}]}}`))
	f.Add([]byte(`{"source":":","trace_id":"` + traceID + `","span_id":"` + spanID + `"}`))
	f.Add([]byte("{\"a\":1}\n{\"b\":\xff}\n"))
	f.Add([]byte(strings.Repeat(`{"a":`, 200)))
	p, e := newProvider(f)
	w := otellog.NewWriter(p, otellog.Options{})
	f.Fuzz(func(t *testing.T, p []byte) {
		n, err := w.Write(p)
		records := e.take()
		if err == nil && n != len(p) || n > len(p) {
			t.Fatalf("%d of %d, %v", n, len(p), err)
		}
		lines := 0
		for line := range bytes.Lines(p[:n]) {
			lines++
			if !json.Valid(line) {
				t.Errorf("%q was taken", line)
			}
		}
		if len(records) != lines {
			t.Errorf("%d records of %d lines", len(records), lines)
		}
	})
}

// TestWriterScopes: names without end do not fill the memory.
func TestWriterScopes(t *testing.T) {
	p, e := newProvider(t)
	l := newLogger(t, rollway.Options{Outputs: []rollway.Output{{Writer: otellog.NewWriter(p, otellog.Options{})}}})
	scopes := make(map[string]bool)
	for i := range 1000 {
		name := "user" + strconv.Itoa(i)
		l.Named(name).Info(t.Context(), "m")
		r := e.one(t)
		scope := r.InstrumentationScope().Name
		scopes[scope] = true
		if attr := attrsOf(r)["logger"]; scope != name && (scope != "rollway" || attr != name) {
			t.Fatalf("%s: scope %s, logger %v", name, scope, attr)
		}
	}
	if len(scopes) > 257 {
		t.Errorf("%d scopes", len(scopes))
	}
}

func TestWriterConcurrent(t *testing.T) {
	p, e := newProvider(t)
	l := newLogger(t, rollway.Options{
		Outputs: []rollway.Output{{Writer: otellog.NewWriter(p, otellog.Options{})}},
		MaxWait: time.Minute, // a busy machine drops nothing
	})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			d := l.Named("n" + strconv.Itoa(i%3))
			for range 50 {
				d.Info(t.Context(), "m", slog.Int("i", i))
			}
		})
	}
	wg.Wait()
	if n := len(e.take()); n != 400 {
		t.Errorf("%d records", n)
	}
	if s := l.Stats().Outputs[0]; s.Written != 400 || s.Dropped.Total() != 0 {
		t.Errorf("%+v", s)
	}
}

// TestWriterFlush: the Logger's flush reaches the exporter behind a batch.
func TestWriterFlush(t *testing.T) {
	e := new(exporter)
	p := sdklog.NewLoggerProvider(sdklog.WithProcessor(sdklog.NewBatchProcessor(e, sdklog.WithExportInterval(time.Hour))))
	defer p.Shutdown(context.Background())
	l := newLogger(t, rollway.Options{Outputs: []rollway.Output{{Writer: otellog.NewWriter(p, otellog.Options{})}}})
	l.Info(t.Context(), "m")
	if n := len(e.take()); n != 0 {
		t.Fatalf("%d records before the flush", n)
	}
	if err := l.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.one(t)
}

// TestWriterWrongEncoder: lines that are not JSON are counted as failed.
func TestWriterWrongEncoder(t *testing.T) {
	p, e := newProvider(t)
	l := newLogger(t, rollway.Options{
		Outputs: []rollway.Output{{Writer: otellog.NewWriter(p, otellog.Options{}), Encoder: rollway.Console{}}, {Writer: io.Discard}},
		OnError: func(error) {},
	})
	l.Info(t.Context(), "m")
	if s := l.Stats().Outputs[0]; s.Dropped.GaveUp != 1 || s.LastError == nil || len(e.take()) != 0 {
		t.Errorf("%+v", s)
	}
}
