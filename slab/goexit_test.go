package slab_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/rollwaytest"
	"github.com/rollway/rollway/slab"
)

func TestGoexitInWriteIsAFailure(t *testing.T) { fronts(t, testGoexitInWriteIsAFailure) }

func testGoexitInWriteIsAFailure(t *testing.T, on front) {
	synctest.Test(t, func(t *testing.T) {
		var told reports
		w, dst := on.open(t, slab.Options{SlabSize: 128, OnError: told.add})
		for round := range 20 {
			dst.Next(rollwaytest.Fault{Exit: true}, rollwaytest.Fault{Take: 40}, rollwaytest.Fault{Exit: true}, rollwaytest.Fault{Panic: "too"})
			for i := range 5 {
				put(t, w, numbered(5*round+i, 30))
			}
			if err := w.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for i, l := range dst.Lines() {
			if l != numbered(i, 30) {
				t.Fatalf("line %d is %q", i, l)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if s := w.Stats(); s.Errors != 80 || s.Failing {
			t.Errorf("Stats = %+v, want 80 errors", s)
		}
		if text := told.String(); !strings.Contains(text, "destination ended its goroutine in Write") {
			t.Errorf("OnError got %q, want it to name the cause", text)
		}
		settled(t, w, dst, 100)
	})
}

func TestGoexitForEver(t *testing.T) { fronts(t, testGoexitForEver) }

func testGoexitForEver(t *testing.T, on front) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := on.open(t, slab.Options{GiveUp: time.Minute})
		dst.Always(rollwaytest.Fault{Exit: true})
		put(t, w, "one", "two")
		if err := w.Flush(t.Context()); err == nil || !strings.Contains(err.Error(), "lines lost: 2, given up") {
			t.Errorf("Flush = %v, want the loss", err)
		}
		if calls := dst.Calls(); calls > 30 {
			t.Errorf("%d calls in a minute, want them to be spaced", calls)
		}
		put(t, w, "three")
		if err := w.Close(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close = %v, want a deadline exceeded", err)
		}
		synctest.Wait()
		settled(t, w, dst, 3)
	})
}

// exiting ends the goroutine in each method that is reached.
type exiting struct{ rollwaytest.Destination }

func (*exiting) Sync() error  { runtime.Goexit(); return nil }
func (*exiting) Close() error { runtime.Goexit(); return nil }

// exitingError is an error whose methods do so.
type exitingError struct{}

func (exitingError) Error() string             { runtime.Goexit(); return "" }
func (exitingError) RetryAfter() time.Duration { runtime.Goexit(); return 0 }

func TestGoexitElsewhere(t *testing.T) { fronts(t, testGoexitElsewhere) }

func testGoexitElsewhere(t *testing.T, on front) {
	t.Run("Sync and Close", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			dst := new(exiting)
			w, err := on.New(dst, slab.Options{})
			if err != nil {
				t.Fatal(err)
			}
			put(t, w, "one")
			if err := w.Sync(); err == nil || !strings.Contains(err.Error(), "ended its goroutine in Sync") {
				t.Errorf("Sync = %v, want the cause", err)
			}
			put(t, w, "two")
			if err := w.Shutdown(t.Context()); err == nil || !strings.Contains(err.Error(), "ended its goroutine in Close") {
				t.Errorf("Shutdown = %v, want the cause", err)
			}
			settled(t, w, &dst.Destination, 2)
		})
	})
	t.Run("the methods of an error", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, dst := on.open(t, slab.Options{OnError: func(error) {}})
			for i := range 10 {
				dst.Next(rollwaytest.Fault{Take: 4, Err: exitingError{}}, rollwaytest.Fault{Err: exitingError{}})
				put(t, w, numbered(i, 30))
				if err := w.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			for i, l := range dst.Lines() {
				if l != numbered(i, 30) {
					t.Fatalf("line %d is %q", i, l)
				}
			}
			settled(t, w, dst, 10)
		})
	})
}
