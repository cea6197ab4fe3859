package slab_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/line"
	"github.com/rollway/rollway/slab"
)

// The tests in this file are named after faults that were measured in other
// writers of this kind.

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
