package slab_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/line"
	"github.com/rollway/rollway/rollwaytest"
	"github.com/rollway/rollway/slab"
)

// The tests in this file are named after faults that were measured in other
// writers of this kind.

func TestTrapTimerOvertakesQueuedSlab(t *testing.T) { fronts(t, testTrapTimerOvertakesQueuedSlab) }

func testTrapTimerOvertakesQueuedSlab(t *testing.T, on front) {
	t.Parallel()
	w, dst := on.open(t, slab.Options{SlabSize: 256, SlabCount: 4, Full: slab.Block, FlushInterval: time.Millisecond})
	const n = 100_000
	buf := make([]byte, 0, 64)
	for i := range n {
		buf = fmt.Appendf(buf[:0], "%06d\n", i)
		if _, err := w.Write(buf); err != nil {
			t.Fatal(err)
		}
		if i%1000 == 0 {
			runtime.Gosched() // let ticks meet open and queued slabs
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

func TestTrapDropCountOffByOne(t *testing.T) { fronts(t, testTrapDropCountOffByOne) }

func testTrapDropCountOffByOne(t *testing.T, on front) {
	w, dst := on.open(t, slab.Options{SlabSize: 1024, SlabCount: on.slabs(2), Full: slab.Drop})
	t.Parallel()
	const n = 50_000
	for i := range n {
		size := 20 + i%100
		if i%500 == 0 {
			size = on.maxLine(1024, 3000) - 1 // an oversized line takes part in the count
		}
		put(t, w, numbered(i, size))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	settled(t, w, dst, n)
	if s := w.Stats(); s.Dropped.Full == 0 || s.Dropped.Full != s.Dropped.Total() {
		t.Errorf("dropped %+v, want some, all for a full buffer", s.Dropped)
	}
}

func TestTrapDropModeBlocksAfterOversizedLine(t *testing.T) {
	fronts(t, testTrapDropModeBlocksAfterOversizedLine)
}

func testTrapDropModeBlocksAfterOversizedLine(t *testing.T, on front) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := on.open(t, on.fit(slab.Options{SlabSize: 64, SlabCount: 2, Full: slab.Drop}, 250))
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

func TestTrapCloseReturnsNilAfterFailedWrites(t *testing.T) {
	fronts(t, testTrapCloseReturnsNilAfterFailedWrites)
}

func testTrapCloseReturnsNilAfterFailedWrites(t *testing.T, on front) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := on.open(t, slab.Options{})
		dst.Fail(syscall.ENOSPC)
		put(t, w, "one", "two", "three")
		err := w.Close()
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("Close = %v, want an error that wraps the deadline and ENOSPC", err)
		}
		if !strings.Contains(fmt.Sprint(err), "lines lost: 3") || !errors.Is(err, line.ErrLost) {
			t.Errorf("Close = %v, want it to say that 3 lines were lost", err)
		}
		synctest.Wait()
		settled(t, w, dst, 3)
		if s := w.Stats(); s.Dropped.Shutdown != 3 {
			t.Errorf("dropped %+v, want 3 at shutdown", s.Dropped)
		}
	})
}

func TestTrapSilentShortWriteLosesLines(t *testing.T) { fronts(t, testTrapSilentShortWriteLosesLines) }

func testTrapSilentShortWriteLosesLines(t *testing.T, on front) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := on.open(t, slab.Options{})
		dst.Next(rollwaytest.Fault{Take: 5}, rollwaytest.Fault{Take: 1}, rollwaytest.Fault{Take: 0})
		put(t, w, "one", "two", "three")
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		want(t, "lines", dst.Lines(), []string{"one", "two", "three"})
		settled(t, w, dst, 3)
		if s := w.Stats(); s.Errors != 3 {
			t.Errorf("%d errors, want 3", s.Errors)
		}
	})
}

func TestTrapFilledSlabIsThrownAway(t *testing.T) { fronts(t, testTrapFilledSlabIsThrownAway) }

func testTrapFilledSlabIsThrownAway(t *testing.T, on front) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := on.open(t, slab.Options{SlabSize: 64, SlabCount: 4, Full: slab.Drop})
		dst.Stall()
		put(t, w, numbered(20, 60), numbered(21, 60), numbered(0, 60))
		synctest.Wait()
		for i := 1; i < 20; i++ {
			put(t, w, numbered(i, 30)) // two to a slab
		}
		dst.Heal()
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		got, notices := lines(dst)
		want(t, "lines", got, []string{numbered(20, 60), numbered(21, 60), numbered(0, 60), numbered(1, 30), numbered(2, 30)})
		want(t, "notices", notices, []string{notice(17, "buffer full")})
		settled(t, w, dst, 22)
	})
}

func TestTrapDefaultsNeverFlush(t *testing.T) { fronts(t, testTrapDefaultsNeverFlush) }

func testTrapDefaultsNeverFlush(t *testing.T, on front) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := on.open(t, slab.Options{})
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

func TestTrapWakeUpLost(t *testing.T) { fronts(t, testTrapWakeUpLost) }

func testTrapWakeUpLost(t *testing.T, on front) {
	// A line after any length of idleness arrives by itself: the ticker runs,
	// is about to stop, has stopped.
	synctest.Test(t, func(t *testing.T) {
		w, dst := on.open(t, slab.Options{FlushInterval: 10 * time.Millisecond})
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

func TestTrapWakeUpLostInRealTime(t *testing.T) { fronts(t, testTrapWakeUpLostInRealTime) }

func testTrapWakeUpLostInRealTime(t *testing.T, on front) {
	t.Parallel()
	w, dst := on.open(t, slab.Options{SlabSize: 64, SlabCount: on.slabs(2), Full: slab.Block, FlushInterval: time.Hour})
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
