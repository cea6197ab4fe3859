package slab_test

import (
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/line"
	"github.com/rollway/rollway/slab"
)

// try wants TryWriteLevel of a line of size bytes to return wanted, at once.
func try(t *testing.T, w *slab.Writer, l slog.Level, size int, wanted error) {
	t.Helper()
	start := time.Now()
	if err := w.TryWriteLevel(l, []byte(strings.Repeat("x", size-1)+"\n")); err != wanted {
		t.Errorf("TryWriteLevel of a line of %d bytes at %v = %v, want %v", size, l, err, wanted)
	}
	if d := time.Since(start); d != 0 {
		t.Errorf("TryWriteLevel took %v", d)
	}
}

// TestTryWriteLevel: with every slab taken, a line is refused as WriteLevel would
// treat it, and counted nowhere; one that may use a reserved slab is taken.
func TestTryWriteLevel(t *testing.T) { fronts(t, testTryWriteLevel) }

func testTryWriteLevel(t *testing.T, on front) {
	for _, full := range []slab.Policy{slab.Bounded, slab.Block, slab.Drop} {
		t.Run(full.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, dst := on.open(t, slab.Options{SlabSize: 64, Full: full, MaxLine: 64})
				dst.Stall()
				refused := line.ErrWouldWait
				if full == slab.Drop {
					refused = line.ErrFull
				}
				taken := 6 // of 8 slabs
				if full == slab.Block {
					taken = 8
				}
				for range taken {
					try(t, w, slog.LevelInfo, 60, nil)
				}
				try(t, w, slog.LevelInfo, 60, refused)
				try(t, w, slog.LevelInfo, 4, nil) // fits the open slab
				if full != slab.Block {
					try(t, w, slog.LevelWarn, 60, nil)
					try(t, w, slog.LevelWarn, 60, refused)
					try(t, w, slog.LevelError, 60, nil)
					try(t, w, slog.LevelError, 60, refused)
				}
				if err := w.TryWriteLevel(slog.LevelInfo, make([]byte, 100)); err != refused { // no whole line
					t.Errorf("a p without a newline: %v", err)
				}
				if s := w.Stats(); s.Accepted != s.Pending || s.Dropped.Total() != 0 || s.Waiting != 0 {
					t.Errorf("Stats = %+v, want what was refused nowhere", s)
				}
				if full == slab.Bounded { // after a wait in vain
					putLevel(t, w, slog.LevelInfo, strings.Repeat("x", 59))
					try(t, w, slog.LevelInfo, 60, line.ErrFull)
				}
				err := w.TryWriteLevel(slog.LevelInfo, []byte(strings.Repeat("x", 99)+"\n"))
				if !errors.Is(err, line.ErrTooLarge) || w.Stats().Dropped.TooLarge != 1 {
					t.Errorf("a line of 100 bytes: %v, %+v", err, w.Stats().Dropped)
				}
				dst.Heal()
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
				try(t, w, slog.LevelError, 60, os.ErrClosed)
				if got := w.Stats().Rejected; got != 1 {
					t.Errorf("%d lines rejected, want 1", got)
				}
				ledger(w).Check(t)
			})
		})
	}
}

// TestTryWriteLevelDoesNotOvertake: while calls wait for room no line is taken
// before theirs.
func TestTryWriteLevelDoesNotOvertake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := open(t, slab.Options{SlabSize: 64, SlabCount: 2, Full: slab.Block})
		dst.Stall()
		put(t, w, numbered(0, 30), numbered(1, 30), numbered(2, 30)) // there is room for 33 more
		var wg sync.WaitGroup
		wg.Go(func() { put(t, w, numbered(3, 60)) })
		synctest.Wait()
		try(t, w, slog.LevelInfo, 5, line.ErrWouldWait)
		dst.Heal()
		wg.Wait()
		synctest.Wait() // slabs are free again
		try(t, w, slog.LevelInfo, 4, nil)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		want(t, "lines", dst.Lines(), []string{numbered(0, 30), numbered(1, 30), numbered(2, 30), numbered(3, 60), "xxx"})
		settled(t, w, dst, 5)
	})
}

// TestTryWriteLevelThrough: a line that WriteLevel would write through is left to
// it, until waiting for that was in vain.
func TestTryWriteLevelThrough(t *testing.T) { fronts(t, testTryWriteLevelThrough) }

func testTryWriteLevelThrough(t *testing.T, on front) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := on.open(t, slab.Options{WriteThrough: slog.LevelError})
		dst.Stall()
		try(t, w, slog.LevelWarn, 10, nil)
		try(t, w, slog.LevelError, 10, line.ErrWouldWait)
		putLevel(t, w, slog.LevelError, "waits")
		try(t, w, slog.LevelError, 10, nil)
		dst.Heal()
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		try(t, w, slog.LevelError, 10, os.ErrClosed)
		settled(t, w, dst, 3)
	})
}

// TestRefusedTryLeavesNothingAsleep: a line that was refused while nothing is to be
// done does not keep the next one from being written.
func TestRefusedTryLeavesNothingAsleep(t *testing.T) { fronts(t, testRefusedTryLeavesNothingAsleep) }

func testRefusedTryLeavesNothingAsleep(t *testing.T, on front) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := on.open(t, slab.Options{})
		time.Sleep(time.Minute) // its goroutine waits without a ticker
		synctest.Wait()
		n := 1
		if err := w.TryWriteLevel(slog.LevelInfo, []byte("two\nlines\n")); err == nil {
			n = 3
		} else if err != line.ErrWouldWait {
			t.Fatal(err)
		}
		put(t, w, "one")
		time.Sleep(time.Minute)
		if s := w.Stats(); s.Pending > 0 {
			t.Errorf("%+v a minute after the line", s.Ledger)
		}
		settled(t, w, dst, n)
	})
}
