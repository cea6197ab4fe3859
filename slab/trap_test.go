package slab_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/rollwaytest"
	"github.com/rollway/rollway/slab"
)

// The tests in this file are named after faults that were measured in other
// writers of this kind.

func TestTrapTimerOvertakesQueuedSlab(t *testing.T) {
	w, dst := open(t, slab.Options{SlabSize: 256, SlabCount: 4, FlushInterval: time.Millisecond})
	const n = 100_000
	buf := make([]byte, 0, 64)
	for i := range n {
		buf = fmt.Appendf(buf[:0], "%06d\n", i)
		if _, err := w.Write(buf); err != nil {
			t.Fatal(err)
		}
		if i%1000 == 0 {
			time.Sleep(100 * time.Microsecond) // let ticks meet open and queued slabs
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for i, l := range dst.Lines() {
		if want := fmt.Sprintf("%06d", i); l != want {
			t.Fatalf("line %d is %s, want %s", i, l, want)
		}
	}
	settled(t, w, dst, n)
}

func TestTrapDropCountOffByOne(t *testing.T) {
	w, dst := open(t, slab.Options{SlabSize: 1024, SlabCount: 2, Full: slab.Drop})
	const n = 50_000
	for i := range n {
		size := 20 + i%100
		if i%500 == 0 {
			size = 3000 // an oversized line takes part in the count
		}
		put(t, w, numbered(i, size))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	settled(t, w, dst, n)
	if s := w.Stats(); s.Dropped.BufferFull == 0 || s.Dropped.BufferFull != s.Dropped.Total() {
		t.Errorf("dropped %+v, want some, all for a full buffer", s.Dropped)
	}
}

func TestTrapDropModeBlocksAfterOversizedLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := open(t, slab.Options{SlabSize: 64, SlabCount: 2, Full: slab.Drop})
		dst.Stall()
		start := time.Now()
		const n = 50
		for i := range n {
			put(t, w, numbered(i, 40+i%2*200))
		}
		w.Stats()
		if d := time.Since(start); d != 0 {
			t.Errorf("%d Writes and a Stats took %v, want no time", n, d)
		}
		dst.Heal()
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		settled(t, w, dst, n)
	})
}

func TestTrapStatsWaitsForStalledDestination(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := open(t, slab.Options{SlabSize: 64, SlabCount: 4})
		dst.Stall()
		const n = 10
		done := make(chan struct{})
		go func() {
			for i := range n {
				put(t, w, numbered(i, 50))
			}
			close(done)
		}()
		synctest.Wait()
		// The producer waits for a slab: one line is at the destination, three
		// are queued, the fifth is in its hands.
		s := w.Stats()
		if s.Accepted != 4 || s.Pending != 4 || s.Waiting != 1 || s.SlabsFree != 0 || s.SlabsQueued != 3 {
			t.Errorf("Stats = %+v, want 4 lines pending in one slab in flight and three queued, and one producer waiting", s)
		}
		dst.Heal()
		<-done
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		settled(t, w, dst, n)
	})
}

func TestTrapFlushDiscardsOrHangsUnderPressure(t *testing.T) {
	for _, full := range []slab.Policy{slab.Block, slab.Drop} {
		t.Run(full.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, dst := open(t, slab.Options{SlabSize: 64, SlabCount: 3, Full: full})
				dst.Stall()
				put(t, w, numbered(0, 40), numbered(1, 40), numbered(2, 40))
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				err := w.Flush(ctx)
				if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "3 lines still pending") {
					t.Errorf("Flush = %v, want a deadline exceeded with 3 lines pending", err)
				}
				if s := w.Stats(); s.Pending != 3 || s.Dropped.Total() != 0 {
					t.Errorf("after Flush %d lines pending, %d dropped, want 3 and 0", s.Pending, s.Dropped.Total())
				}
				dst.Heal()
				if err := w.Flush(t.Context()); err != nil {
					t.Error(err)
				}
				settled(t, w, dst, 3)
			})
		})
	}
}

func TestTrapCloseReturnsNilAfterFailedWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := open(t, slab.Options{})
		dst.Fail(syscall.ENOSPC)
		put(t, w, "one", "two", "three")
		err := w.Close()
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("Close = %v, want an error that wraps the deadline and ENOSPC", err)
		}
		if !strings.Contains(fmt.Sprint(err), "3 lines dropped") {
			t.Errorf("Close = %v, want it to say that 3 lines were dropped", err)
		}
		synctest.Wait()
		settled(t, w, dst, 3)
		if s := w.Stats(); s.Dropped.Shutdown != 3 {
			t.Errorf("dropped %+v, want 3 at shutdown", s.Dropped)
		}
	})
}

func TestTrapSilentShortWriteLosesLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := open(t, slab.Options{})
		dst.Next(rollwaytest.Fault{Take: 5}, rollwaytest.Fault{Take: 1}, rollwaytest.Fault{Take: 0})
		put(t, w, "one", "two", "three")
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		want(t, "lines", dst.Lines(), []string{"one", "two", "three"})
		settled(t, w, dst, 3)
		if s := w.Stats(); s.Errors != 3 || s.Retries != 3 {
			t.Errorf("%d errors and %d retries, want 3 and 3", s.Errors, s.Retries)
		}
	})
}

func TestTrapFailedSlabIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := open(t, slab.Options{SlabSize: 64, SlabCount: 3})
		dst.Next(rollwaytest.Fault{Take: 7, Err: syscall.EIO}, rollwaytest.Fault{Err: syscall.EIO}, rollwaytest.Fault{Panic: "disk on fire"})
		for i := range 10 {
			put(t, w, numbered(i, 40))
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		for i, l := range dst.Lines() {
			if l != numbered(i, 40) {
				t.Fatalf("line %d is %q: torn, lost or repeated", i, l)
			}
		}
		settled(t, w, dst, 10)
	})
}

func TestTrapWriteAfterCloseLosesAndHangs(t *testing.T) {
	w, dst := open(t, slab.Options{SlabSize: 64, SlabCount: 2})
	put(t, w, "one")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		if n, err := w.Write([]byte("late\nlater")); n != 0 || !errors.Is(err, os.ErrClosed) {
			t.Fatalf("Write %d after Close = %d, %v, want 0, os.ErrClosed", i, n, err)
		}
		if _, err := w.WriteLevel(slog.LevelError, []byte("late\n")); !errors.Is(err, os.ErrClosed) {
			t.Fatalf("WriteLevel %d after Close = %v, want os.ErrClosed", i, err)
		}
	}
	if got := w.Stats().Rejected; got != 3000 {
		t.Errorf("%d lines rejected, want 3000", got)
	}
	if err := w.Flush(t.Context()); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Flush after Close = %v, want os.ErrClosed", err)
	}
	settled(t, w, dst, 1)
}

func TestTrapTotalSlabsIsOneMore(t *testing.T) {
	w, _ := open(t, slab.Options{SlabCount: 2})
	if s := w.Stats(); s.Slabs != 2 || s.SlabsFree != 2 {
		t.Errorf("%d slabs, %d free, want 2 and 2", s.Slabs, s.SlabsFree)
	}
}

func TestTrapFilledSlabIsThrownAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := open(t, slab.Options{SlabSize: 64, SlabCount: 2, Full: slab.Drop})
		dst.Stall()
		put(t, w, numbered(0, 60))
		synctest.Wait()
		for i := 1; i < 20; i++ {
			put(t, w, numbered(i, 30)) // two to a slab
		}
		dst.Heal()
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		got, notices := lines(dst)
		want(t, "lines", got, []string{numbered(0, 60), numbered(1, 30), numbered(2, 30)})
		want(t, "notices", notices, []string{notice(17, "buffer full")})
		settled(t, w, dst, 20)
	})
}

func TestTrapDefaultsNeverFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := open(t, slab.Options{})
		put(t, w, "one line of a quiet service")
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		if got := dst.Lines(); len(got) != 1 {
			t.Errorf("%d lines at the destination after 100 ms, want 1", len(got))
		}
		if s := w.Stats(); s.Slabs != 8 {
			t.Errorf("%d slabs, want 8", s.Slabs)
		}
	})
}

func TestTrapOneTransientErrorKillsTheWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := open(t, slab.Options{})
		dst.Next(rollwaytest.Fault{Err: syscall.ENOSPC})
		for i := range 100 {
			put(t, w, numbered(i, 20))
			if err := w.Flush(t.Context()); err != nil {
				t.Fatalf("Flush %d = %v", i, err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		settled(t, w, dst, 100)
	})
}

func TestTrapWakeUpLost(t *testing.T) {
	// A line after any length of idleness arrives by itself: the ticker runs,
	// is about to stop, has stopped.
	synctest.Test(t, func(t *testing.T) {
		w, dst := open(t, slab.Options{FlushInterval: 10 * time.Millisecond})
		n := 0
		for pause := time.Duration(0); pause < 200*time.Millisecond; pause += 333 * time.Microsecond {
			time.Sleep(pause)
			put(t, w, numbered(n, 20))
			n++
			time.Sleep(10 * time.Millisecond)
			synctest.Wait()
			if got := len(dst.Lines()); got != n {
				t.Fatalf("after a pause of %v %d lines at the destination, want %d", pause, got, n)
			}
		}
	})
}

func TestTrapWakeUpLostInRealTime(t *testing.T) {
	w, dst := open(t, slab.Options{SlabSize: 64, SlabCount: 2, FlushInterval: time.Hour})
	const n = 20_000
	for i := range n {
		put(t, w, numbered(i, 63)) // each fills a slab: only the wake-up moves it
		if i%97 == 0 {
			if err := w.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	settled(t, w, dst, n)
}

func TestTrapKeepsTheCallersSlice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := open(t, slab.Options{SlabSize: 64, SlabCount: 2})
		dst.Stall()
		buf := []byte("AAAA\n")
		for c := byte('A'); c <= 'Z'; c++ {
			for i := range 4 {
				buf[i] = c
			}
			if c == 'Q' {
				dst.Heal() // until here lines piled up
			}
			if _, err := w.Write(buf); err != nil {
				t.Fatal(err)
			}
		}
		long := []byte(strings.Repeat("L", 500) + "\n")
		if _, err := w.Write(long); err != nil {
			t.Fatal(err)
		}
		clear(long)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		got := dst.Lines()
		for i, l := range got[:26] {
			if want := strings.Repeat(string(rune('A'+i)), 4); l != want {
				t.Errorf("line %d is %q, want %q", i, l, want)
			}
		}
		if got[26] != strings.Repeat("L", 500) {
			t.Errorf("the oversized line is %q", got[26])
		}
	})
}
