package rollway

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// levelBuffer is a writer with WriteLevel, safe for concurrent use.
type levelBuffer struct {
	mu     sync.Mutex
	lines  []string
	levels []slog.Level
}

func (b *levelBuffer) Write([]byte) (int, error) { panic("Write called where WriteLevel exists") }

func (b *levelBuffer) WriteLevel(l slog.Level, p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lines = append(b.lines, string(p))
	b.levels = append(b.levels, l)
	return len(p), nil
}

func mustNew(t testing.TB, o Options) *Logger {
	t.Helper()
	l, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestRoutingByLevelAndFormat(t *testing.T) {
	var all, warn, console bytes.Buffer
	var lb levelBuffer
	lv := new(slog.LevelVar)
	l := mustNew(t, Options{Caller: LevelOff, Outputs: []Output{
		{Writer: &all, Level: slog.LevelDebug},
		{Writer: &warn, Level: slog.LevelWarn, Encoder: JSON{}},
		{Writer: &console, Level: lv, Encoder: Console{}},
		{Writer: &lb},
	}})
	if n := len(l.core.formats); n != 2 {
		t.Errorf("%d formats, want 2: equal encoders share one encoding", n)
	}
	lv.Set(slog.LevelError)
	l.Debug(t.Context(), "one")
	l.Info(t.Context(), "two")
	l.Warn(t.Context(), "three")
	l.Error(t.Context(), "four")
	lv.Set(slog.LevelInfo)
	l.Info(t.Context(), "five")
	for _, c := range []struct {
		name, got string
		want      int
	}{{"all", all.String(), 5}, {"warn", warn.String(), 2}, {"console", console.String(), 2}, {"levelBuffer", strings.Join(lb.lines, ""), 4}} {
		if n := strings.Count(c.got, "\n"); n != c.want {
			t.Errorf("%s has %d lines, want %d:\n%s", c.name, n, c.want, c.got)
		}
	}
	if !strings.Contains(console.String(), "ERROR four\n") || !strings.Contains(console.String(), "INFO  five\n") {
		t.Errorf("console:\n%s", console.String())
	}
	if fmt.Sprint(lb.levels) != "[INFO WARN ERROR INFO]" {
		t.Errorf("levels handed to WriteLevel: %v", lb.levels)
	}
	var written []uint64
	for _, o := range l.Stats().Outputs {
		written = append(written, o.Written)
	}
	if fmt.Sprint(written) != "[5 2 2 4]" {
		t.Errorf("Stats say written %v", written)
	}
}

func TestGate(t *testing.T) {
	lv := new(slog.LevelVar)
	shared := mustNew(t, Options{Outputs: []Output{{Writer: io.Discard, Level: lv}, {Writer: &bytes.Buffer{}, Level: lv}}})
	if shared.gate != lv || shared.core.dynamic {
		t.Error("one LevelVar for all outputs is not itself the gate")
	}
	mixed := mustNew(t, Options{Outputs: []Output{{Writer: io.Discard, Level: slog.LevelError}, {Writer: &bytes.Buffer{}, Level: lv}}})
	other := mustNew(t, Options{Outputs: []Output{{Writer: io.Discard, Level: new(slog.LevelVar)}, {Writer: &bytes.Buffer{}, Level: lv}}})
	none := mustNew(t, Options{Outputs: []Output{}})
	for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn} {
		lv.Set(level)
		for name, l := range map[string]*Logger{"shared": shared, "mixed": mixed} {
			for _, at := range []slog.Level{LevelTrace, slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
				if got, want := l.Enabled(t.Context(), at), at >= level || name == "mixed" && at >= slog.LevelError; got != want {
					t.Errorf("%s at %v: Enabled(%v) = %v", name, level, at, got)
				}
			}
			if l.DebugEnabled() != (level <= slog.LevelDebug) {
				t.Errorf("%s at %v: DebugEnabled() = %v", name, level, l.DebugEnabled())
			}
		}
		if !other.Enabled(t.Context(), slog.LevelInfo) || other.Enabled(t.Context(), LevelTrace) {
			t.Error("the more open of two LevelVars does not decide")
		}
		if none.Enabled(t.Context(), LevelFatal) {
			t.Error("a Logger without outputs is enabled")
		}
	}
}

// TestStalledOutput: a writer that hangs holds up the call that is in it, every
// other for at most the bound, later ones not at all, and no other output ever.
func TestStalledOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var entered atomic.Int32
		stuck := writerFunc(func(p []byte) (int, error) {
			if entered.Add(1) == 1 {
				<-release
			}
			return len(p), nil
		})
		var good bytes.Buffer
		var lb levelBuffer
		l := mustNew(t, Options{Outputs: []Output{{Writer: &good}, {Writer: stuck}, {Writer: &lb}}})
		done := make(chan struct{})
		go func() { l.Info(t.Context(), "stuck"); close(done) }()
		synctest.Wait()

		start := time.Now()
		l.Info(t.Context(), "waits for the bound")
		if d := time.Since(start); d != defaultStallBound {
			t.Errorf("the second call took %v, want %v", d, defaultStallBound)
		}
		start = time.Now()
		for range 100 {
			l.Info(t.Context(), "does not wait")
		}
		if d := time.Since(start); d != 0 {
			t.Errorf("100 later calls took %v, want no time", d)
		}
		close(release)
		<-done
		l.Info(t.Context(), "works again")
		s := l.Stats().Outputs
		if s[1].Written != 2 || s[1].Stalled != 101 || s[1].Failed != 0 {
			t.Errorf("stuck output: %+v, want 2 written, 101 stalled", s[1])
		}
		if s[0].Written != 103 || s[2].Written != 103 {
			t.Errorf("others: %+v %+v, want 103 written", s[0], s[2])
		}
	})
}

func TestStallLockIsFairToTheBusy(t *testing.T) {
	// Callers that wait long only because the lock is in demand do not give up.
	synctest.Test(t, func(t *testing.T) {
		var l stallLock
		var got, gaveUp atomic.Int32
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if !l.lock(10*time.Millisecond, false) {
					gaveUp.Add(1)
					return
				}
				time.Sleep(5 * time.Millisecond)
				got.Add(1)
				l.unlock()
			})
		}
		wg.Wait()
		if got.Load() != 50 {
			t.Errorf("%d got the lock, %d gave up", got.Load(), gaveUp.Load())
		}
	})
}

func TestStallLockExcludes(t *testing.T) {
	var l stallLock
	n := 0
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20_000 {
				if !l.lock(time.Minute, false) {
					t.Error("gave up")
					return
				}
				n++
				l.unlock()
			}
		})
	}
	wg.Wait()
	if n != 160_000 {
		t.Errorf("counted %d, want 160000", n)
	}
}

func TestFailingOutputs(t *testing.T) {
	synctest.Test(t, testFailingOutputs) // all within one second
}

func testFailingOutputs(t *testing.T) {
	var reports []error
	calls := 0
	failing := writerFunc(func(p []byte) (int, error) {
		calls++
		switch calls % 3 {
		case 0:
			return 0, errors.New("disk on fire")
		case 1:
			panic("writer bug")
		}
		return len(p) - 1, nil
	})
	var good bytes.Buffer
	l := mustNew(t, Options{
		Outputs: []Output{{Writer: failing}, {Writer: &good}},
		OnError: func(err error) { reports = append(reports, err); panic("and the handler has one too") },
	})
	for range 300 {
		l.Info(t.Context(), "m")
	}
	s := l.Stats().Outputs
	if s[0].Failed != 300 || s[0].Written != 0 || s[0].LastError == nil {
		t.Errorf("failing output: %+v", s[0])
	}
	if s[1].Written != 300 || strings.Count(good.String(), "\n") != 300 {
		t.Errorf("the other output: %+v", s[1])
	}
	if len(reports) != 1 {
		t.Fatalf("%d reports, want one a second", len(reports))
	}
	if want := "rollway: write to rollway.writerFunc: writer panicked: writer bug"; reports[0].Error() != want {
		t.Errorf("reported %q, want %q", reports[0], want)
	}
}

func TestRecursion(t *testing.T) {
	// Values and writers that log to the Logger they are logged by.
	l, b := newTestLogger(t, JSON{})
	l.Info(t.Context(), "outer", slog.Any("v", loggingValuer{l}))
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "inner") || !strings.Contains(lines[1], `"v":"seen"`) {
		t.Errorf("lines: %q", lines)
	}
	var self *Logger
	depth := 0
	self = mustNew(t, Options{StallBound: time.Millisecond, Outputs: []Output{{Writer: writerFunc(func(p []byte) (int, error) {
		if depth++; depth < 5 {
			self.Info(context.Background(), "from the writer")
		}
		return len(p), nil
	})}}})
	self.Info(t.Context(), "m")
	if s := self.Stats().Outputs[0]; s.Written != 1 || s.Stalled != 1 {
		t.Errorf("a writer that logs to itself: %+v", s)
	}
}

type loggingValuer struct{ l *Logger }

func (v loggingValuer) LogValue() slog.Value {
	v.l.Info(context.Background(), "inner")
	return slog.StringValue("seen")
}

func TestConcurrentDerivedLoggers(t *testing.T) {
	var plain bytes.Buffer
	var lb levelBuffer
	l := mustNew(t, Options{Outputs: []Output{{Writer: &plain}, {Writer: &lb, Encoder: JSON{}}}, Caller: LevelOff, StallBound: time.Minute})
	const goroutines, each = 64, 200
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			mine := l.With(slog.Int("g", g)).WithGroup("x")
			s := slog.New(mine.Handler())
			for i := range each {
				if i%2 == 0 {
					mine.Info(context.Background(), "m", slog.Int("i", i))
				} else {
					s.With("extra", true).Info("m", "i", i)
				}
			}
		})
	}
	wg.Wait()
	for name, text := range map[string]string{"plain": plain.String(), "buffered": strings.Join(lb.lines, "")} {
		next := make([]int, goroutines)
		sc := bufio.NewScanner(strings.NewReader(text))
		for sc.Scan() {
			var got struct {
				Attrs struct {
					G int
					X struct{ I int }
				}
			}
			if err := json.Unmarshal(sc.Bytes(), &got); err != nil {
				t.Fatalf("%s: %v: %s", name, err, sc.Text())
			}
			if got.Attrs.X.I != next[got.Attrs.G] {
				t.Fatalf("%s: goroutine %d: line %d where %d was due", name, got.Attrs.G, got.Attrs.X.I, next[got.Attrs.G])
			}
			next[got.Attrs.G]++
		}
		for g, n := range next {
			if n != each {
				t.Errorf("%s: goroutine %d has %d lines, want %d", name, g, n, each)
			}
		}
	}
}

func TestOptionErrors(t *testing.T) {
	var nilBuffer *bytes.Buffer
	_, err := New(Options{StallBound: -1, Outputs: []Output{{}, {Writer: nilBuffer}, {Writer: &bytes.Buffer{}, Close: true}}})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"rollway.New: ", "StallBound is -1ns", "Outputs[0].Writer is nil", "Outputs[1].Writer is nil", "Outputs[2].Close is set, but its Writer, a *bytes.Buffer, has no Close"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}
