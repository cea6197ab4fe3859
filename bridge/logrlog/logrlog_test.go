package logrlog_test

import (
	"errors"
	"log/slog"
	"math"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/rollway/rollway"
	"github.com/rollway/rollway/bridge/logrlog"
	"github.com/rollway/rollway/rollwaytest"
)

func newLogger(t *testing.T, level slog.Leveler, o logrlog.Options) (logr.Logger, *rollwaytest.Recorder) {
	t.Helper()
	rec := new(rollwaytest.Recorder)
	l, err := rollway.New(rollway.Options{
		Outputs: []rollway.Output{{Writer: rec, Level: level}},
		Caller:  slog.Level(math.MinInt32),
	})
	if err != nil {
		t.Fatal(err)
	}
	return logrlog.New(l, o), rec
}

func one(t *testing.T, rec *rollwaytest.Recorder) rollwaytest.Record {
	t.Helper()
	got := rec.Records()
	if len(got) != 1 || len(rec.Invalid()) > 0 {
		t.Fatalf("%d records, want 1: %v %v", len(got), got, rec.Invalid())
	}
	rec.Reset()
	return got[0]
}

func TestLevels(t *testing.T) {
	all := slog.Level(math.MinInt32)
	l, rec := newLogger(t, all, logrlog.Options{})
	for v, want := range map[int]slog.Level{0: slog.LevelInfo, 1: slog.LevelDebug, 2: rollway.LevelTrace, 3: -9, 10: -16, 127: -133} {
		l.V(v).Info("m")
		if r := one(t, rec); r.Level != want {
			t.Errorf("V(%d): %v, want %v", v, r.Level, want)
		}
		l.V(v).Error(nil, "m")
		if r := one(t, rec); r.Level != slog.LevelError {
			t.Errorf("V(%d).Error: %v", v, r.Level)
		}
	}
	l.V(1).V(1).Info("m")
	if r := one(t, rec); r.Level != rollway.LevelTrace {
		t.Errorf("V(1).V(1): %v", r.Level)
	}

	at := new(slog.LevelVar)
	l, rec = newLogger(t, at, logrlog.Options{})
	at.Set(slog.LevelDebug)
	if !l.Enabled() || !l.V(1).Enabled() || l.V(2).Enabled() {
		t.Error("Enabled is wrong at DEBUG")
	}
	at.Set(slog.LevelError)
	l.Info("m")
	if l.Enabled() || len(rec.Records()) != 0 {
		t.Error("INFO is enabled at ERROR")
	}
	l.Error(nil, "m") // errors are never below a verbosity
	one(t, rec)

	l, rec = newLogger(t, all, logrlog.Options{Level: func(v int) slog.Level { return slog.Level(-v) }})
	l.V(4).Info("m")
	if r := one(t, rec); r.Level != slog.LevelDebug {
		t.Errorf("V(4) with a mapping of the user's own: %v", r.Level)
	}
}

type key int

type marshals struct{ password string }

func (marshals) MarshalLog() any { return "hidden" }

type marshalsGroup struct{}

func (marshalsGroup) MarshalLog() any { return slog.GroupValue(slog.Int("n", 1)) }

type panics struct{}

func (panics) MarshalLog() any { panic("marshal") }
func (panics) String() string  { panic("string") }

func TestKeysAndValues(t *testing.T) {
	l, rec := newLogger(t, slog.LevelInfo, logrlog.Options{})
	for _, c := range []struct {
		list []any
		want map[string]any
	}{
		{nil, nil},
		{[]any{"a", 1, "b", "x", "c", true, "d", 1.5}, map[string]any{"a": int64(1), "b": "x", "c": true, "d": 1.5}},
		{[]any{"a"}, map[string]any{"!BADKEY": "a"}},
		{[]any{"a", 1, 2}, map[string]any{"a": int64(1), "!BADKEY": int64(2)}},
		{[]any{7, "seven", key(8), "eight", nil, "nil"}, map[string]any{"7": "seven", "8": "eight", "<nil>": "nil"}},
		{[]any{"a", nil, "err", errors.New("in a value")}, map[string]any{"a": nil, "err": "in a value"}},
		{[]any{"m", marshals{"secret"}, "g", marshalsGroup{}}, map[string]any{"m": "hidden", "g": map[string]any{"n": int64(1)}}},
		{[]any{"p", panics{}}, map[string]any{"p": "!PANIC: marshal"}},
		{[]any{panics{}, 1}, map[string]any{"%!v(PANIC=String method: string)": int64(1)}},
		{[]any{"s", struct{ A, B int }{1, 2}}, map[string]any{"s": map[string]any{"A": int64(1), "B": int64(2)}}},
		{[]any{slog.Int("attr", 1), 2}, map[string]any{"attr=1": int64(2)}},
	} {
		l.Info("info", c.list...)
		if r := one(t, rec); !reflect.DeepEqual(r.Attrs, c.want) {
			t.Errorf("Info(%v): got %s, want %v", c.list, r.Line, c.want)
		}
		l.Error(errors.New("gone"), "error", c.list...)
		if r := one(t, rec); !reflect.DeepEqual(r.Attrs, c.want) || r.Error != "gone" {
			t.Errorf("Error(%v): got %s, want %v", c.list, r.Line, c.want)
		}
		l.WithValues(c.list...).Info("with")
		if r := one(t, rec); !reflect.DeepEqual(r.Attrs, c.want) {
			t.Errorf("WithValues(%v): got %s, want %v", c.list, r.Line, c.want)
		}
	}
	l.Error(nil, "no error")
	if r := one(t, rec); r.Error != nil || strings.Contains(r.Line, "error\":null") {
		t.Errorf("got %s", r.Line)
	}
	var many []any
	for i := range 100 {
		many = append(many, "k"+strconv.Itoa(i), i)
	}
	l.Info("many", many...)
	if r := one(t, rec); len(r.Attrs) != 100 {
		t.Errorf("%d attributes of 100", len(r.Attrs))
	}
}

// TestMarshalerOfWhatIsNotWritten: MarshalLog may be expensive.
func TestMarshalerOfWhatIsNotWritten(t *testing.T) {
	l, _ := newLogger(t, slog.LevelInfo, logrlog.Options{})
	l.V(1).Info("m", "k", logr.Marshaler(calls{t}))
}

type calls struct{ t *testing.T }

func (c calls) MarshalLog() any { c.t.Error("called"); return nil }

// TestDerived: loggers that come of one share nothing that one of them changes.
func TestDerived(t *testing.T) {
	l, rec := newLogger(t, slog.LevelInfo, logrlog.Options{})
	base := l.WithName("ctrl").WithValues("a", 1)
	deeper := base.WithName("x").WithValues("b", 2)
	other := base.WithValues("c", 3)
	for _, c := range []struct {
		l    logr.Logger
		name string
		want map[string]any
	}{
		{l, "", nil},
		{base, "ctrl", map[string]any{"a": int64(1)}},
		{deeper, "ctrl.x", map[string]any{"a": int64(1), "b": int64(2)}},
		{other, "ctrl", map[string]any{"a": int64(1), "c": int64(3)}},
	} {
		c.l.Info("m")
		if r := one(t, rec); r.Logger != c.name || !reflect.DeepEqual(r.Attrs, c.want) {
			t.Errorf("got %s, want %s %v", r.Line, c.name, c.want)
		}
	}
}

// here returns the source of its caller's line, as rollway writes it.
func here(t *testing.T) string {
	_, _, line, ok := runtime.Caller(1)
	if !ok {
		t.Fatal("no caller")
	}
	return "logrlog/logrlog_test.go:" + strconv.Itoa(line)
}

//go:noinline
func helper(l logr.Logger) { l.WithCallDepth(1).Info("from a helper") }

//go:noinline
func callDepthHelper(l logr.Logger) {
	f, l := l.WithCallStackHelper()
	f()
	l.Info("from a helper")
}

func TestSource(t *testing.T) {
	l, rec := newLogger(t, slog.LevelInfo, logrlog.Options{})
	for what, f := range map[string]func() string{
		"Info":                func() string { l.Info("m"); return here(t) },
		"Error":               func() string { l.Error(nil, "m"); return here(t) },
		"derived":             func() string { l.V(0).WithName("n").WithValues("a", 1).Info("m"); return here(t) },
		"WithCallDepth":       func() string { helper(l); return here(t) },
		"WithCallStackHelper": func() string { callDepthHelper(l); return here(t) },
	} {
		want := f()
		if r := one(t, rec); r.Source != want {
			t.Errorf("%s: source %v, want %s", what, r.Source, want)
		}
	}
}

func TestConcurrent(t *testing.T) {
	l, rec := newLogger(t, slog.LevelInfo, logrlog.Options{})
	l = l.WithValues("a", 1)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			d := l.WithName("n"+strconv.Itoa(i)).WithValues("i", i)
			for range 50 {
				d.Info("m", "again", i)
			}
		})
	}
	wg.Wait()
	got := rec.Records()
	if len(got) != 800 || len(rec.Invalid()) > 0 {
		t.Fatalf("%d records, %v", len(got), rec.Invalid())
	}
	for _, r := range got {
		if r.Attrs["i"] != r.Attrs["again"] || r.Logger != "n"+strconv.FormatInt(r.Attrs["i"].(int64), 10) {
			t.Fatalf("got %s", r.Line)
		}
	}
}
