package slab_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/line"
	"github.com/rollway/rollway/rollwaytest"
	"github.com/rollway/rollway/slab"
)

func TestShutdownDeadlineOnAStalledDestination(t *testing.T) {
	fronts(t, testShutdownDeadlineOnAStalledDestination)
}

func testShutdownDeadlineOnAStalledDestination(t *testing.T, on front) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := on.open(t, slab.Options{SlabSize: 64, SlabCount: 4, Full: slab.Block})
		dst.Stall()
		put(t, w, numbered(0, 30), numbered(1, 30), numbered(2, 30), numbered(3, 30), numbered(4, 30))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		err := w.Shutdown(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "lines lost: 3: lines pending: 2, inside the destination's Write") {
			t.Errorf("Shutdown = %v, want a deadline exceeded, 3 lines lost, 2 inside a Write", err)
		}
		if !errors.Is(err, line.ErrLost) || !errors.Is(err, line.ErrPending) {
			t.Errorf("Shutdown = %v, want line.ErrLost and line.ErrPending in it", err)
		}
		if d := time.Since(start); d != time.Minute {
			t.Errorf("Shutdown took %v, want 1m0s", d)
		}
		if s := w.Stats(); s.Pending != 2 || s.Dropped.Shutdown != 3 || s.Written != 0 {
			t.Errorf("Stats = %+v, want 2 lines pending and 3 dropped at shutdown", s)
		}
		if again := w.Close(); again != err {
			t.Errorf("Close = %v, want what Shutdown returned: %v", again, err)
		}
		if n := dst.Closes(); n != 0 {
			t.Errorf("the destination was closed during a Write")
		}
		dst.Heal() // the write returns: its lines are out after all
		synctest.Wait()
		settled(t, w, dst, 5)
		if s := w.Stats(); s.Written != 2 {
			t.Errorf("%d lines written, want 2", s.Written)
		}
		if n := dst.Closes(); n != 1 {
			t.Errorf("the destination was closed %d times, want once", n)
		}
	})
}

func TestShutdownDeadlineThenTheWriteFails(t *testing.T) {
	fronts(t, testShutdownDeadlineThenTheWriteFails)
}

func testShutdownDeadlineThenTheWriteFails(t *testing.T, on front) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := on.open(t, slab.Options{})
		dst.Next(rollwaytest.Fault{Delay: time.Hour, Take: 5, Err: syscall.EIO})
		put(t, w, "one", "two", "three")
		if err := w.Close(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close = %v, want a deadline exceeded", err)
		}
		if got := w.Stats().Pending; got != 3 {
			t.Errorf("%d lines pending, want 3", got)
		}
		time.Sleep(2 * time.Hour)
		s := w.Stats()
		if s.Written != 1 || s.Dropped.Shutdown != 2 || s.Pending != 0 || s.Accepted != 3 {
			t.Errorf("Stats = %+v, want 1 line written and 2 dropped at shutdown", s)
		}
	})
}

func TestShutdownWithAnEndedContext(t *testing.T) { fronts(t, testShutdownWithAnEndedContext) }

func testShutdownWithAnEndedContext(t *testing.T, on front) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := on.open(t, slab.Options{})
		dst.Fail(nil)
		put(t, w, "one")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := w.Shutdown(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Shutdown = %v, want context.Canceled", err)
		}
		synctest.Wait()
		settled(t, w, dst, 1)
	})
}

func TestEarliestDeadlineCounts(t *testing.T) { fronts(t, testEarliestDeadlineCounts) }

func testEarliestDeadlineCounts(t *testing.T, on front) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := on.open(t, slab.Options{CloseTimeout: time.Second})
		dst.Fail(nil)
		put(t, w, "one")
		start := time.Now()
		errs := make([]error, 3)
		var wg sync.WaitGroup
		wg.Go(func() { errs[0] = w.Shutdown(t.Context()) })
		wg.Go(func() { errs[1] = w.Shutdown(t.Context()) })
		synctest.Wait()
		errs[2] = w.Close()
		wg.Wait()
		if d := time.Since(start); d != time.Second {
			t.Errorf("took %v, want 1s", d)
		}
		if errs[0] == nil || errs[0] != errs[1] || errs[1] != errs[2] {
			t.Errorf("the callers got %v, want one and the same error", errs)
		}
	})
}

func TestCloseDestination(t *testing.T) { fronts(t, testCloseDestination) }

func testCloseDestination(t *testing.T, on front) {
	t.Run("not with KeepOpen", func(t *testing.T) {
		w, dst := on.open(t, slab.Options{KeepOpen: true})
		if err := w.Close(); err != nil || dst.Closes() != 0 {
			t.Errorf("Close = %v, the destination was closed %d times, want nil and 0", err, dst.Closes())
		}
	})
	t.Run("once and after the last write", func(t *testing.T) {
		w, dst := on.open(t, slab.Options{})
		put(t, w, "one")
		for range 2 {
			if err := w.Close(); err != nil || dst.Closes() != 1 {
				t.Errorf("Close = %v, the destination was closed %d times, want nil and 1", err, dst.Closes())
			}
		}
		settled(t, w, dst, 1)
	})
	t.Run("never a standard stream", func(t *testing.T) {
		w, err := on.New(os.Stdout, slab.Options{Failover: os.Stderr})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		for _, f := range []*os.File{os.Stdout, os.Stderr} {
			if _, err := f.Stat(); err != nil {
				t.Errorf("%s: %v", f.Name(), err)
			}
		}
	})
	t.Run("its error is Close's", func(t *testing.T) {
		w, dst := on.open(t, slab.Options{})
		dst.FailClose(syscall.EIO)
		if err := w.Close(); !errors.Is(err, syscall.EIO) {
			t.Errorf("Close = %v, want EIO", err)
		}
	})
	t.Run("one that hangs ends with the deadline", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, dst := on.open(t, slab.Options{})
			dst.StallClose()
			put(t, w, "one")
			err := w.Close()
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "Close has not returned") {
				t.Errorf("Close = %v, want a deadline exceeded that names the destination's Close", err)
			}
			settled(t, w, dst, 1)
		})
	})
}

// callbacks is a destination made of functions.
type callbacks struct {
	write func([]byte) (int, error)
	sync  func() error
	close func() error
}

func (d callbacks) Write(p []byte) (int, error) { return d.write(p) }
func (d callbacks) Sync() error                 { return d.sync() }
func (d callbacks) Close() error                { return d.close() }

func TestPanicsOfTheDestinationAreErrors(t *testing.T) {
	fronts(t, testPanicsOfTheDestinationAreErrors)
}

func testPanicsOfTheDestinationAreErrors(t *testing.T, on front) {
	boom := errors.New("boom")
	first := true
	dst := callbacks{
		write: func(p []byte) (int, error) {
			if first {
				first = false
				panic(boom)
			}
			return len(p), nil
		},
		sync:  func() error { panic(boom) },
		close: func() error { panic("bang") },
	}
	reported := make(chan error, 1)
	w, err := on.New(dst, slab.Options{OnError: func(err error) { reported <- err }})
	if err != nil {
		t.Fatal(err)
	}
	put(t, w, "one")
	if err := w.Sync(); !errors.Is(err, boom) || !strings.Contains(err.Error(), "panicked in Sync") {
		t.Errorf("Sync = %v, want the panic", err)
	}
	if err := <-reported; !errors.Is(err, boom) || !strings.Contains(err.Error(), "panicked in Write") {
		t.Errorf("OnError got %v, want the panic", err)
	}
	if err := w.Close(); err == nil || !strings.Contains(err.Error(), "bang") {
		t.Errorf("Close = %v, want the panic", err)
	}
	if s := w.Stats(); s.Written != 1 || s.Accepted != 1 {
		t.Errorf("Stats = %+v, want one line written", s)
	}
}

func TestImpossibleCountsAreBroughtIntoRange(t *testing.T) {
	fronts(t, testImpossibleCountsAreBroughtIntoRange)
}

func testImpossibleCountsAreBroughtIntoRange(t *testing.T, on front) {
	counts := []int{-5, 1 << 30, 3}
	var got []byte
	dst := callbacks{write: func(p []byte) (int, error) {
		n := len(p)
		if len(counts) > 0 {
			n, counts = counts[0], counts[1:]
		}
		got = append(got, p[:min(max(n, 0), len(p))]...)
		return n, nil
	}}
	w, err := on.New(dst, slab.Options{KeepOpen: true, OnError: func(error) {}})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []string{"one", "two"} {
		put(t, w, l)
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if string(got) != "one\ntwo\n" {
		t.Errorf("the destination has %q", got)
	}
	if s := w.Stats(); s.Written != 2 || s.Pending != 0 {
		t.Errorf("Stats = %+v, want two lines written", s)
	}
}

func TestSync(t *testing.T) { fronts(t, testSync) }

func testSync(t *testing.T, on front) {
	t.Run("errors", func(t *testing.T) {
		for err, want := range map[error]error{
			nil:            nil,
			syscall.EIO:    syscall.EIO,
			syscall.EINVAL: nil, // a pipe
			syscall.ENOTTY: nil, // a terminal on darwin
			fmt.Errorf("sync: %w", errors.ErrUnsupported): nil,
		} {
			w, dst := on.open(t, slab.Options{})
			dst.FailSync(err)
			put(t, w, "one")
			if got := w.Sync(); !errors.Is(got, want) || (got == nil) != (want == nil) {
				t.Errorf("Sync on a destination that answers %v = %v, want %v", err, got, want)
			}
			settled(t, w, dst, 1)
		}
	})
	t.Run("a real pipe", func(t *testing.T) {
		r, pw, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		w, err := on.New(pw, slab.Options{})
		if err != nil {
			t.Fatal(err)
		}
		put(t, w, "one")
		if err := w.Sync(); err != nil {
			t.Errorf("Sync = %v, want nil", err)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Run("no Sync at all", func(t *testing.T) {
		w, err := on.New(new(strings.Builder), slab.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Sync(); err != nil {
			t.Errorf("Sync = %v, want nil", err)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Run("one fsync answers all who wait", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, dst := on.open(t, slab.Options{})
			dst.Next(rollwaytest.Fault{Delay: time.Second, Take: 1 << 20})
			put(t, w, "one")
			var wg sync.WaitGroup
			for range 50 {
				wg.Go(func() {
					if err := w.Sync(); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if n := dst.Syncs(); n > 2 {
				t.Errorf("50 callers of Sync cost %d syncs of the destination, want 1 or 2", n)
			}
			settled(t, w, dst, 1)
		})
	})
	t.Run("bounded by CloseTimeout", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, dst := on.open(t, slab.Options{CloseTimeout: time.Minute})
			dst.Stall()
			put(t, w, "one")
			start := time.Now()
			if err := w.Sync(); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Sync = %v, want a deadline exceeded", err)
			}
			if d := time.Since(start); d != time.Minute {
				t.Errorf("Sync took %v, want 1m0s", d)
			}
		})
	})
}

func TestBarriersEndWithShutdown(t *testing.T) { fronts(t, testBarriersEndWithShutdown) }

func testBarriersEndWithShutdown(t *testing.T, on front) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := on.open(t, slab.Options{})
		dst.Fail(syscall.EIO)
		put(t, w, "one")
		errs := make([]error, 2)
		var wg sync.WaitGroup
		wg.Go(func() { errs[0] = w.Flush(t.Context()) })
		wg.Go(func() { errs[1] = w.Sync() })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second) // less than that Sync has
		defer cancel()
		if err := w.Shutdown(ctx); err == nil {
			t.Error("Shutdown = nil, want an error")
		}
		wg.Wait()
		for i, err := range errs {
			if !errors.Is(err, syscall.EIO) {
				t.Errorf("barrier %d ended with %v, want the error that lost the line", i, err)
			}
		}
	})
}

// A slow syncer is a destination whose Sync takes long, in virtual time.
type slowSyncer struct {
	rollwaytest.Destination
	takes time.Duration
}

func (d *slowSyncer) Sync() error {
	err := d.Destination.Sync()
	time.Sleep(d.takes)
	return err
}

// A Sync that was abandoned does not hold up a Shutdown whose deadline has
// passed.
func TestShutdownDeadlineWithASyncLeftBehind(t *testing.T) {
	fronts(t, testShutdownDeadlineWithASyncLeftBehind)
}

func testShutdownDeadlineWithASyncLeftBehind(t *testing.T, on front) {
	synctest.Test(t, func(t *testing.T) {
		first, second := &slowSyncer{takes: time.Hour}, new(rollwaytest.Destination)
		w, err := on.New(first, slab.Options{Failover: second, CloseTimeout: time.Second, OnError: func(error) {}})
		if err != nil {
			t.Fatal(err)
		}
		defer time.Sleep(2 * time.Hour)  // that Sync returns
		if err := w.Sync(); err == nil { // its own deadline or that of the destination's Sync, at one moment
			t.Error("Sync = nil, want an error")
		}
		second.Fail(nil)
		put(t, w, "one")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		if err := w.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Shutdown = %v, want context.DeadlineExceeded", err)
		}
		if d := time.Since(start); d != time.Minute {
			t.Errorf("Shutdown took %v, want 1m0s", d)
		}
		ledger(w).CheckSettled(t, 1, 0)
	})
}

// Once the deadline of Shutdown has passed no method of a destination begins but
// Close.
func TestNoSyncAfterTheDeadlineOfShutdown(t *testing.T) {
	fronts(t, testNoSyncAfterTheDeadlineOfShutdown)
}

func testNoSyncAfterTheDeadlineOfShutdown(t *testing.T, on front) {
	synctest.Test(t, func(t *testing.T) {
		first, second := &slowSyncer{takes: time.Minute}, &slowSyncer{}
		w, err := on.New(first, slab.Options{Failover: second, MaxWait: 8 * time.Millisecond, CloseTimeout: 2 * time.Minute, KeepOpen: true, OnError: func(error) {}})
		if err != nil {
			t.Fatal(err)
		}
		first.Fail(nil)
		put(t, w, "one")
		if err := w.Flush(t.Context()); err != nil { // it goes to the failover
			t.Fatal(err)
		}
		first.Heal()
		time.Sleep(time.Minute)
		put(t, w, "two")
		if err := w.Flush(t.Context()); err != nil { // it goes to the destination
			t.Fatal(err)
		}
		synced := make(chan error, 1)
		go func() { synced <- w.Sync() }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 0)
		defer cancel()
		shutdown := w.Shutdown(ctx)
		if !errors.Is(shutdown, context.DeadlineExceeded) {
			t.Errorf("Shutdown = %v, want context.DeadlineExceeded", shutdown)
		}
		if err := <-synced; !errors.Is(err, shutdown) {
			t.Errorf("Sync = %v, want what Shutdown returned: %v", err, shutdown)
		}
		time.Sleep(2 * time.Minute)
		if first.Syncs() != 1 || second.Syncs() != 0 {
			t.Errorf("%d syncs of the destination and %d of the failover, want 1 and none", first.Syncs(), second.Syncs())
		}
	})
}
