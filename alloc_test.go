//go:build !race

// Under the race detector sync.Pool drops values at random, which allocates.

package rollway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"runtime"
	"testing"
	"time"
)

// mallocsPerCall returns the allocations of n calls of f, divided by n, from
// the difference of runtime.MemStats.Mallocs: testing.AllocsPerRun rounds down
// and so hides a half.
func mallocsPerCall(n int, f func()) float64 {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for range 100 {
		f() // fills pools and caches
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range n {
		f()
	}
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / float64(n)
}

var (
	dynInts    = []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	dynStrings = []string{"a", "b", "c"}
	dynTimes   = []time.Time{dyn.t, dyn.t}
	dynUser    = &user{7, nil}
)

var errDyn = errors.New("card declined")

// TestAllocations holds every call shape to 0 allocations, with values that
// the compiler cannot know.
func TestAllocations(t *testing.T) {
	ctx := context.Background()
	one, err := New(Options{Outputs: []Output{{Writer: io.Discard}}})
	if err != nil {
		t.Fatal(err)
	}
	router, err := New(Options{Outputs: []Output{
		{Writer: io.Discard, Level: slog.LevelInfo, Encoder: JSON{}},
		{Writer: &bytes.Buffer{}, Level: slog.LevelError, Encoder: JSON{}},
		{Writer: io.Discard, Level: slog.LevelInfo, Encoder: Console{Color: ColorAlways}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	inContext := ContextWith(ctx, slog.String("request_id", dyn.str))
	levelVar := new(slog.LevelVar)
	dynamic, err := New(Options{Outputs: []Output{
		{Writer: io.Discard, Level: levelVar},
		{Writer: io.Discard, Level: slog.LevelError},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for name, l := range map[string]*Logger{"one": one, "router": router, "dynamic": dynamic, "derived": router.Named("db").With(slog.String("service", dyn.str), slog.Int("n", dyn.i)).WithGroup("g")} {
		shapes := map[string]func(){
			"Info 0":     func() { l.Info(ctx, dyn.msg) },
			"Info 2":     func() { l.Info(ctx, dyn.msg, slog.String("a", dyn.str), slog.Int("b", dyn.i)) },
			"disabled 0": func() { l.Debug(ctx, dyn.msg) },
			"disabled 2": func() { l.Debug(ctx, dyn.msg, slog.String("a", dyn.str), slog.Int("b", dyn.i)) },
			"Info 6": func() {
				l.Info(ctx, dyn.msg, slog.String("customer", dyn.str), slog.Int("retry", dyn.i), slog.Float64("ratio", dyn.f),
					slog.Bool("ok", dyn.b), slog.Duration("took", dyn.d), slog.Time("at", dyn.t))
			},
			"disabled 6": func() {
				l.Debug(ctx, dyn.msg, slog.String("customer", dyn.str), slog.Int("retry", dyn.i), slog.Float64("ratio", dyn.f),
					slog.Bool("ok", dyn.b), slog.Duration("took", dyn.d), slog.Time("at", dyn.t))
			},
			"Info 10": func() {
				l.Info(ctx, dyn.msg, slog.String("a", dyn.str), slog.Int("b", dyn.i), slog.Float64("c", dyn.f),
					slog.Bool("d", dyn.b), slog.Duration("e", dyn.d), slog.Time("f", dyn.t),
					slog.Uint64("g", uint64(dyn.i)), slog.String("h", dyn.str), slog.Int64("i", int64(dyn.i)), slog.String("j", dyn.str))
			},
			"disabled 10": func() {
				l.Debug(ctx, dyn.msg, slog.String("a", dyn.str), slog.Int("b", dyn.i), slog.Float64("c", dyn.f),
					slog.Bool("d", dyn.b), slog.Duration("e", dyn.d), slog.Time("f", dyn.t),
					slog.Uint64("g", uint64(dyn.i)), slog.String("h", dyn.str), slog.Int64("i", int64(dyn.i)), slog.String("j", dyn.str))
			},
			"Error with error and caller": func() { l.Error(ctx, dyn.msg, slog.Any("error", errDyn), slog.String("trace_id", dyn.str)) },
			"Log":                         func() { l.Log(ctx, slog.LevelInfo+2, dyn.msg, slog.String("a", dyn.str)) },
			"with context":                func() { l.Info(inContext, dyn.msg, slog.Int("b", dyn.i)) },
			"heavy": func() {
				l.Info(ctx, dyn.msg, slog.Any("ints", &dynInts), slog.Any("strings", &dynStrings), slog.Any("times", &dynTimes),
					slog.Any("user", dynUser), slog.Any("error", errDyn))
			},
			"DebugFunc, disabled": func() {
				l.DebugFunc(ctx, dyn.msg, func(a *Attrs) { a.Add(slog.String("a", dyn.str), slog.Int("b", dyn.i)) })
			},
			"LogFunc": func() {
				l.LogFunc(ctx, slog.LevelWarn, dyn.msg, func(a *Attrs) { a.Add(slog.String("a", dyn.str), slog.Int("b", dyn.i)) })
			},
			"Enabled":      func() { _ = l.Enabled(ctx, slog.LevelInfo) },
			"DebugEnabled": func() { _ = l.DebugEnabled() },
		}
		for shape, f := range shapes {
			if name == "router" && shape == "Error with error and caller" {
				continue // that output keeps what it is given, and grows
			}
			if shape == "heavy" && (name == "router" || name == "derived") {
				continue // the console formats such values with package fmt
			}
			t.Run(name+"/"+shape, func(t *testing.T) {
				// A collection in the middle empties the pools: a few are not ours.
				if got := mallocsPerCall(10_000, f); got > 0.005 {
					t.Errorf("%.4f allocations a call, want 0", got)
				}
			})
		}
	}
}

// TestAllocationsOfHandler: up to five attributes slog itself allocates
// nothing for a record, and neither does the Handler.
func TestAllocationsOfHandler(t *testing.T) {
	l, err := New(Options{Outputs: []Output{{Writer: io.Discard}}})
	if err != nil {
		t.Fatal(err)
	}
	s := slog.New(l.Handler()).With(slog.String("service", dyn.str))
	got := mallocsPerCall(10_000, func() {
		s.LogAttrs(context.Background(), slog.LevelInfo, dyn.msg, slog.String("a", dyn.str), slog.Int("b", dyn.i), slog.Time("f", dyn.t))
	})
	if got > 0.005 {
		t.Errorf("%.4f allocations a call, want 0", got)
	}
}
