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
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/line"
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
			if l.Enabled(t.Context(), slog.LevelDebug) != (level <= slog.LevelDebug) {
				t.Errorf("%s at %v: Enabled(DEBUG) = %v", name, level, l.Enabled(t.Context(), slog.LevelDebug))
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
		if d := time.Since(start); d != defaultMaxWait {
			t.Errorf("the second call took %v, want %v", d, defaultMaxWait)
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
		if s[1].Ledger != (line.Ledger{Accepted: 103, Written: 2, Dropped: line.Drops{Full: 101}}) {
			t.Errorf("stuck output: %+v, want 2 written, 101 stalled", s[1])
		}
		if s[0].Written != 103 || s[2].Written != 103 {
			t.Errorf("others: %+v %+v, want 103 written", s[0], s[2])
		}
	})
}

// A writer that is slow but not stuck: who has waited for long comes before who
// has not, so that a goroutine that takes the lock again and again starves
// nobody, and there is a bound to the wait of each.
func TestStallLockIsFair(t *testing.T) {
	for _, c := range []struct {
		hold  time.Duration
		lucky int // callers that get the lock in time
	}{{5 * time.Millisecond, 15}, {time.Nanosecond, 15}, {40 * time.Millisecond, 15}, {99 * time.Millisecond, 9}} {
		synctest.Test(t, func(t *testing.T) {
			const bound = 100 * time.Millisecond
			var l stallLock
			var got, gaveUp atomic.Int32
			var greedy, others sync.WaitGroup
			stop := false
			greedy.Go(func() {
				for l.lock(time.Hour) {
					time.Sleep(c.hold)
					over := stop
					l.unlock()
					if over {
						return
					}
				}
			})
			synctest.Wait()
			for range 15 {
				others.Go(func() {
					start := time.Now()
					ok := l.lock(bound)
					if d := time.Since(start); d > (slowBounds+1)*bound {
						t.Errorf("waited %v", d)
					}
					if !ok {
						gaveUp.Add(1)
						return
					}
					time.Sleep(c.hold)
					got.Add(1)
					l.unlock()
				})
			}
			others.Wait()
			if int(got.Load()) < c.lucky || got.Load()+gaveUp.Load() != 15 || l.hopeless() {
				t.Errorf("held for %v: %d got the lock, want %d, %d gave up", c.hold, got.Load(), c.lucky, gaveUp.Load())
			}
			for !l.lockPatiently(otherTurn, time.Hour) {
			}
			stop = true
			l.unlockTurn(otherTurn)
			greedy.Wait()
		})
	}
}

func TestStallLockExcludes(t *testing.T) {
	var l stallLock
	n := 0
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 20_000 {
				turn := uint64(lineTurn)
				if i == 0 {
					turn = otherTurn
				}
				if !l.lockPatiently(turn, time.Minute) {
					t.Error("gave up")
					return
				}
				n++
				l.unlockTurn(turn)
			}
		})
	}
	wg.Wait()
	if ended, pending := l.turns(); n != 160_000 || ended != 140_000 || pending != 0 {
		t.Errorf("counted %d, want 160000; %d turns ended, %d pending", n, ended, pending)
	}
}

// What goes wrong with an output is told at once, and then at most once a minute
// with the number of lines, by nobody whom a call waits for; and it harms no
// other output.
func TestFailingOutputs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reports []string
		var at []time.Duration
		begin := time.Now()
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
			Outputs: []Output{{Writer: failing}, {Name: "good", Writer: &good}},
			OnError: func(err error) {
				reports, at = append(reports, err.Error()), append(at, time.Since(begin))
				if len(reports) == 2 {
					runtime.Goexit()
				}
				panic("and the handler has one too")
			},
		})
		log := func(n int) {
			for range n {
				l.Info(t.Context(), "m")
			}
			synctest.Wait()
		}
		log(1)
		log(200)
		time.Sleep(tellPause - 1)
		log(99) // those before are told a nanosecond later with these
		time.Sleep(tellPause)
		log(1)
		time.Sleep(10 * tellPause) // nothing is told when nothing happens
		log(1)
		log(5)
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		want := []string{
			"rollway: output rollway.writerFunc: 1 line dropped: writer panicked: writer bug",
			"rollway: output rollway.writerFunc: 299 lines dropped: disk on fire",
			"rollway: output rollway.writerFunc: 1 line dropped: writer panicked: writer bug",
			"rollway: output rollway.writerFunc: 1 line dropped: short write",
			"rollway: output rollway.writerFunc: 5 lines dropped: writer panicked: writer bug",
		}
		if got, want := strings.Join(reports, "\n"), strings.Join(want, "\n"); got != want {
			t.Errorf("reported\n%s\nwant\n%s", got, want)
		}
		if got, want := fmt.Sprint(at), fmt.Sprint([]time.Duration{0, tellPause, 2 * tellPause, 12*tellPause - 1, 12*tellPause - 1}); got != want {
			t.Errorf("reported at %v, want %v", got, want)
		}
		s := l.Stats().Outputs
		if s[0].Ledger != (line.Ledger{Accepted: 307, Dropped: line.Drops{GaveUp: 307}}) || !s[0].Failing || s[0].LastError == nil || time.Since(s[0].LastErrorTime) != 0 {
			t.Errorf("failing output: %+v", s[0])
		}
		if s[1].Ledger != (line.Ledger{Accepted: 307, Written: 307}) || s[1].Failing || s[1].Name != "good" || strings.Count(good.String(), "\n") != 307 {
			t.Errorf("the other output: %+v", s[1])
		}
	})
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
	self = mustNew(t, Options{MaxWait: time.Millisecond, Outputs: []Output{{Writer: writerFunc(func(p []byte) (int, error) {
		if depth++; depth < 5 {
			self.Info(context.Background(), "from the writer")
		}
		return len(p), nil
	})}}})
	self.Info(t.Context(), "m")
	if s := self.Stats().Outputs[0]; s.Written != 1 || s.Dropped.Full != 1 {
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
	l := mustNew(t, Options{Outputs: []Output{{Writer: &plain}, {Writer: &lb, Encoder: JSON{}}}, Caller: LevelOff, MaxWait: time.Minute})
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
	_, err := New(Options{MaxWait: -1, Outputs: []Output{{}, {Writer: nilBuffer}, {Name: "a"}, {Name: "a"}}})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"rollway.New: ", "MaxWait is -1ns", "Outputs[0].Writer is nil", "Outputs[1].Writer is nil", `Outputs[3].Name is "a", the same as of Outputs[2]`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}
