package otellog_test

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/slogtest"
	"time"

	"github.com/rollway/rollway/bridge/otellog"
	"go.opentelemetry.io/otel/trace"
)

func TestHandlerSlogtest(t *testing.T) {
	var e *exporter
	slogtest.Run(t, func(t *testing.T) slog.Handler {
		p, exported := newProvider(t)
		e = exported
		return otellog.NewHandler(p, otellog.Options{})
	}, func(t *testing.T) map[string]any {
		r := e.one(t)
		m := map[string]any{slog.LevelKey: r.SeverityText(), slog.MessageKey: r.Body().AsString()}
		if !r.Timestamp().IsZero() {
			m[slog.TimeKey] = r.Timestamp()
		}
		maps.Copy(m, attrsOf(r))
		return m
	})
}

type panics struct{}

func (panics) Error() string                { panic("method") }
func (panics) LogValue() slog.Value         { panic("method") }
func (panics) MarshalJSON() ([]byte, error) { panic("method") }

type panicsInJSON struct{}

func (panicsInJSON) MarshalJSON() ([]byte, error) { panic("method") }

type user struct {
	ID   int      `json:"id"`
	Tags []string `json:"tags"`
}

func TestHandlerValues(t *testing.T) {
	p, e := newProvider(t)
	s := slog.New(otellog.NewHandler(p, otellog.Options{}))
	at := time.Date(2026, 5, 28, 14, 40, 0, 123456789, time.FixedZone("", 7200))
	for _, c := range []struct {
		value any
		want  any
	}{
		{"text", "text"}, {7, int64(7)}, {uint64(7), int64(7)}, {uint64(math.MaxUint64), "18446744073709551615"},
		{1.5, 1.5}, {true, true}, {time.Second, int64(time.Second)}, {at, "2026-05-28T12:40:00.123456789Z"},
		{nil, nil}, {errors.New("gone"), "gone"}, {[]byte{1, 2}, []byte{1, 2}}, {[]string{"a"}, []string{"a"}},
		{[]int{1}, []int64{1}}, {[]int64{1}, []int64{1}}, {[]float64{1}, []float64{1}}, {[]bool{true}, []bool{true}},
		{user{7, []string{"x"}}, map[string]any{"id": int64(7), "tags": []any{"x"}}},
		{map[string]any{"f": 1.0, "n": nil, "e": 1e300}, map[string]any{"f": int64(1), "n": nil, "e": 1e300}},
		{make(chan int), ""}, {panicsInJSON{}, "{}"},
		{slog.GroupValue(slog.Int("a", 1), slog.Group("g", slog.Bool("b", true))), map[string]any{"a": int64(1), "g": map[string]any{"b": true}}},
	} {
		s.Info("m", "v", c.value)
		got := attrsOf(e.one(t))["v"]
		if _, isChan := c.value.(chan int); isChan {
			if text, ok := got.(string); !ok || !strings.HasPrefix(text, "0x") {
				t.Errorf("chan: got %v", got)
			}
		} else if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%#v: got %#v, want %#v", c.value, got, c.want)
		}
	}
	s.Info("m", "v", math.NaN())
	if f, ok := attrsOf(e.one(t))["v"].(float64); !ok || !math.IsNaN(f) {
		t.Error("NaN is none")
	}
	s.Info("m", "v", panics{}, "error", panics{})
	e.one(t) // nothing of it reached the caller

	deep := any("end")
	for range 200 {
		deep = []any{deep}
	}
	s.Info("m", "v", deep)
	if got := fmt.Sprint(attrsOf(e.one(t))["v"]); !strings.Contains(got, `["end"]`) {
		t.Errorf("deep value: %.200s", got)
	}
}

func TestHandlerRecord(t *testing.T) {
	p, e := newProvider(t)
	s := slog.New(otellog.NewHandler(p, otellog.Options{Name: "pay", Version: "v1"}))
	begin := time.Now()
	ctx := trace.ContextWithSpanContext(t.Context(), spanContext)
	s.With("error", errors.New("older")).WarnContext(ctx, "failed")
	r := e.one(t)
	if got := attrsOf(r); got["exception.message"] != "older" || got["exception.type"] != "*errors.errorString" || got["error"] != nil {
		t.Errorf("error of With: %v", got)
	}
	s.WithGroup("g").WarnContext(ctx, "failed", "error", errors.New("in a group"))
	if got := attrsOf(e.one(t)); !reflect.DeepEqual(got["g"], map[string]any{"error": "in a group"}) {
		t.Errorf("error in a group: %v", got)
	}
	s.WarnContext(ctx, "failed", "error", fmt.Errorf("charge: %w", errors.New("declined")))
	r = e.one(t)
	got := attrsOf(r)
	if got["exception.message"] != "charge: declined" || got["exception.type"] != "*fmt.wrapError" {
		t.Errorf("error: %v", got)
	}
	if file, _ := got["code.file.path"].(string); !strings.HasSuffix(file, "handler_test.go") || got["code.line.number"] == int64(0) || got["code.function.name"] == "" {
		t.Errorf("source: %v", got)
	}
	if r.Body().AsString() != "failed" || r.Timestamp().Before(begin) || r.TraceID() != spanContext.TraceID() || r.SpanID() != spanContext.SpanID() {
		t.Errorf("record: %v %v %v %v", r.Body(), r.Timestamp(), r.TraceID(), r.SpanID())
	}
	if scope := r.InstrumentationScope(); scope.Name != "pay" || scope.Version != "v1" {
		t.Errorf("scope: %v", scope)
	}
}

// TestHandlerDerived: handlers that come of one share nothing that one of them
// changes.
func TestHandlerDerived(t *testing.T) {
	p, e := newProvider(t)
	base := slog.New(otellog.NewHandler(p, otellog.Options{})).With("a", 1).WithGroup("g").With("b", 2)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			d := base.With("c", i)
			for range 20 {
				d.Info("m", "again", i)
			}
		})
	}
	wg.Wait()
	records := e.take()
	for _, r := range records {
		got := attrsOf(r)
		g, _ := got["g"].(map[string]any)
		if got["a"] != int64(1) || g["b"] != int64(2) || g["c"] != g["again"] || len(g) != 3 {
			t.Fatalf("got %v", got)
		}
	}
	if len(records) != 320 {
		t.Errorf("%d records", len(records))
	}
}

func TestHandlerEnabled(t *testing.T) {
	p, _ := newProvider(t)
	h := otellog.NewHandler(p, otellog.Options{})
	if !h.Enabled(t.Context(), slog.LevelInfo) {
		t.Error("off with a processor")
	}
	p.Shutdown(t.Context())
	if h.Enabled(t.Context(), slog.LevelInfo) {
		t.Error("on after the provider's shutdown")
	}
}
