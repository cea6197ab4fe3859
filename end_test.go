package rollway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/internal/levels"
)

// synced is arrivals with a Sync that notes how many lines it found.
type synced struct {
	arrivals
	found []int
}

func (s *synced) Sync() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found = append(s.found, len(s.lines))
	return nil
}

// endings are the ways to end a process, or a use of a Logger, each with the
// message of its own line.
var endings = map[string]struct {
	do   func(*Logger)
	line string
}{
	"Fatal": {func(l *Logger) { l.Fatal(context.Background(), "last") }, "last"},
	"Panic": {func(l *Logger) {
		defer func() { _ = recover() }()
		l.Panic(context.Background(), "last")
	}, "last"},
	"FlushOnPanic": {func(l *Logger) {
		defer func() { _ = recover() }()
		defer l.FlushOnPanic()
		panic("last")
	}, "panic: last"},
	"LogSync": {func(l *Logger) { l.LogSync(context.Background(), time.Time{}, 0, LevelFatal, "last") }, "last"},
	"ExitOnSignal": {func(l *Logger) {
		exited := make(chan int, 1)
		l.core.exit = func(code int) { exited <- code }
		stop := l.exitOn(func(c chan<- os.Signal) func() {
			c <- syscall.SIGTERM
			return func() {}
		})
		<-exited
		stop()
	}, "signal: terminated"},
	"Close": {func(l *Logger) { _ = l.Close() }, ""},
	"Shutdown": {func(l *Logger) {
		ctx, cancel := context.WithTimeout(context.Background(), defaultCloseTimeout)
		defer cancel()
		_ = l.Shutdown(ctx)
	}, ""},
}

// TestTheEndIsBounded: with every output but the last stuck, whatever ends the
// process returns when CloseTimeout is over, its own line included; the last
// output has every line, in order, and is synced, and what was not delivered is
// told for each of the others.
func TestTheEndIsBounded(t *testing.T) {
	for name, end := range endings {
		for how, stuck := range stuckWriters {
			t.Run(name+"/"+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { testEndWithStuck(t, end.do, end.line, stuck) })
			})
		}
	}
}

func testEndWithStuck(t *testing.T, end func(*Logger), own string, stuck func() (io.Writer, func())) {
	w, mend := stuck()
	_, plain := w.(*hung)
	good := &synced{}
	var mu sync.Mutex
	var told []string
	l := mustNew(t, Options{
		Outputs: []Output{{Name: "stuck", Writer: w}, {Name: "good", Writer: good}},
		Exit:    func(int) {},
		OnError: func(err error) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, err.Error())
		},
	})
	var wg sync.WaitGroup
	wg.Go(func() { l.Info(t.Context(), "hangs") })
	time.Sleep(time.Second)
	if !plain { // the call that hangs in a plain writer is the exception
		wg.Go(func() { l.Info(t.Context(), "another") })
		time.Sleep(time.Second)
	}
	start := time.Now()
	end(l)
	if took := time.Since(start); took > defaultCloseTimeout+2*lastWords {
		t.Errorf("it took %v", took)
	}
	time.Sleep(time.Second)
	good.mu.Lock()
	got := len(good.lines)
	want := 2
	if plain {
		want = 0
	}
	if own != "" {
		want++
		if got == 0 || !strings.Contains(good.lines[got-1], own) {
			t.Errorf("the last of %d lines is not %q", got, own)
		} else if late := good.at[got-1].Sub(start); late != 0 {
			t.Errorf("its own line came after %v", late)
		}
		if len(good.found) != 1 || good.found[0] != want {
			t.Errorf("synced with %v lines, want one with %d", good.found, want)
		}
	}
	good.mu.Unlock()
	if got != want {
		t.Errorf("%d lines, want %d", got, want)
	}
	mu.Lock()
	if text := strings.Join(told, "\n"); own != "" && (!strings.Contains(text, " stuck: ") || strings.Contains(text, " good: ")) {
		t.Errorf("told %q", text)
	} else if pending := "7 lines pending"; own != "" && !plain && !strings.Contains(text, pending) {
		t.Errorf("told %q, want %q", text, pending)
	}
	mu.Unlock()
	for _, s := range l.Stats().Outputs {
		if err := s.Err(); err != nil {
			t.Error(err)
		}
	}
	mend()
	wg.Wait()
	synctest.Wait()
	for _, s := range l.Stats().Outputs {
		if s.Err() != nil || s.Pending != 0 || s.Failing && s.Dropped.Total() == 0 {
			t.Errorf("at the end: %+v", s)
		}
	}
}

// The values of the last line may hang as well, in a format or, with Redact,
// before: the line has all but those, and what was logged before gets out.
func TestLastLineThatCannotBeEncoded(t *testing.T) {
	for name, redact := range map[string]*Redaction{"plain": nil, "redacted": {Keys: []string{"password"}}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				good, second, third := &synced{}, &synced{}, &arrivals{}
				exited := false
				outputs := []Output{{Writer: good}, {Writer: second, Encoder: Logfmt{}}, {Writer: third, Encoder: Custom{resolving{}}}}
				l := mustNew(t, Options{Outputs: outputs, Exit: func(int) { exited = true }, Redact: redact})
				l.Info(t.Context(), "before")
				release := make(chan struct{})
				start := time.Now()
				l.WithGroup("g").Fatal(t.Context(), "last", slog.Int("n", 7), slog.Any("v", hangingValuer{release}))
				if took := time.Since(start); !exited || took > defaultCloseTimeout || len(good.found) != 1 || good.found[0] != 2 {
					t.Errorf("exited %v after %v, synced %v", exited, took, good.found)
				}
				for _, w := range []*arrivals{&good.arrivals, &second.arrivals, third} {
					got := w.lines[len(w.lines)-1]
					for _, part := range []string{"FATAL", "last", "7", "left_out", "g.v"} {
						if !strings.Contains(got, part) {
							t.Errorf("no %q in %q", part, got)
						}
					}
				}
				close(release)
			})
		})
	}
}

// resolving is a format of the user's that writes levels, messages and values.
type resolving struct{}

func (resolving) AppendLine(dst []byte, r *Record) []byte {
	dst = append(levels.Append(dst, r.Level), r.Message...)
	for a := range r.Attrs {
		dst = AppendJSON(append(dst, a.Key...), a.Value)
	}
	return dst
}

// However many reports of sampling a format hangs in, the end is bounded, and each
// of them is accounted for.
func TestReportsThatCannotBeEncoded(t *testing.T) {
	ends := map[string]func(*testing.T, *Logger){
		"Close": func(_ *testing.T, l *Logger) { _ = l.Close() },
		"Fatal": func(t *testing.T, l *Logger) { l.Fatal(t.Context(), "last") },
		"Shutdown too late": func(t *testing.T, l *Logger) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_ = l.Shutdown(ctx)
		},
		"Flush": func(t *testing.T, l *Logger) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(defaultCloseTimeout, cancel)
			_ = l.Flush(ctx)
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				good := &synced{}
				l := mustNew(t, Options{
					Outputs: []Output{{Name: "bad", Writer: io.Discard, Encoder: Custom{hangingAtTheEnd{release}}}, {Writer: good}},
					Exit:    func(int) {}, OnError: func(error) {}, Sampling: &Sampling{Period: time.Hour, First: 1},
				})
				for i := range 100 {
					for range 2 {
						l.Info(t.Context(), fmt.Sprint(i))
					}
				}
				start := time.Now()
				end(t, l)
				if took := time.Since(start); took > defaultCloseTimeout+2*lastWords {
					t.Errorf("it took %v", took)
				}
				reports := 0
				for _, line := range good.lines {
					if strings.Contains(line, "left out by sampling") {
						reports++
					}
				}
				if bad := l.Stats().Outputs[0]; reports != 100 || bad.Dropped.Full < 100 || bad.Err() != nil {
					t.Errorf("%d reports; %+v", reports, bad)
				}
				close(release)
			})
		})
	}
}

// One format that hangs costs its own output the last line, no other.
func TestLastLineOfAnEncoderThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		good, bad, after := &synced{}, &synced{}, &synced{}
		release := make(chan struct{})
		l := mustNew(t, Options{
			Outputs: []Output{{Name: "bad", Writer: bad, Encoder: Custom{hangingEncoder{release}}}, {Writer: good},
				{Writer: after, Encoder: Logfmt{}}},
			Exit: func(int) {}, OnError: func(err error) { told = append(told, err.Error()) },
		})
		start := time.Now()
		l.Fatal(t.Context(), "last")
		if took := time.Since(start); took > defaultCloseTimeout+2*lastWords || len(good.lines) != 1 || len(after.lines) != 1 || len(bad.lines) != 0 {
			t.Errorf("%v, %v and %v lines after %v", good.lines, after.lines, bad.lines, took)
		}
		synctest.Wait()
		for _, text := range told {
			if !strings.Contains(text, " bad: ") || !strings.Contains(text, errNotEncoded.Error()) {
				t.Errorf("told %q", text)
			}
		}
		if len(told) != 2 { // the loss, and that the sync misses it
			t.Errorf("told %q", told)
		}
		close(release)
	})
}

type hangingEncoder struct{ release chan struct{} }

func (e hangingEncoder) AppendLine(dst []byte, _ *Record) []byte {
	<-e.release
	return dst
}

// hangingAtTheEnd hangs in a report of sampling and in a last line.
type hangingAtTheEnd struct{ release chan struct{} }

func (e hangingAtTheEnd) AppendLine(dst []byte, r *Record) []byte {
	if strings.HasPrefix(r.Message, "rollway: ") || r.Message == "last" {
		<-e.release
	}
	return append(dst, r.Message...)
}

// TestEndAfterClose: no output takes the line of a Fatal then; it is told, and
// waited for within CloseTimeout.
func TestEndAfterClose(t *testing.T) {
	for name, hangs := range map[string]bool{"OnError returns": false, "OnError hangs": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told []string
				release := make(chan struct{})
				exited := 0
				l := mustNew(t, Options{
					Outputs: []Output{{Writer: io.Discard}}, Exit: func(int) { exited++ }, Redact: &Redaction{Patterns: []*regexp.Regexp{regexp.MustCompile("secret")}},
					OnError: func(err error) {
						told = append(told, err.Error())
						if hangs {
							<-release
						}
					},
				})
				if err := l.Close(); err != nil {
					t.Error(err)
				}
				l.LogSync(t.Context(), time.Time{}, 0, slog.LevelError, "no last line")
				start := time.Now()
				l.Fatal(t.Context(), "a secret")
				if took := time.Since(start); exited != 1 || took > defaultCloseTimeout+lastWords || !hangs && took != 0 {
					t.Errorf("exited %d times after %v", exited, took)
				}
				synctest.Wait()
				if want := "[rollway: logged after Close, at FATAL: a [REDACTED]]"; fmt.Sprint(told) != want {
					t.Errorf("told %q, want %q", told, want)
				}
				close(release)
			})
		})
	}
}

type hangingValuer struct{ release chan struct{} }

func (v hangingValuer) LogValue() slog.Value {
	<-v.release
	return slog.Value{}
}

// TestOnErrorThatHangs: nobody waits for it except the end, which waits until
// its deadline, and it costs one goroutine.
func TestOnErrorThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var inside, most int
		l := mustNew(t, Options{
			Outputs: []Output{
				{Name: "a", Writer: writerFunc(func([]byte) (int, error) { return 0, io.ErrClosedPipe })},
				{Name: "b", Writer: writerFunc(func([]byte) (int, error) { return 0, io.ErrClosedPipe })},
			},
			OnError: func(error) {
				inside++
				most = max(most, inside)
				<-release
				inside--
			},
		})
		start := time.Now()
		for range 100 {
			l.Info(t.Context(), "m")
			synctest.Wait()
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("100 lines took %v", took)
		}
		time.Sleep(10 * tellPause)
		l.Info(t.Context(), "m")
		start = time.Now()
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took < defaultCloseTimeout || took > defaultCloseTimeout+lastWords {
			t.Errorf("Close took %v", took)
		}
		close(release)
		synctest.Wait()
		if most != 1 {
			t.Errorf("%d calls of OnError at the same time", most)
		}
	})
}

// Shutdown heeds its own context while another call is at it.
func TestShutdownWhileAnotherIsAtIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &tank{room: make(chan struct{}), bound: -1}
		l := mustNew(t, Options{Outputs: []Output{{Writer: w}}})
		go l.Shutdown(t.Context())
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if err := l.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		close(w.room)
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A Writer is the Logger's to close; one that is kept open, and the standard
// streams, are not.
func TestOwnership(t *testing.T) {
	for _, c := range []struct {
		w    io.Writer
		keep bool
		want bool
	}{
		{&flusher{}, false, true},
		{&flusher{}, true, false},
		{os.Stderr, false, false},
		{os.Stdout, false, false},
		{io.Discard, false, false},
		{&tank{}, false, false},
	} {
		if got := newOutput(Output{Writer: c.w, KeepOpen: c.keep}, false).closes; got != c.want {
			t.Errorf("%T, KeepOpen %v: closed %v", c.w, c.keep, got)
		}
	}
}

func TestOutputNames(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	l := mustNew(t, Options{Outputs: []Output{{Writer: f}, {Writer: &flusher{}}, {Writer: &flusher{}}, {Name: "mine", Writer: &flusher{}}, {Writer: f}}})
	defer l.Close()
	var got []string
	for _, s := range l.Stats().Outputs {
		got = append(got, s.Name)
	}
	if want := fmt.Sprintf("[%s *rollway.flusher *rollway.flusher #2 mine %s #2]", f.Name(), f.Name()); fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}
