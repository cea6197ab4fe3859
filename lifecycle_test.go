package rollway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// flusher records what was called on it, in order.
type flusher struct {
	calls []string
	block chan struct{} // Flush waits for it, if not nil
	err   error
}

func (f *flusher) Write(p []byte) (int, error) {
	f.calls = append(f.calls, "write")
	return len(p), nil
}
func (f *flusher) Flush(context.Context) error {
	if f.block != nil {
		<-f.block
	}
	f.calls = append(f.calls, "flush")
	return f.err
}
func (f *flusher) Close() error { f.calls = append(f.calls, "close"); return f.err }

func TestShutdown(t *testing.T) {
	keep, end := &flusher{}, &flusher{err: errors.New("lost 3 lines")}
	l := mustNew(t, Options{Outputs: []Output{{Writer: keep, KeepOpen: true}, {Name: "end", Writer: end}}})
	l.Info(t.Context(), "m")
	err := l.Shutdown(t.Context())
	if err == nil || !strings.Contains(err.Error(), "close end: lost 3 lines") {
		t.Errorf("Shutdown = %v", err)
	}
	if again := l.Close(); again != err {
		t.Errorf("Close after Shutdown = %v, want the same", again)
	}
	l.With(slog.Int("a", 1)).Info(t.Context(), "late")
	slog.New(l.Handler()).Info("late too")
	if got := l.Stats().Outputs[0]; got.Rejected != 2 || got.Accepted != 1 {
		t.Errorf("%+v, want 2 rejected", got)
	}
	if got := strings.Join(keep.calls, " "); got != "write flush" {
		t.Errorf("KeepOpen: %s", got)
	}
	if got := strings.Join(end.calls, " "); got != "write flush close" {
		t.Errorf("default: %s", got)
	}
}

// Outputs that share a Writer flush and close it once, in that order.
func TestShutdownOfASharedWriter(t *testing.T) {
	for _, keep := range [][3]bool{{}, {true, true, true}, {true}, {false, true}, {false, false, true}} {
		w := &flusher{}
		var outputs []Output
		want := "flush flush close"
		for _, k := range keep {
			outputs = append(outputs, Output{Writer: w, Encoder: JSON{}, KeepOpen: k})
			if k {
				want = "flush flush"
			}
		}
		l := mustNew(t, Options{Outputs: outputs})
		if err := errors.Join(l.Flush(t.Context()), l.Close()); err != nil {
			t.Errorf("%v: %v", keep, err)
		}
		if got := strings.Join(w.calls, " "); got != want {
			t.Errorf("%v: %s", keep, got)
		}
	}
}

func TestFlushDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck, good := &flusher{block: make(chan struct{})}, &flusher{}
		l := mustNew(t, Options{Outputs: []Output{{Writer: stuck}, {Writer: good}}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := l.Flush(ctx)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Flush = %v, want a deadline", err)
		}
		if len(good.calls) != 1 {
			t.Error("the stuck output held up the other")
		}
		close(stuck.block)
	})
}

// tardy heeds its deadline and says what is left, a little later.
type tardy struct {
	flusher
	late time.Duration
}

func (w *tardy) Flush(ctx context.Context) error {
	<-ctx.Done()
	time.Sleep(w.late)
	return fmt.Errorf("3 lines are left, as the peer is away: %w", ctx.Err())
}

// What an output says of its own deadline is worth waiting for, for a moment.
func TestFlushHearsWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := &flusher{block: make(chan struct{})}
		l := mustNew(t, Options{Outputs: []Output{{Writer: &tardy{}}, {Writer: &tardy{late: 90 * time.Millisecond}}, {Writer: stuck}}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		err := l.Flush(ctx)
		if took := time.Since(begin); took != time.Second+lastWords {
			t.Errorf("Flush took %v", took)
		}
		if n := strings.Count(err.Error(), ": 3 lines are left, as the peer is away: "); n != 2 {
			t.Errorf("Flush = %v", err)
		}
		if !strings.Contains(err.Error(), "flush *rollway.flusher: the writer has not returned: context deadline exceeded") {
			t.Errorf("Flush = %v", err)
		}
		close(stuck.block)
	})
}

// syncer is a flusher with a Sync that fails as that of a terminal does.
type syncer struct {
	flusher
	err error
}

func (s *syncer) Sync() error { s.calls = append(s.calls, "sync"); return s.err }

func TestSync(t *testing.T) {
	terminal, disk := &syncer{err: syscall.EINVAL}, &syncer{}
	l := mustNew(t, Options{Outputs: []Output{{Writer: terminal}, {Writer: disk}}})
	l.Info(t.Context(), "m")
	if err := l.Sync(t.Context()); err != nil {
		t.Errorf("Sync = %v", err)
	}
	if got := strings.Join(disk.calls, " "); got != "write flush sync" {
		t.Errorf("calls: %s", got)
	}
	disk.err = errors.New("disk on fire")
	if err := l.Sync(t.Context()); err == nil || !strings.Contains(err.Error(), "sync *rollway.syncer #2: disk on fire") {
		t.Errorf("Sync = %v", err)
	}
}

func TestFatalAndPanic(t *testing.T) {
	code := -1
	f := &flusher{}
	l := mustNew(t, Options{Exit: func(c int) { code = c }, Outputs: []Output{{Writer: f}}})
	l.Fatal(t.Context(), "m")
	if code != 1 || strings.Join(f.calls, " ") != "write flush" {
		t.Errorf("Fatal: exit %d, calls %v", code, f.calls)
	}
	func() {
		defer func() {
			if r := recover(); r != "boom" {
				t.Errorf("Panic panicked with %v", r)
			}
		}()
		l.Panic(t.Context(), "boom")
	}()
	if strings.Join(f.calls, " ") != "write flush write flush" {
		t.Errorf("Panic: calls %v", f.calls)
	}
}
