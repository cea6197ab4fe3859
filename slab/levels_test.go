package slab_test

import (
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/line"
	"github.com/rollway/rollway/rollwaytest"
	"github.com/rollway/rollway/slab"
)

// putLevel writes one line of a level and wants it accepted.
func putLevel(t *testing.T, w *slab.Writer, l slog.Level, text string) {
	t.Helper()
	p := text + "\n"
	if n, err := w.WriteLevel(l, []byte(p)); n != len(p) || err != nil {
		t.Errorf("WriteLevel(%v, %.40q) = %d, %v, want %d, nil", l, text, n, err, len(p))
	}
}

// sumsUp wants the drops by level to add up to the drops.
func sumsUp(t *testing.T, s slab.Stats) {
	t.Helper()
	if total(s.DroppedByLevel) != s.Dropped.Total() {
		t.Errorf("dropped %+v, but by level %+v", s.Dropped, s.DroppedByLevel)
	}
}

// A call waits for MaxWait, and after one wait in vain none waits until the
// destination has taken something.
func TestBoundedWaitsOnceInVain(t *testing.T) { fronts(t, testBoundedWaitsOnceInVain) }

func testBoundedWaitsOnceInVain(t *testing.T, on front) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := on.open(t, slab.Options{SlabSize: 64, SlabCount: 4, NoNotice: true})
		// No level is told before no slab is left: none is reserved.
		dst.Stall()
		put(t, w, numbered(20, 60), numbered(21, 60), numbered(0, 60))
		start := time.Now()
		p := numbered(1, 60) + "\n" + numbered(2, 60) + "\n" + numbered(3, 60) // the last two find no place
		if n, err := w.Write([]byte(p)); n != len(p) || err != nil {
			t.Errorf("Write = %d, %v, want %d, nil", n, err, len(p))
		}
		if d := time.Since(start); d != 100*time.Millisecond {
			t.Errorf("Write took %v, want the 100ms that it may wait", d)
		}
		for i := range 10 {
			putLevel(t, w, slog.LevelError, numbered(4+i, 60))
		}
		if d := time.Since(start); d != 100*time.Millisecond {
			t.Errorf("eleven Writes took %v, want the 100ms of the first", d)
		}
		s := w.Stats()
		if s.Dropped != (line.Drops{Full: 12}) || s.Accepted != 16 || s.Pending != 4 || s.Waiting != 0 {
			t.Errorf("Stats = %+v, want 12 lines dropped, 4 pending, nobody waiting", s)
		}
		if s.DroppedByLevel != (slab.ByLevel{Unknown: 2, Error: 10}) {
			t.Errorf("by level %+v, want 2 unknown and 10 ERROR", s.DroppedByLevel)
		}
		if want := uint64(16 * 61); s.BytesAccepted != want {
			t.Errorf("%d bytes accepted, want %d", s.BytesAccepted, want)
		}
		dst.Heal()
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		dst.Always(rollwaytest.Fault{Delay: 50 * time.Millisecond, Take: 1 << 20})
		put(t, w, numbered(14, 60), numbered(15, 60), numbered(16, 60), numbered(17, 60)) // the last one waits again
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		var wanted []string
		for _, i := range []int{20, 21, 0, 1, 14, 15, 16, 17} {
			wanted = append(wanted, numbered(i, 60))
		}
		want(t, "lines", dst.Lines(), wanted)
		settled(t, w, dst, 20)
		sumsUp(t, w.Stats())
	})
}

// However many calls wait, each ends at its own bound.
func TestAllWaitersEndAtTheBound(t *testing.T) { fronts(t, testAllWaitersEndAtTheBound) }

func testAllWaitersEndAtTheBound(t *testing.T, on front) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := on.open(t, slab.Options{SlabSize: 64, SlabCount: 4, MaxWait: time.Second})
		dst.Stall()
		const n = 200
		levels := []slog.Level{slog.LevelInfo, slog.LevelWarn, slog.LevelError}
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 3 * time.Millisecond)
				start := time.Now()
				putLevel(t, w, levels[i%3], numbered(i, 60))
				if d := time.Since(start); d > time.Second {
					t.Errorf("call %d took %v", i, d)
				}
			})
		}
		wg.Wait()
		if s := w.Stats(); s.Pending != 4 || s.Dropped.Full != n-4 {
			t.Errorf("Stats = %+v, want all but 4 lines dropped", s)
		}
		dst.Heal()
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		settled(t, w, dst, n)
	})
}

func TestWaitsInVainDoNotDisturbTheQueueOfWaiters(t *testing.T) {
	fronts(t, testWaitsInVainDoNotDisturbTheQueueOfWaiters)
}

func testWaitsInVainDoNotDisturbTheQueueOfWaiters(t *testing.T, on front) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := on.open(t, slab.Options{SlabSize: 64, SlabCount: 4, MaxWait: time.Second, NoNotice: true})
		dst.Stall()
		put(t, w, numbered(20, 60), numbered(21, 60), numbered(0, 60), numbered(1, 60))
		// One more each 90 ms: at 1.4 s the first five have waited in vain, the
		// others are in line.
		var wg sync.WaitGroup
		for i := range 11 {
			wg.Go(func() { put(t, w, numbered(2+i, 60)) })
			synctest.Wait()
			time.Sleep(90 * time.Millisecond)
		}
		time.Sleep(410 * time.Millisecond)
		if s := w.Stats(); s.Waiting != 6 || s.Dropped.Full != 5 {
			t.Errorf("%d waiting, %d dropped, want 6 and 5", s.Waiting, s.Dropped.Full)
		}
		dst.Heal()
		wg.Wait()
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		wanted := []string{numbered(20, 60), numbered(21, 60), numbered(0, 60), numbered(1, 60)}
		for i := 7; i < 13; i++ {
			wanted = append(wanted, numbered(i, 60))
		}
		got, _ := lines(dst)
		if on.shards > 1 { // those of several goroutines have no order
			slices.Sort(got)
			slices.Sort(wanted)
		}
		want(t, "lines", got, wanted)
		settled(t, w, dst, 15)
	})
}

func TestWaitThatEndsAtTheSameMomentIsCountedOnce(t *testing.T) {
	fronts(t, testWaitThatEndsAtTheSameMomentIsCountedOnce)
}

func testWaitThatEndsAtTheSameMomentIsCountedOnce(t *testing.T, on front) {
	synctest.Test(t, func(t *testing.T) {
		// The timeout, the free slab and Close all come at the same instant.
		for round := range 200 {
			dst := new(rollwaytest.Destination)
			w, err := on.New(dst, slab.Options{SlabSize: 64, SlabCount: on.slabs(2), MaxWait: time.Second, NoNotice: true, KeepOpen: true, OnError: func(error) {}})
			if err != nil {
				t.Fatal(err)
			}
			dst.Always(rollwaytest.Fault{Delay: time.Second, Take: 64})
			var wg sync.WaitGroup
			rejected := make([]bool, 10)
			for i := range rejected {
				wg.Go(func() {
					_, err := w.Write([]byte(numbered(i, 60)))
					rejected[i] = errors.Is(err, os.ErrClosed)
				})
			}
			if round%2 == 0 {
				time.Sleep(time.Second)
			}
			err = w.Shutdown(t.Context())
			wg.Wait()
			if err != nil {
				t.Fatal(err)
			}
			accepted := 0
			for _, r := range rejected {
				if !r {
					accepted++
				}
			}
			settled(t, w, dst, accepted)
			if s := w.Stats(); s.Rejected != uint64(10-accepted) {
				t.Fatalf("%d rejected, want %d", s.Rejected, 10-accepted)
			}
		}
	})
}

func TestImportantLinesDoNotWaitForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := open(t, slab.Options{SlabSize: 64, SlabCount: 4, MaxWait: time.Minute})
		dst.Stall()
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() { putLevel(t, w, slog.LevelInfo, numbered(i, 60)) })
			synctest.Wait()
		}
		if got := w.Stats().Waiting; got != 2 {
			t.Fatalf("%d are waiting, want 2 since one of 4 slabs is kept", got)
		}
		start := time.Now()
		putLevel(t, w, slog.LevelWarn, numbered(5, 30))
		putLevel(t, w, slog.LevelWarn, numbered(6, 20)) // fits the same slab
		if time.Since(start) != 0 {
			t.Errorf("two WARN lines took %v although the reserve is free", time.Since(start))
		}
		wg.Go(func() { putLevel(t, w, slog.LevelWarn, numbered(7, 60)) })
		synctest.Wait()
		wg.Go(func() { putLevel(t, w, slog.LevelInfo, numbered(8, 1)) })
		synctest.Wait()
		dst.Heal()
		wg.Wait()
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		var wanted []string
		for _, l := range []struct{ i, size int }{{0, 60}, {1, 60}, {2, 60}, {5, 30}, {6, 20}, {7, 60}, {3, 60}, {4, 60}, {8, 1}} {
			wanted = append(wanted, numbered(l.i, l.size))
		}
		want(t, "lines", dst.Lines(), wanted)
		settled(t, w, dst, 9)
	})
}

func TestDropsAreCountedByLevelForEveryReason(t *testing.T) {
	fronts(t, testDropsAreCountedByLevelForEveryReason)
}

func testDropsAreCountedByLevelForEveryReason(t *testing.T, on front) {
	levels := []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}
	// mixed writes lines of all levels and of none, in runs of different
	// length, and returns how many there were of each.
	mixed := func(t *testing.T, w *slab.Writer, n int) (count [5]uint64) {
		for i := range n {
			c := i * i % 5
			p := numbered(i, 10+i%20) + "\n"
			if i%3 == 0 {
				p += numbered(i, 5) + "\n"
				count[c]++
			}
			count[c]++
			var err error
			if c == 4 {
				_, err = w.Write([]byte(p))
			} else {
				_, err = w.WriteLevel(levels[c], []byte(p))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		return count
	}
	// byLevel is what Stats says of the lines that had a place before they were
	// lost: with several shards their levels are not known any more.
	byLevel := func(l slab.ByLevel) slab.ByLevel {
		if on.shards > 1 {
			return slab.ByLevel{Unknown: l.Debug + l.Info + l.Warn + l.Error + l.Unknown}
		}
		return l
	}
	all := func(n [5]uint64) slab.ByLevel {
		return byLevel(slab.ByLevel{Debug: n[0], Info: n[1], Warn: n[2], Error: n[3], Unknown: n[4]})
	}

	t.Run("given up", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, dst := on.open(t, slab.Options{SlabSize: 256, SlabCount: 64, GiveUp: time.Second})
			dst.Fail(nil)
			n := mixed(t, w, 200)
			_ = w.Flush(t.Context())
			s := w.Stats()
			if s.DroppedByLevel != all(n) || s.Dropped.GaveUp != s.Dropped.Total() {
				t.Errorf("lost by level %v, want %v, all given up: %+v", s.DroppedByLevel, all(n), s.Dropped)
			}
			sumsUp(t, s)
			dst.Heal()
			_ = w.Close()
			settled(t, w, dst, int(s.Accepted))
		})
	})
	t.Run("a part given up", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, dst := on.open(t, slab.Options{SlabSize: 256, GiveUp: time.Second})
			dst.Next(rollwaytest.Fault{Take: 2 * 21}) // INFO and the first WARN line are out
			dst.Fail(nil)
			for i, l := range []slog.Level{slog.LevelInfo, slog.LevelWarn, slog.LevelWarn, slog.LevelDebug, slog.LevelError, slog.LevelError} {
				putLevel(t, w, l, numbered(i, 20))
			}
			_ = w.Flush(t.Context())
			if l := w.Stats().DroppedByLevel; l != byLevel(slab.ByLevel{Warn: 1, Debug: 1, Error: 2}) {
				t.Errorf("given up by level %+v, want 1 WARN, 1 DEBUG, 2 ERROR", l)
			}
			dst.Heal()
			_ = w.Close()
			settled(t, w, dst, 6)
		})
	})
	t.Run("shutdown", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, dst := on.open(t, slab.Options{SlabSize: 256, SlabCount: 64})
			dst.Fail(nil)
			n := mixed(t, w, 200)
			if err := w.Close(); err == nil {
				t.Error("Close = nil, want what lost the lines")
			}
			synctest.Wait()
			s := w.Stats()
			if s.DroppedByLevel != all(n) || s.Dropped.Shutdown != s.Dropped.Total() {
				t.Errorf("lost by level %v, want %v, all at shutdown: %+v", s.DroppedByLevel, all(n), s.Dropped)
			}
			sumsUp(t, s)
			settled(t, w, dst, int(s.Accepted))
		})
	})
	t.Run("a torn line at shutdown", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, dst := on.open(t, slab.Options{SlabSize: 64, SlabCount: on.slabs(3), GiveUp: time.Second})
			dst.Next(rollwaytest.Fault{Take: 5})
			dst.Fail(nil)
			putLevel(t, w, slog.LevelError, numbered(0, 60))
			putLevel(t, w, slog.LevelDebug, numbered(1, 60))
			time.Sleep(5 * time.Second)
			if err := w.Close(); err == nil {
				t.Error("Close = nil, want what lost the lines")
			}
			synctest.Wait()
			s := w.Stats()
			if s.DroppedByLevel != byLevel(slab.ByLevel{Error: 1, Debug: 1}) || s.Dropped != (line.Drops{GaveUp: 1, Shutdown: 1}) {
				t.Errorf("dropped %+v, by level %+v, want the torn ERROR dropped at shutdown, the DEBUG given up", s.Dropped, s.DroppedByLevel)
			}
			ledger(w).Check(t)
		})
	})
	t.Run("too large", func(t *testing.T) {
		w, dst := on.open(t, slab.Options{SlabSize: 64, MaxLine: on.maxLine(64, 100)})
		if _, err := w.WriteLevel(slog.LevelWarn, []byte("a\n"+strings.Repeat("x", 200)+"\nb\n")); !errors.Is(err, line.ErrTooLarge) {
			t.Errorf("WriteLevel = %v, want ErrTooLarge", err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		s := w.Stats()
		if s.DroppedByLevel != (slab.ByLevel{Warn: 1}) || s.Dropped.TooLarge != 1 || s.BytesAccepted != 205 {
			t.Errorf("Stats = %+v, want one WARN line too large, 205 bytes accepted", s)
		}
		settled(t, w, dst, 3)
	})
}

func TestWriteThrough(t *testing.T) { fronts(t, testWriteThrough) }

func testWriteThrough(t *testing.T, on front) {
	const through = slog.LevelError
	t.Run("returns when the line and all before it are out", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, dst := on.open(t, slab.Options{SlabSize: 256, FlushInterval: time.Hour, WriteThrough: through, Full: slab.Block})
			dst.Always(rollwaytest.Fault{Delay: 10 * time.Millisecond, Take: 1 << 20})
			var wanted []string
			for i := range 30 {
				wanted = append(wanted, numbered(i, 30))
				if i%10 != 9 {
					putLevel(t, w, slog.LevelInfo, numbered(i, 30))
					continue
				}
				putLevel(t, w, slog.LevelError, numbered(i, 30))
				want(t, "lines", dst.Lines(), wanted)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			settled(t, w, dst, 30)
		})
	})
	t.Run("callers at the same time share a slab", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, dst := on.open(t, slab.Options{SlabSize: 4096, SlabCount: 4, Full: slab.Drop, WriteThrough: through, MaxWait: time.Second})
			dst.Always(rollwaytest.Fault{Delay: 100 * time.Millisecond, Take: 1 << 20})
			var wg sync.WaitGroup
			for i := range 100 {
				wg.Go(func() { putLevel(t, w, slog.LevelError, numbered(i, 30)) })
			}
			wg.Wait()
			if s, most := w.Stats(), uint64(2+on.shards); s.Writes > most || s.Dropped.Total() != 0 || s.Written != 100 {
				t.Errorf("100 lines at once: %d writes, %d dropped, %d written, want up to %d, 0, 100", s.Writes, s.Dropped.Total(), s.Written, most)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			settled(t, w, dst, 100)
		})
	})
	t.Run("a dead destination holds one call up, for a bounded time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, dst := on.open(t, slab.Options{WriteThrough: through, MaxWait: time.Second})
			dst.Stall()
			start := time.Now()
			putLevel(t, w, slog.LevelError, "one")
			if d := time.Since(start); d != time.Second {
				t.Errorf("the first took %v, want 1s", d)
			}
			for range 10 {
				putLevel(t, w, slog.LevelError, "more")
			}
			if d := time.Since(start); d != time.Second {
				t.Errorf("eleven took %v, want the 1s of the first", d)
			}
			dst.Heal()
			if err := w.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			dst.Always(rollwaytest.Fault{Delay: 300 * time.Millisecond, Take: 1 << 20})
			start = time.Now()
			putLevel(t, w, slog.LevelError, "works again")
			if d := time.Since(start); d != 300*time.Millisecond {
				t.Errorf("after progress one took %v, want 300ms", d)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			settled(t, w, dst, 12)
		})
	})
	t.Run("the wait for room and the one for the destination have one bound", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, dst := on.open(t, slab.Options{SlabSize: 64, SlabCount: 4, WriteThrough: through, MaxWait: time.Second})
			dst.Always(rollwaytest.Fault{Delay: 600 * time.Millisecond, Take: 1 << 20})
			put(t, w, numbered(0, 60), numbered(1, 60), numbered(3, 60), numbered(4, 60))
			synctest.Wait()
			start := time.Now()
			putLevel(t, w, slog.LevelError, numbered(2, 60)) // room after 0.6 s, out after 1.8 s
			if d := time.Since(start); d != time.Second {
				t.Errorf("it took %v, want 1s", d)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			settled(t, w, dst, 5)
		})
	})
	t.Run("a line that finds no room does not wait", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, dst := on.open(t, slab.Options{SlabSize: 64, SlabCount: 4, Full: slab.Drop, WriteThrough: through})
			dst.Stall()
			put(t, w, numbered(0, 60), numbered(1, 60), numbered(3, 60), numbered(4, 60))
			start := time.Now()
			putLevel(t, w, slog.LevelError, numbered(2, 60))
			if d := time.Since(start); d != 0 {
				t.Errorf("it took %v", d)
			}
			dst.Heal()
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			settled(t, w, dst, 5)
		})
	})
	t.Run("after Close", func(t *testing.T) {
		w, dst := on.open(t, slab.Options{WriteThrough: through})
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if n, err := w.WriteLevel(slog.LevelError, []byte("late\n")); n != 0 || !errors.Is(err, os.ErrClosed) {
			t.Errorf("WriteLevel = %d, %v, want 0, os.ErrClosed", n, err)
		}
		settled(t, w, dst, 0)
	})
}

func TestStatsForThePlanner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := open(t, slab.Options{SlabSize: 256, SlabCount: 4})
		dst.Always(rollwaytest.Fault{Delay: 20 * time.Millisecond, Take: 1 << 20})
		put(t, w, "one", numbered(0, 99), "three")
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		s := w.Stats()
		if s.BytesAccepted != 4+100+6 || s.LineMax != 100 || s.Writes != 1 || s.WriteTime != 20*time.Millisecond || s.WriteMax != s.WriteTime {
			t.Errorf("Stats = %+v, want 110 bytes accepted, the longest line 100, one write of 20ms", s)
		}
		dst.Stall()
		put(t, w, numbered(1, 400)) // a slab of its own
		synctest.Wait()
		time.Sleep(time.Minute)
		s = w.Stats()
		if s.BytesAccepted != 110+401 || s.LineMax != 401 || s.Writes != 1 || s.WriteMax != time.Minute {
			t.Errorf("Stats = %+v, want 511 bytes accepted, the longest line 401, the write under way 1m0s old", s)
		}
		dst.Heal()
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if s := w.Stats(); s.Writes != 2 || s.WriteTime != time.Minute+20*time.Millisecond {
			t.Errorf("Stats = %+v, want 2 writes of 1m0.02s together", s)
		}
		settled(t, w, dst, 4)
	})
}
