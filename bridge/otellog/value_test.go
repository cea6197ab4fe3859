package otellog_test

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway"
	"github.com/rollway/rollway/bridge/otellog"
)

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

// TestOutputValues: what slog passes on keeps its type if OpenTelemetry has it.
func TestOutputValues(t *testing.T) {
	p, e := newProvider(t)
	s := slog.New(newLogger(t, rollway.Options{Outputs: []rollway.Output{otellog.NewOutput(p, otellog.Options{})}}).Handler())
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
		t.Error("NaN was taken")
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
