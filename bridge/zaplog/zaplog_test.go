package zaplog_test

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollway/rollway"
	"github.com/rollway/rollway/bridge/zaplog"
	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/rollwaytest"
	"github.com/rollway/rollway/slab"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

func newLogger(t testing.TB, o rollway.Options) *rollway.Logger {
	t.Helper()
	l, err := rollway.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// recorded returns a zap logger whose lines of every level are recorded.
func recorded(t testing.TB, options ...zap.Option) (*zap.Logger, *rollwaytest.Recorder) {
	rec := new(rollwaytest.Recorder)
	l := newLogger(t, rollway.Options{Outputs: []rollway.Output{{Writer: rec, Level: slog.Level(math.MinInt32)}}, Caller: slog.Level(math.MinInt32)})
	return zap.New(zaplog.New(l), options...), rec
}

func one(t testing.TB, rec *rollwaytest.Recorder) rollwaytest.Record {
	t.Helper()
	got := rec.Records()
	if len(got) != 1 || len(rec.Invalid()) > 0 {
		t.Fatalf("%d records, want 1: %v %v", len(got), got, rec.Invalid())
	}
	rec.Reset()
	return got[0]
}

// goOn lets a test go on after Fatal and Panic.
type goOn struct{}

func (goOn) OnWrite(*zapcore.CheckedEntry, []zapcore.Field) {}

func TestLevels(t *testing.T) {
	l, rec := recorded(t, zap.WithFatalHook(goOn{}), zap.WithPanicHook(goOn{}))
	for level, want := range map[zapcore.Level]slog.Level{
		-3: -12, -2: rollway.LevelTrace, zap.DebugLevel: slog.LevelDebug, zap.InfoLevel: slog.LevelInfo, zap.WarnLevel: slog.LevelWarn,
		zap.ErrorLevel: slog.LevelError, zap.DPanicLevel: 9, zap.PanicLevel: rollway.LevelPanic, zap.FatalLevel: rollway.LevelFatal,
	} {
		l.Log(level, "m")
		if r := one(t, rec); r.Level != want {
			t.Errorf("%v became %v, want %v", level, r.Level, want)
		}
	}

	at := new(slog.LevelVar)
	l = zap.New(zaplog.New(newLogger(t, rollway.Options{Outputs: []rollway.Output{{Writer: rec, Level: at}}})))
	for _, level := range []zapcore.Level{zap.DebugLevel, zap.InfoLevel, zap.WarnLevel, zap.ErrorLevel} {
		at.Set(slog.Level(level) * 4)
		for _, of := range []zapcore.Level{zap.DebugLevel, zap.InfoLevel, zap.WarnLevel, zap.ErrorLevel, zap.DPanicLevel} {
			if (l.Check(of, "m") != nil) != (of >= level) {
				t.Errorf("output at %v: Check of %v is wrong", level, of)
			}
		}
	}
}

// TestNames: rules for names decide, although zap asks for a level before it tells the
// name, and also while rules change.
func TestNames(t *testing.T) {
	rec := new(rollwaytest.Recorder)
	levels, err := rollway.NewLevels("warn,svc.db.*=debug")
	if err != nil {
		t.Fatal(err)
	}
	l := newLogger(t, rollway.Options{Levels: levels, Outputs: []rollway.Output{{Writer: rec}}})
	root := zap.New(zaplog.New(l.Named("svc")))
	for range 2 {
		for _, c := range []struct {
			l    *zap.Logger
			name string
			want bool
		}{
			{root, "svc", false},
			{root.Named("http"), "svc.http", false},
			{root.Named("db"), "svc.db", true},
			{root.Named("db").With(zap.Int("a", 1)).Named("pool"), "svc.db.pool", true},
		} {
			c.l.Debug("m")
			if got := rec.Records(); (len(got) == 1) != c.want || c.want && got[0].Logger != c.name {
				t.Errorf("%s at debug: %v", c.name, got)
			}
			rec.Reset()
		}
	}
	if err := levels.Set("error,svc.http=info"); err != nil {
		t.Fatal(err)
	}
	root.Named("db").Warn("m")
	root.Named("http").Info("m")
	if r := one(t, rec); r.Logger != "svc.http" {
		t.Errorf("after Set: %v", r)
	}
	for i := range 200 { // more than a core keeps
		root.Named("http").Info(strconv.Itoa(i))
		root.Named("n" + strconv.Itoa(i)).Error("m")
	}
	if got := rec.Records(); len(got) != 400 || got[399].Logger != "svc.n199" {
		t.Errorf("%d lines of many names, the last by %v", len(got), got[len(got)-1].Logger)
	}
}

// here returns the source of its caller's line, as rollway writes it.
func here() string {
	_, _, line, _ := runtime.Caller(1)
	return "zaplog/zaplog_test.go:" + strconv.Itoa(line)
}

func inlined(l *zap.Logger) string { l.Info("m"); return here() }

func TestCallerStackAndTime(t *testing.T) {
	at := time.Date(2026, 5, 28, 12, 40, 0, 123456789, time.UTC)
	l, rec := recorded(t, zap.AddCaller(), zap.WithClock(fixed{at}))
	for what, f := range map[string]func() string{
		"Info":    func() string { l.Info("m"); return here() },
		"Sugar":   func() string { l.Sugar().Infow("m", "k", 1); return here() },
		"Check":   func() string { l.Check(zap.InfoLevel, "m").Write(); return here() },
		"inlined": func() string { return inlined(l) },
		"With":    func() string { l.Named("n").With(zap.Int("a", 1)).Info("m"); return here() },
	} {
		want := f()
		if r := one(t, rec); r.Source != want || !r.Time.Equal(at) {
			t.Errorf("%s: source %v at %v, want %s", what, r.Source, r.Time, want)
		}
	}
	l.WithOptions(zap.WithCaller(false)).Info("m")
	if r := one(t, rec); r.Source != nil {
		t.Errorf("source %v without a caller", r.Source)
	}
	l.WithOptions(zap.AddStacktrace(zap.InfoLevel)).With(zap.Namespace("g")).Info("m", zap.Int("n", 1))
	if r := one(t, rec); !strings.HasPrefix(fmt.Sprint(r.Attrs["stack"]), "github.com/rollway/rollway/bridge/zaplog_test.TestCallerStackAndTime\n") ||
		!reflect.DeepEqual(r.Attrs["g"], map[string]any{"n": int64(1)}) {
		t.Errorf("got %s", r.Line)
	}
	// The Logger's own stack begins with zap's method.
	own := newLogger(t, rollway.Options{Outputs: []rollway.Output{{Writer: rec}}, Stack: slog.LevelInfo})
	zap.New(zaplog.New(own)).Info("m")
	if r := one(t, rec); !strings.HasPrefix(fmt.Sprint(r.Attrs["stack"]), "go.uber.org/zap.(*Logger).Info\n") {
		t.Errorf("got %s", r.Line)
	}
}

type fixed struct{ at time.Time }

func (f fixed) Now() time.Time                       { return f.at }
func (f fixed) NewTicker(time.Duration) *time.Ticker { return nil }

// TestContext: a context in a field is that of the call.
func TestContext(t *testing.T) {
	l, rec := recorded(t)
	ctx := rollway.ContextWith(t.Context(), slog.String("request", "r1"))
	l.Info("call", zap.Int("n", 1), zap.Any("ctx", ctx))
	if r := one(t, rec); !reflect.DeepEqual(r.Attrs, map[string]any{"request": "r1", "n": int64(1)}) {
		t.Errorf("got %s", r.Line)
	}
	d := l.With(zap.Any("ctx", ctx), zap.Namespace("g"), zap.Int("a", 1))
	d.Info("with", zap.Int("n", 1))
	if r := one(t, rec); !reflect.DeepEqual(r.Attrs, map[string]any{"request": "r1", "g": map[string]any{"a": int64(1), "n": int64(1)}}) {
		t.Errorf("got %s", r.Line)
	}
	l.Info("not in other loggers")
	if r := one(t, rec); r.Attrs != nil {
		t.Errorf("got %s", r.Line)
	}
}

// TestWrappedCores: samplers, tees, raised levels and hooks call the core as zap's own.
func TestWrappedCores(t *testing.T) {
	l, rec := recorded(t)
	sampled := l.WithOptions(zap.WrapCore(func(c zapcore.Core) zapcore.Core { return zapcore.NewSamplerWithOptions(c, time.Hour, 2, 10) }))
	for range 22 {
		sampled.With(zap.Int("a", 1)).Info("m")
	}
	if n := len(rec.Records()); n != 4 {
		t.Errorf("the sampler let %d of 22 pass, want 4", n)
	}
	rec.Reset()

	raised := l.WithOptions(zap.IncreaseLevel(zap.WarnLevel))
	raised.Info("m")
	raised.Warn("m")
	if r := one(t, rec); r.Level != slog.LevelWarn {
		t.Errorf("got %s", r.Line)
	}

	other, otherRec := recorded(t)
	calls := 0
	tee := zap.New(zapcore.NewTee(l.Core(), zapcore.RegisterHooks(other.Core(), func(zapcore.Entry) error { calls++; return nil })))
	tee.Named("n").Info("m", zap.Int("a", 1))
	if a, b := one(t, rec), one(t, otherRec); a.Logger != "n" || b.Logger != "n" || calls != 1 {
		t.Errorf("got %s and %s, %d calls of the hook", a.Line, b.Line, calls)
	}

	lazy := l.WithLazy(zap.Int("a", 1))
	lazy.Info("m")
	if r := one(t, rec); r.Attrs["a"] != int64(1) {
		t.Errorf("got %s", r.Line)
	}

	// Something that changes an entry after Check.
	renamed := zap.New(renaming{l.Core()})
	renamed.Named("a").Info("m")
	if r := one(t, rec); r.Logger != "b" || r.Level != slog.LevelWarn {
		t.Errorf("got %s", r.Line)
	}
}

type renaming struct{ zapcore.Core }

func (r renaming) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	return r.Core.Check(e, ce).Before(e, func(e zapcore.Entry, f []zapcore.Field) (zapcore.Entry, []zapcore.Field) {
		e.LoggerName, e.Level = "b", zap.WarnLevel
		return e, f
	})
}

// TestBeforeTheEnd: a program that zap ends has its last lines in the file, although a
// slab.Writer is between.
func TestBeforeTheEnd(t *testing.T) {
	if path := os.Getenv("ZAPLOG_FATAL"); path != "" {
		f, err := file.Open(path, file.Options{})
		if err != nil {
			t.Fatal(err)
		}
		lines, err := slab.New(f, slab.Options{FlushInterval: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		l := zap.New(zaplog.New(newLogger(t, rollway.Options{Outputs: []rollway.Output{{Writer: lines}}})))
		func() {
			defer func() { _ = recover() }()
			l.Info("first")
			l.Panic("panic", zap.Int("n", 1))
		}()
		if data, err := os.ReadFile(path); err != nil || strings.Count(string(data), "\n") != 2 {
			t.Fatalf("after Panic the file has %q, %v", data, err)
		}
		l.Fatal("fatal", zap.Error(errors.New("gone")))
	}
	path := filepath.Join(t.TempDir(), "log")
	cmd := exec.Command(os.Args[0], "-test.run=^TestBeforeTheEnd$")
	cmd.Env = append(os.Environ(), "ZAPLOG_FATAL="+path)
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 1 || len(out) > 0 {
		t.Fatalf("%v: %s", err, out)
	}
	data, err := os.ReadFile(path)
	if lines := strings.Split(string(data), "\n"); err != nil || len(lines) != 4 || !strings.Contains(lines[1], `"level":"PANIC"`) || !strings.Contains(lines[2], `"level":"FATAL","msg":"fatal"`) || !strings.Contains(lines[2], `"error":"gone"`) {
		t.Errorf("%v: %s", err, data)
	}
}

func TestSync(t *testing.T) {
	d := new(rollwaytest.Destination)
	lines, err := slab.New(d, slab.Options{FlushInterval: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	l := zap.New(zaplog.New(newLogger(t, rollway.Options{Outputs: []rollway.Output{{Writer: lines}}})))
	l.Info("m")
	if len(d.Lines()) != 0 {
		t.Error("the line was not buffered")
	}
	if err := l.Sync(); err != nil || len(d.Lines()) != 1 || d.Syncs() != 1 {
		t.Errorf("%v, %d lines, %d syncs", err, len(d.Lines()), d.Syncs())
	}
	d.FailSync(errors.New("no space"))
	if err := l.Sync(); err == nil || !strings.Contains(err.Error(), "no space") {
		t.Errorf("Sync returned %v", err)
	}
}

// TestLedger: every line that zap checked is accounted for, while the destination fails
// and its end comes amid calls.
func TestLedger(t *testing.T) {
	const goroutines, calls = 8, 500
	d := new(rollwaytest.Destination)
	d.FailTimes(300)
	rec := new(rollwaytest.Recorder)
	own := newLogger(t, rollway.Options{OnError: func(error) {}, Outputs: []rollway.Output{{Writer: d}, {Writer: rec}}})
	root := zap.New(zaplog.New(own))
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			l := root.Named("g" + strconv.Itoa(g%3)).With(zap.Int("g", g))
			for i := range calls {
				l.Info("m", zap.Int("i", i), zap.Object("o", pair{g, i}), zap.Ints("list", []int{g, i}))
				l.Debug("below the level", zap.Int("i", i))
			}
		})
	}
	wg.Wait()
	s := own.Stats()
	rollwaytest.Ledger{Ledger: s.Outputs[0].Ledger}.CheckSettled(t, goroutines*calls, len(d.Lines())-1) // one tells of the loss
	rollwaytest.Ledger{Ledger: s.Outputs[1].Ledger}.CheckSettled(t, goroutines*calls, goroutines*calls)
	if dropped := s.Outputs[0].Dropped.GaveUp; dropped != 300 {
		t.Errorf("%d lines dropped, want 300", dropped)
	}
	next := map[int64]int64{}
	for _, r := range rec.Records() {
		g := r.Attrs["g"].(int64)
		i := next[g]
		next[g]++
		if want := map[string]any{"g": g, "i": i, "o": map[string]any{"a": g, "b": i}, "list": []any{g, i}}; !reflect.DeepEqual(r.Attrs, want) || r.Logger != "g"+strconv.Itoa(int(g%3)) {
			t.Fatalf("got %s, want %v", r.Line, want)
		}
	}
	if err := own.Close(); err != nil {
		t.Error(err)
	}
	root.Info("after Close")
	if s := own.Stats().Outputs[1]; s.Rejected != 1 || s.Accepted != goroutines*calls {
		t.Errorf("after Close: %+v", s)
	}
}

type pair struct{ a, b int }

func (p pair) MarshalLogObject(e zapcore.ObjectEncoder) error {
	e.AddInt("a", p.a)
	e.AddInt("b", p.b)
	return nil
}
