package logruslog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
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
	"github.com/rollway/rollway/bridge/logruslog"
	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/internal/testkit"
	"github.com/rollway/rollway/rollwaytest"
	"github.com/rollway/rollway/slab"
	"github.com/sirupsen/logrus"
)

func newLogger(t testing.TB, o rollway.Options) *rollway.Logger {
	t.Helper()
	l, err := rollway.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// recorded returns a logrus logger whose entries of every level are recorded.
func recorded(t testing.TB) (*logrus.Logger, *rollwaytest.Recorder) {
	rec := new(rollwaytest.Recorder)
	l := logrus.New()
	l.SetLevel(logrus.TraceLevel)
	l.ExitFunc = func(int) {}
	logruslog.Redirect(l, newLogger(t, rollway.Options{Outputs: []rollway.Output{{Writer: rec, Level: slog.Level(math.MinInt32)}}, Caller: slog.Level(math.MinInt32)}))
	return l, rec
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

func TestLevels(t *testing.T) {
	l, rec := recorded(t)
	for level, want := range map[logrus.Level]slog.Level{
		logrus.TraceLevel: rollway.LevelTrace, logrus.DebugLevel: slog.LevelDebug, logrus.InfoLevel: slog.LevelInfo, logrus.WarnLevel: slog.LevelWarn,
		logrus.ErrorLevel: slog.LevelError, logrus.FatalLevel: rollway.LevelFatal, logrus.PanicLevel: rollway.LevelPanic,
	} {
		l.Log(level, "m")
		if r := one(t, rec); r.Level != want || r.Msg != "m" {
			t.Errorf("%v became %v, want %v", level, r.Level, want)
		}
	}
	l.SetLevel(logrus.InfoLevel)
	l.Debug("below logrus' level")
	if got := rec.Records(); len(got) != 0 {
		t.Errorf("got %v", got)
	}
	l.SetLevel(logrus.TraceLevel)
	l.ReplaceHooks(logrus.LevelHooks{})
	l.AddHook(logruslog.New(newLogger(t, rollway.Options{Outputs: []rollway.Output{{Writer: rec, Level: slog.LevelWarn}}})))
	l.Info("below the output's level")
	l.Warn("written")
	if r := one(t, rec); r.Msg != "written" {
		t.Errorf("got %s", r.Line)
	}
}

type text struct{ s string }

func (t *text) String() string { return t.s }

type panics struct{}

func (panics) MarshalJSON() ([]byte, error) { panic("marshal") }

func TestFields(t *testing.T) {
	l, rec := recorded(t)
	at := time.Date(2026, 5, 28, 12, 40, 0, 5, time.UTC)
	ctx := rollway.ContextWith(t.Context(), slog.String("request", "r1"))
	entry := l.WithTime(at).WithContext(ctx).WithError(fmt.Errorf("outer: %w", errors.New("inner"))).WithFields(logrus.Fields{
		"string": "a\n", "int": 1, "float": 0.5, "yes": true, "nil": nil, "list": []int{1, 2}, "took": time.Second, "map": map[string]any{"x": "y"},
		"msg": "field", "level": "field", "service": "payments", "panics": panics{}, "cause": errors.New("gone"), "struct": struct{ A int }{1}, "func": func() {},
	})
	want := map[string]any{
		"request": "r1", "string": "a\n", "int": int64(1), "float": 0.5, "yes": true, "nil": nil, "list": []any{int64(1), int64(2)}, "took": int64(time.Second), "map": map[string]any{"x": "y"},
		"msg": "field", "level": "field", "panics": "!PANIC: marshal", "cause": "gone", "struct": map[string]any{"A": int64(1)},
	}
	for range 20 { // maps are walked at random
		entry.Info("m")
		r := one(t, rec)
		if !reflect.DeepEqual(r.Attrs, want) || !r.Time.Equal(at) || r.Error != "outer: inner" || r.Service != "payments" {
			t.Fatalf("got %s, want %v", r.Line, want)
		}
		if keys := r.Line[strings.Index(r.Line, `"attrs"`):]; strings.Index(keys, `"cause"`) > strings.Index(keys, `"float"`) || strings.Index(keys, `"string"`) > strings.Index(keys, `"yes"`) {
			t.Fatalf("the keys are not sorted: %s", keys)
		}
	}
	many := logrus.Fields{}
	for i := range 100 {
		many[strconv.Itoa(i)] = i
	}
	l.WithFields(many).Infof("%d of them", 100)
	if r := one(t, rec); len(r.Attrs) != 100 || r.Msg != "100 of them" {
		t.Errorf("got %s", r.Line)
	}
	defer func(key string) { logrus.ErrorKey = key }(logrus.ErrorKey)
	logrus.ErrorKey = "err"
	l.WithError(errors.New("gone")).Error("m")
	if r := one(t, rec); r.Error != "gone" || r.Attrs != nil {
		t.Errorf("got %s", r.Line)
	}
	l.WithField("s", &text{"t"}).Info("m")
	if r := one(t, rec); r.Attrs["s"] != "t" {
		t.Errorf("got %s", r.Line)
	}
}

func TestCallerAndStack(t *testing.T) {
	l, rec := recorded(t)
	l.Info("m")
	if r := one(t, rec); r.Source != nil {
		t.Errorf("source %v without ReportCaller", r.Source)
	}
	l.SetReportCaller(true)
	_, _, line, _ := runtime.Caller(0)
	l.WithField("a", 1).Info("m")
	if r := one(t, rec); r.Source != "logruslog/logruslog_test.go:"+strconv.Itoa(line+1) {
		t.Errorf("source %v, want line %d", r.Source, line+1)
	}
	l.ReplaceHooks(logrus.LevelHooks{})
	l.AddHook(logruslog.New(newLogger(t, rollway.Options{Outputs: []rollway.Output{{Writer: rec}}, Stack: slog.LevelInfo})))
	l.Info("m")
	if r := one(t, rec); !strings.HasPrefix(fmt.Sprint(r.Attrs["stack"]), "github.com/sirupsen/logrus.(*Entry).Log\n") {
		t.Errorf("got %s", r.Line)
	}
}

// TestHookAlone: what logrus writes itself stays, and a nil context does no harm.
func TestHookAlone(t *testing.T) {
	var b bytes.Buffer
	rec := new(rollwaytest.Recorder)
	l := logrus.New()
	l.SetOutput(&b)
	l.AddHook(logruslog.New(newLogger(t, rollway.Options{Outputs: []rollway.Output{{Writer: rec}}})))
	l.WithContext(context.Context(nil)).Warn("m")
	if r := one(t, rec); r.Msg != "m" || strings.Count(b.String(), "\n") != 1 {
		t.Errorf("got %s and %s", r.Line, &b)
	}
}

// TestBeforeTheEnd: a program that logrus ends has its last lines in the file, although
// a slab.Writer is between.
func TestBeforeTheEnd(t *testing.T) {
	if path := os.Getenv("LOGRUSLOG_FATAL"); path != "" {
		f, err := file.Open(path, file.Options{})
		if err != nil {
			t.Fatal(err)
		}
		lines, err := slab.New(f, slab.Options{FlushInterval: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		l := logrus.New()
		logruslog.Redirect(l, newLogger(t, rollway.Options{Outputs: []rollway.Output{{Writer: lines}}}))
		func() {
			defer func() { _ = recover() }()
			l.Info("first")
			l.Panic("panic")
		}()
		if data, err := os.ReadFile(path); err != nil || strings.Count(string(data), "\n") != 2 {
			t.Fatalf("after Panic the file has %q, %v", data, err)
		}
		l.WithError(errors.New("gone")).Fatal("fatal")
	}
	path := filepath.Join(t.TempDir(), "log")
	cmd := exec.Command(os.Args[0], "-test.run=^TestBeforeTheEnd$")
	cmd.Env = append(os.Environ(), "LOGRUSLOG_FATAL="+path)
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 1 || len(out) > 0 {
		t.Fatalf("%v: %s", err, out)
	}
	data, err := os.ReadFile(path)
	if lines := strings.Split(string(data), "\n"); err != nil || len(lines) != 4 || !strings.Contains(lines[1], `"level":"PANIC"`) || !strings.Contains(lines[2], `"level":"FATAL","msg":"fatal","error":"gone"`) {
		t.Errorf("%v: %s", err, data)
	}
}

// TestLedger: every entry is accounted for, while the destination fails.
func TestLedger(t *testing.T) {
	const goroutines, calls = 8, 300
	d := new(rollwaytest.Destination)
	d.FailTimes(200)
	rec := new(rollwaytest.Recorder)
	own := newLogger(t, rollway.Options{OnError: func(error) {}, Outputs: []rollway.Output{{Writer: d}, {Writer: rec}}})
	l := logrus.New()
	logruslog.Redirect(l, own)
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			e := l.WithField("g", g)
			for i := range calls {
				e.WithField("i", i).Info("m")
				e.Debug("below the level")
			}
		})
	}
	wg.Wait()
	s := own.Stats()
	rollwaytest.Ledger{Ledger: s.Outputs[0].Ledger}.CheckSettled(t, goroutines*calls, len(d.Lines())-1) // one tells of the loss
	rollwaytest.Ledger{Ledger: s.Outputs[1].Ledger}.CheckSettled(t, goroutines*calls, goroutines*calls)
	if dropped := s.Outputs[0].Dropped.GaveUp; dropped != 200 {
		t.Errorf("%d lines dropped, want 200", dropped)
	}
	next := map[int64]int64{}
	for _, r := range rec.Records() {
		g := r.Attrs["g"].(int64)
		if r.Attrs["i"] != next[g] {
			t.Fatalf("got %s, want line %d", r.Line, next[g])
		}
		next[g]++
	}
	if err := own.Close(); err != nil {
		t.Error(err)
	}
	l.Info("after Close")
	if s := own.Stats().Outputs[1]; s.Rejected != 1 || s.Accepted != goroutines*calls {
		t.Errorf("after Close: %+v", s)
	}
}

// both returns logrus with its own JSON and through the hook.
func both(t testing.TB) (plain, redirected *logrus.Logger) {
	plain, redirected = logrus.New(), logrus.New()
	plain.SetOutput(io.Discard)
	plain.SetFormatter(new(logrus.JSONFormatter))
	logruslog.Redirect(redirected, newLogger(t, rollway.Options{Outputs: []rollway.Output{{Writer: io.Discard}}}))
	return plain, redirected
}

var fields = logrus.Fields{"customer": "cus_123", "retry": 2, "paid": true, "took": time.Second, "sum": 1.5}

func TestAllocations(t *testing.T) {
	testkit.NoRace(t, "sync.Pool drops values at random, which allocates")
	plain, redirected := both(t)
	nothing := logrus.New()
	nothing.SetOutput(io.Discard)
	logruslog.Redirect(nothing, newLogger(t, rollway.Options{Outputs: []rollway.Output{{Writer: io.Discard, Level: rollway.LevelOff}}}))
	count := func(l *logrus.Logger) float64 {
		return testing.AllocsPerRun(1000, func() { l.WithFields(fields).Info("charged") })
	}
	if own, got, least := count(plain), count(redirected), count(nothing); got > least || got > own {
		t.Errorf("%v allocations; logrus has %v with its JSON, and %v without writing", got, own, least)
	}
}

// BenchmarkCall measures lines that nobody keeps.
func BenchmarkCall(b *testing.B) {
	plain, redirected := both(b)
	for name, l := range map[string]*logrus.Logger{"logrus": plain, "hook": redirected} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				l.WithFields(fields).Info("charged")
			}
		})
	}
}
