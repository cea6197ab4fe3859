package slab_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/line"
	"github.com/rollway/rollway/rollwaytest"
	"github.com/rollway/rollway/slab"
)

// A destination's errors are told at once and then once a minute, whether or not
// it works in between.
func TestErrorsAreToldOnceAMinute(t *testing.T) { fronts(t, testErrorsAreToldOnceAMinute) }

func testErrorsAreToldOnceAMinute(t *testing.T, on front) {
	synctest.Test(t, func(t *testing.T) {
		var told reports
		start := time.Now()
		w, dst := on.open(t, slab.Options{OnError: func(err error) {
			told.add(err)
			if !errors.Is(err, rollwaytest.ErrFault) {
				t.Errorf("OnError got %v, want the destination's error", err)
			}
			panic("a careless callback")
		}})
		for i := range 40 {
			dst.FailTimes(2)
			put(t, w, numbered(i, 30))
			time.Sleep(5 * time.Second)
		}
		at := told.times()
		if len(at) != 4 || at[0].Sub(start) > 100*time.Millisecond {
			t.Errorf("OnError was called after %v in 200 s, want 4 times, the first at once", at)
		}
		for i := 1; i < len(at); i++ {
			if d := at[i].Sub(at[i-1]); d < time.Minute {
				t.Errorf("call %d of OnError came %v after the one before", i+1, d)
			}
		}
		if s := w.Stats(); s.Failing || !errors.Is(s.LastError, rollwaytest.ErrFault) || time.Since(s.LastErrorTime) > 6*time.Second {
			t.Errorf("Stats = %+v, want an error some seconds ago, and that it works now", s)
		}
		settled(t, w, dst, 40)
	})
}

// A loss is told at once, and the rest of it within a minute or at Close.
func TestLossesAreToldOnceAMinute(t *testing.T) { fronts(t, testLossesAreToldOnceAMinute) }

func testLossesAreToldOnceAMinute(t *testing.T, on front) {
	synctest.Test(t, func(t *testing.T) {
		var told reports
		w, dst := on.open(t, slab.Options{SlabSize: 64, SlabCount: 4, Full: slab.Drop, OnError: func(err error) {
			told.add(err)
			if !errors.Is(err, line.ErrLost) {
				t.Errorf("OnError got %v, want line.ErrLost", err)
			}
		}})
		dst.Always(rollwaytest.Fault{Delay: 10 * time.Millisecond, Take: 1 << 20})
		lose := func(n int) {
			for i := range 4 + n {
				put(t, w, numbered(i, 60))
			}
			time.Sleep(time.Second)
		}
		lose(1)
		for range 29 {
			lose(3)
		}
		time.Sleep(10 * time.Minute)
		lose(1)
		lose(1)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		var want []string
		for _, n := range []string{"1", "87", "1", "1"} {
			want = append(want, "slab: lines lost: "+n+" (buffer full)")
		}
		if got := strings.Split(told.String(), "\n"); !slices.Equal(got, want) {
			t.Errorf("OnError got %q, want %q", got, want)
		}
	})
}

// What was lost since OnError was last told is told by the end of Close, also if
// the destination hangs.
func TestLossesAreToldBeforeTheEnd(t *testing.T) { fronts(t, testLossesAreToldBeforeTheEnd) }

func testLossesAreToldBeforeTheEnd(t *testing.T, on front) {
	synctest.Test(t, func(t *testing.T) {
		var told atomic.Uint64
		w, dst := on.open(t, slab.Options{SlabSize: 64, SlabCount: 4, Full: slab.Drop, CloseTimeout: time.Second, OnError: func(err error) {
			var n uint64
			if _, err := fmt.Sscanf(err.Error(), "slab: lines lost: %d (buffer full)", &n); err == nil {
				told.Add(n)
			}
		}})
		defer dst.Heal()
		dst.Stall()
		for range 2 {
			for i := range 20 {
				put(t, w, numbered(i, 60))
			}
			time.Sleep(time.Second)
		}
		lost := w.Stats().Dropped.Full
		if n := told.Load(); n == 0 || n >= lost {
			t.Errorf("before Close, OnError was told of %d lost lines of %d", n, lost)
		}
		begin := time.Now()
		if err := w.Close(); err == nil {
			t.Error("Close = nil")
		}
		if n, took := told.Load(), time.Since(begin); n != lost || took > time.Second {
			t.Errorf("after Close, which took %v, OnError was told of %d lost lines of %d", took, n, lost)
		}
	})
}

// A destination whose calls all take longer than MaxWait is told of once: it is
// far away, and healthy.
func TestSlowIsNoStall(t *testing.T) { fronts(t, testSlowIsNoStall) }

func testSlowIsNoStall(t *testing.T, on front) {
	synctest.Test(t, func(t *testing.T) {
		var told reports
		w, dst := on.open(t, slab.Options{OnError: told.add})
		dst.Always(rollwaytest.Fault{Delay: 150 * time.Millisecond, Take: 1 << 20})
		const n = 1000
		for i := range n {
			put(t, w, numbered(i, 60))
			time.Sleep(time.Second)
			if i > 0 && w.Stats().Failing {
				t.Fatalf("%+v after %d lines", w.Stats(), i)
			}
		}
		if got := told.String(); got != "slab: the destination's Write has not returned for 100ms" {
			t.Errorf("OnError got %q", got)
		}
		settled(t, w, dst, n)
	})
}

// A call that has not returned for MaxWait is told, and Stats say so, without a
// failover as well.
func TestStallsAreTold(t *testing.T) { fronts(t, testStallsAreTold) }

func testStallsAreTold(t *testing.T, on front) {
	synctest.Test(t, func(t *testing.T) {
		var told reports
		w, dst := on.open(t, slab.Options{OnError: told.add})
		dst.Stall()
		put(t, w, "one")
		time.Sleep(100*time.Millisecond + maxWait)
		synctest.Wait()
		const want = "the destination's Write has not returned for 100ms"
		if got := told.String(); got != "slab: "+want {
			t.Errorf("OnError got %q", got)
		}
		if s := w.Stats(); !s.Failing || s.LastError == nil || s.LastError.Error() != want {
			t.Errorf("Stats = %+v, want it to say that the Write has not returned", s)
		}
		time.Sleep(5*time.Minute + time.Second)
		if n := len(told.times()); n != 6 {
			t.Errorf("OnError was called %d times in 5 minutes, want 6", n)
		}
		dst.Heal()
		synctest.Wait()
		if s := w.Stats(); s.Failing {
			t.Errorf("Stats = %+v, want that it works", s)
		}
		time.Sleep(5 * time.Minute)
		if n := len(told.times()); n != 6 {
			t.Errorf("OnError was called %d times, want none after the stall", n)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		settled(t, w, dst, 1)
	})
}

// Nothing waits for an OnError that hangs, and there is never a second one.
func TestNothingWaitsForOnError(t *testing.T) { fronts(t, testNothingWaitsForOnError) }

func testNothingWaitsForOnError(t *testing.T, on front) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		var calls atomic.Int32
		w, dst := on.open(t, slab.Options{SlabSize: 64, SlabCount: on.slabs(2), OnError: func(error) {
			if n := calls.Add(1); n > 1 {
				t.Errorf("%d calls of OnError at the same time", n)
			}
			<-hang
			calls.Add(-1)
		}})
		dst.FailTimes(3)
		start := time.Now()
		for i := range 10 {
			put(t, w, numbered(i, 60))
		}
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d > time.Second {
			t.Errorf("three errors held up the lines for %v", d)
		}
		for range 20 { // more than is kept for OnError
			dst.FailTimes(1)
			put(t, w, numbered(0, 60))
			time.Sleep(2 * time.Minute)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if n := calls.Load(); n != 1 {
			t.Errorf("%d calls of OnError are under way, want 1", n)
		}
		close(hang)
		synctest.Wait()
		settled(t, w, dst, 30)
	})
}

// An OnError that ends its goroutine is called again for the next error.
func TestOnErrorThatEndsItsGoroutine(t *testing.T) { fronts(t, testOnErrorThatEndsItsGoroutine) }

func testOnErrorThatEndsItsGoroutine(t *testing.T, on front) {
	synctest.Test(t, func(t *testing.T) {
		var told reports
		w, dst := on.open(t, slab.Options{OnError: func(err error) {
			told.add(err)
			runtime.Goexit()
		}})
		for range 10 {
			dst.FailTimes(1)
			put(t, w, "one")
			time.Sleep(2 * time.Minute)
		}
		if n := len(told.times()); n != 10 {
			t.Errorf("OnError was called %d times, want 10", n)
		}
		settled(t, w, dst, 10)
	})
}

// Without OnError a line is written to standard error, unless that is the
// destination.
func TestWithoutOnErrorStandardErrorIsTold(t *testing.T) {
	fronts(t, testWithoutOnErrorStandardErrorIsTold)
}

func testWithoutOnErrorStandardErrorIsTold(t *testing.T, on front) {
	r, stderr, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer func(f *os.File) { os.Stderr = f }(os.Stderr)
	os.Stderr = stderr
	closed := make(broken)
	for _, dst := range []io.Writer{closed, stderr} {
		o := slab.Options{MaxLine: 64 << 10}
		if dst != stderr {
			o.CloseTimeout = time.Millisecond
		}
		w, err := on.New(dst, o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(bytes.Repeat([]byte("x"), 100_000)); !errors.Is(err, line.ErrTooLarge) {
			t.Errorf("Write = %v, want line.ErrTooLarge", err)
		}
		if dst == stderr {
			if err := w.Close(); err != nil {
				t.Error(err)
			}
			continue
		}
		put(t, w, "one")
		defer func() {
			w.Close()
			<-closed // os.Stderr is not looked at any more
		}()
		text := make([]byte, 1<<10)
		for _, want := range []string{"slab: lines lost: 1 (line too large)", "slab: write to the destination: input/output error"} {
			n, err := r.Read(text)
			var told struct{ Time, Level, Msg string }
			if err := errors.Join(err, json.Unmarshal(text[:n], &told)); err != nil || told.Level != "ERROR" || !strings.HasPrefix(told.Msg, want) {
				t.Errorf("standard error got %q, %v, want %q", text[:n], err, want)
			}
		}
	}
	stderr.Close()
	if rest, err := io.ReadAll(r); err != nil || bytes.Count(rest, []byte("\n")) != 1 || !bytes.Contains(rest, []byte("1 line dropped")) {
		t.Errorf("standard error as the destination got %q, %v, want the notice alone", rest, err)
	}
}

type broken chan struct{}

func (broken) Write([]byte) (int, error) { return 0, syscall.EIO }

func (b broken) Close() error {
	close(b)
	return nil
}

// asking is an error whose text takes a call of the Writer.
type asking struct{ w **slab.Writer }

func (e asking) Error() string { return fmt.Sprint("asked ", (*e.w).Stats().Slabs) }

// A destination's error may call the Writer: its text is taken without a lock.
func TestErrorThatCallsTheWriter(t *testing.T) {
	for name, o := range map[string]slab.Options{
		"losses are told": {Full: slab.Drop},
		"Flush":           {},
		"Close":           {CloseTimeout: 50 * time.Millisecond},
		"given up":        {GiveUp: time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			var told reports
			var w *slab.Writer
			dst := new(rollwaytest.Destination)
			dst.Fail(asking{&w})
			o.SlabSize, o.SlabCount, o.OnError = 64, 4, told.add
			var err error
			if w, err = slab.New(dst, o); err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() {
				defer close(done)
				put(t, w, numbered(0, 60))
				await(t, "error", func() bool { return w.Stats().Failing })
				ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				defer cancel()
				switch name {
				case "losses are told":
					for i := range 10 {
						put(t, w, numbered(i, 60))
					}
					told.await(t, "buffer full")
					if !strings.Contains(told.String(), "cause: asked") {
						t.Errorf("told %q", told.String())
					}
					dst.Heal()
					done <- w.Close()
				case "Flush":
					err := w.Flush(ctx)
					dst.Heal()
					if err := w.Close(); err != nil {
						t.Error(err)
					}
					done <- err
				default:
					time.Sleep(10 * time.Millisecond)
					done <- w.Close()
				}
			}()
			select {
			case err := <-done:
				if name != "losses are told" && (err == nil || !strings.Contains(err.Error(), "asked 4")) {
					t.Errorf("got %v", err)
				}
			case <-time.After(time.Minute):
				t.Fatal("the Writer waits for itself")
			}
		})
	}
}
