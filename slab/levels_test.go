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

	"github.com/rollway/rollway/rollwaytest"
	"github.com/rollway/rollway/slab"
)

// putLevel writes one line of a level and wants it accepted.
func putLevel(t *testing.T, w *slab.Writer, l slog.Level, line string) {
	t.Helper()
	p := line + "\n"
	if n, err := w.WriteLevel(l, []byte(p)); n != len(p) || err != nil {
		t.Errorf("WriteLevel(%v, %.40q) = %d, %v, want %d, nil", l, line, n, err, len(p))
	}
}

// sumsUp wants the drops by level to add up to the drops.
func sumsUp(t *testing.T, s slab.Stats) {
	t.Helper()
	var sum slab.Drops
	l := s.DroppedByLevel
	for _, d := range []slab.Drops{l.Debug, l.Info, l.Warn, l.Error, l.Unknown} {
		sum.BufferFull += d.BufferFull
		sum.Timeout += d.Timeout
		sum.TooLarge += d.TooLarge
		sum.GaveUp += d.GaveUp
		sum.Shutdown += d.Shutdown
	}
	if sum != s.Dropped {
		t.Errorf("dropped %+v, but by level %+v", s.Dropped, l)
	}
}

func TestBlockTimeoutDropsWhatHasNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := open(t, slab.Options{SlabSize: 64, SlabCount: 2, BlockTimeout: time.Second})
		dst.Stall()
		put(t, w, numbered(0, 60))
		start := time.Now()
		p := numbered(1, 60) + "\n" + numbered(2, 60) + "\n" + numbered(3, 60) // the last two find no place
		if n, err := w.Write([]byte(p)); n != len(p) || err != nil {
			t.Errorf("Write = %d, %v, want %d, nil", n, err, len(p))
		}
		if d := time.Since(start); d != time.Second {
			t.Errorf("Write took %v, want the second it may wait", d)
		}
		putLevel(t, w, slog.LevelInfo, numbered(4, 60))
		if d := time.Since(start); d != 2*time.Second {
			t.Errorf("two Writes took %v, want 2s", d)
		}
		s := w.Stats()
		if s.Dropped != (slab.Drops{Timeout: 3}) || s.Accepted != 5 || s.Pending != 2 || s.Waiting != 0 {
			t.Errorf("Stats = %+v, want 3 lines dropped for the timeout, 2 pending, nobody waiting", s)
		}
		if s.DroppedByLevel.Unknown.Timeout != 2 || s.DroppedByLevel.Info.Timeout != 1 {
			t.Errorf("by level %+v, want 2 unknown and 1 INFO", s.DroppedByLevel)
		}
		if want := uint64(5 * 61); s.BytesAccepted != want {
			t.Errorf("%d bytes accepted, want %d", s.BytesAccepted, want)
		}
		dst.Heal()
		put(t, w, numbered(5, 30))
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		got, notices := lines(dst)
		want(t, "lines", got, []string{numbered(0, 60), numbered(1, 60), numbered(5, 30)})
		want(t, "notices", notices, []string{notice(3, "buffer full for too long")})
		settled(t, w, dst, 6)
		sumsUp(t, w.Stats())
	})
}

func TestBlockTimeoutDoesNotDisturbTheQueueOfWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := open(t, slab.Options{SlabSize: 64, SlabCount: 2, BlockTimeout: time.Second, NoLossNotice: true})
		dst.Stall()
		put(t, w, numbered(0, 60), numbered(1, 60))
		// One more each 100 ms: at 1.45 s the first five have timed out, the
		// others are in line.
		var wg sync.WaitGroup
		for i := range 15 {
			wg.Go(func() { put(t, w, numbered(2+i, 60)) })
			synctest.Wait()
			if i < 14 {
				time.Sleep(100 * time.Millisecond)
			}
		}
		time.Sleep(50 * time.Millisecond)
		if s := w.Stats(); s.Waiting != 10 || s.Dropped.Timeout != 5 {
			t.Errorf("%d waiting, %d dropped, want 10 and 5", s.Waiting, s.Dropped.Timeout)
		}
		dst.Heal()
		wg.Wait()
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		wanted := []string{numbered(0, 60), numbered(1, 60)}
		for i := 7; i < 17; i++ {
			wanted = append(wanted, numbered(i, 60))
		}
		got, _ := lines(dst)
		want(t, "lines", got, wanted)
		settled(t, w, dst, 17)
	})
}

func TestWaitThatEndsAtTheSameMomentIsCountedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// The timeout, the free slab and Close all come at the same instant.
		for round := range 200 {
			dst := new(rollwaytest.Destination)
			w, err := slab.New(dst, slab.Options{SlabSize: 64, SlabCount: 2, BlockTimeout: time.Second, NoLossNotice: true})
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
		w, dst := open(t, slab.Options{SlabSize: 64, SlabCount: 4, BlockTimeout: time.Minute})
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

func TestErrorsMayWaitUnderDrop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := open(t, slab.Options{
			SlabSize: 64, SlabCount: 4, Full: slab.Drop,
			Levels: slab.Levels{ErrorWait: time.Second},
		})
		dst.Stall()
		at := func(l slog.Level, i int) time.Duration {
			start := time.Now()
			putLevel(t, w, l, numbered(i, 60))
			return time.Since(start)
		}
		for i := range 3 {
			at(slog.LevelInfo, i)
		}
		at(slog.LevelWarn, 3) // the reserve
		for i, l := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn} {
			if d := at(l, 4+i); d != 0 {
				t.Errorf("a line at %v waited %v", l, d)
			}
		}
		if d := at(slog.LevelError, 7); d != time.Second {
			t.Errorf("an ERROR line waited %v, want 1s", d)
		}
		time.AfterFunc(500*time.Millisecond, dst.Heal)
		if d := at(slog.LevelError, 8); d != 500*time.Millisecond {
			t.Errorf("an ERROR line waited %v, want 500ms", d)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		got, _ := lines(dst)
		want(t, "lines", got, []string{numbered(0, 60), numbered(1, 60), numbered(2, 60), numbered(3, 60), numbered(8, 60)})
		settled(t, w, dst, 9)
		l := w.Stats().DroppedByLevel
		if l.Debug != (slab.Drops{BufferFull: 1}) || l.Info != l.Debug || l.Warn != l.Debug || l.Error != (slab.Drops{Timeout: 1}) || l.Unknown != (slab.Drops{}) {
			t.Errorf("dropped by level %+v, want one each, the ERROR for the timeout", l)
		}
	})
}

func TestReserveAndKeepCanBeSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tc := range []struct {
			levels       slab.Levels
			info, errors int // how many of eight slabs they get
		}{
			{slab.Levels{}, 7, 1},
			{slab.Levels{Reserve: 3}, 5, 3},
			{slab.Levels{Reserve: -1}, 8, 0},
			{slab.Levels{Reserve: 6}, 2, 6},
			{slab.Levels{Reserve: 2, Keep: slog.LevelInfo}, 8, 0},
			{slab.Levels{Reserve: 2, Keep: slog.LevelError + 4}, 6, 0},
		} {
			w, dst := open(t, slab.Options{SlabSize: 64, Full: slab.Drop, Levels: tc.levels, NoLossNotice: true})
			dst.Stall()
			for i := range 10 {
				putLevel(t, w, slog.LevelInfo, numbered(i, 60))
			}
			info := int(w.Stats().Pending)
			for i := range 10 {
				putLevel(t, w, slog.LevelError, numbered(10+i, 60))
			}
			if got := int(w.Stats().Pending) - info; info != tc.info || got != tc.errors {
				t.Errorf("%+v: room for %d INFO and %d ERROR lines, want %d and %d", tc.levels, info, got, tc.info, tc.errors)
			}
			dst.Heal()
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			settled(t, w, dst, 20)
		}
	})
}

func TestDropsAreCountedByLevelForEveryReason(t *testing.T) {
	levels := []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}
	// mixed writes lines of all levels and of none, in runs of different
	// length, and returns how many there were of each.
	mixed := func(t *testing.T, w *slab.Writer, n int) (count [5]uint64) {
		for i := range n {
			c := i * i % 5
			line := numbered(i, 10+i%20) + "\n"
			if i%3 == 0 {
				line += numbered(i, 5) + "\n"
				count[c]++
			}
			count[c]++
			var err error
			if c == 4 {
				_, err = w.Write([]byte(line))
			} else {
				_, err = w.WriteLevel(levels[c], []byte(line))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		return count
	}
	lost := func(s slab.Stats) [5]uint64 {
		l := s.DroppedByLevel
		return [5]uint64{l.Debug.Total(), l.Info.Total(), l.Warn.Total(), l.Error.Total(), l.Unknown.Total()}
	}

	t.Run("given up", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, dst := open(t, slab.Options{SlabSize: 256, SlabCount: 64, Retry: slab.Retry{GiveUp: time.Second}})
			dst.Fail(nil)
			n := mixed(t, w, 200)
			_ = w.Flush(t.Context())
			s := w.Stats()
			if lost(s) != n || s.Dropped.GaveUp != s.Dropped.Total() {
				t.Errorf("lost by level %v, want %v, all given up: %+v", lost(s), n, s.Dropped)
			}
			sumsUp(t, s)
			dst.Heal()
			_ = w.Close()
			settled(t, w, dst, int(s.Accepted))
		})
	})
	t.Run("a part given up", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, dst := open(t, slab.Options{SlabSize: 256, Retry: slab.Retry{GiveUp: time.Second}})
			dst.Next(rollwaytest.Fault{Take: 2 * 21}) // INFO and the first WARN line are out
			dst.Fail(nil)
			for i, l := range []slog.Level{slog.LevelInfo, slog.LevelWarn, slog.LevelWarn, slog.LevelDebug, slog.LevelError, slog.LevelError} {
				putLevel(t, w, l, numbered(i, 20))
			}
			_ = w.Flush(t.Context())
			l := w.Stats().DroppedByLevel
			if l.Info.GaveUp != 0 || l.Warn.GaveUp != 1 || l.Debug.GaveUp != 1 || l.Error.GaveUp != 2 {
				t.Errorf("given up by level %+v, want 0 INFO, 1 WARN, 1 DEBUG, 2 ERROR", l)
			}
			dst.Heal()
			_ = w.Close()
			settled(t, w, dst, 6)
		})
	})
	t.Run("shutdown", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, dst := open(t, slab.Options{SlabSize: 256, SlabCount: 64})
			dst.Fail(nil)
			n := mixed(t, w, 200)
			if err := w.Close(); err == nil {
				t.Error("Close = nil, want what lost the lines")
			}
			synctest.Wait()
			s := w.Stats()
			if lost(s) != n || s.Dropped.Shutdown != s.Dropped.Total() {
				t.Errorf("lost by level %v, want %v, all at shutdown: %+v", lost(s), n, s.Dropped)
			}
			sumsUp(t, s)
			settled(t, w, dst, int(s.Accepted))
		})
	})
	t.Run("a torn line at shutdown", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, dst := open(t, slab.Options{SlabSize: 64, SlabCount: 3, Retry: slab.Retry{GiveUp: time.Second}})
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
			if l := s.DroppedByLevel; l.Error != (slab.Drops{Shutdown: 1}) || l.Debug != (slab.Drops{GaveUp: 1}) {
				t.Errorf("by level %+v, want the torn ERROR dropped at shutdown, the DEBUG given up", l)
			}
			ledger(w).Check(t)
		})
	})
	t.Run("too large", func(t *testing.T) {
		w, dst := open(t, slab.Options{SlabSize: 64, OversizeLimit: 100})
		if _, err := w.WriteLevel(slog.LevelWarn, []byte("a\n"+strings.Repeat("x", 200)+"\nb\n")); !errors.Is(err, slab.ErrTooLarge) {
			t.Errorf("WriteLevel = %v, want ErrTooLarge", err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		s := w.Stats()
		if s.DroppedByLevel.Warn != (slab.Drops{TooLarge: 1}) || s.BytesAccepted != 205 {
			t.Errorf("Stats = %+v, want one WARN line too large, 205 bytes accepted", s)
		}
		settled(t, w, dst, 3)
	})
}

func TestWriteThrough(t *testing.T) {
	through := slab.Levels{WriteThrough: slog.LevelError}
	t.Run("returns when the line and all before it are out", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, dst := open(t, slab.Options{SlabSize: 256, FlushInterval: time.Hour, Levels: through})
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
			w, dst := open(t, slab.Options{SlabSize: 4096, SlabCount: 4, Full: slab.Drop, Levels: through})
			dst.Always(rollwaytest.Fault{Delay: 100 * time.Millisecond, Take: 1 << 20})
			var wg sync.WaitGroup
			for i := range 100 {
				wg.Go(func() { putLevel(t, w, slog.LevelError, numbered(i, 30)) })
			}
			wg.Wait()
			if s := w.Stats(); s.Writes > 3 || s.Dropped.Total() != 0 || s.Written != 100 {
				t.Errorf("100 lines at once: %d writes, %d dropped, %d written, want up to 3, 0, 100", s.Writes, s.Dropped.Total(), s.Written)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			settled(t, w, dst, 100)
		})
	})
	t.Run("a dead destination holds one call up, for a bounded time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, dst := open(t, slab.Options{Levels: through})
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
	t.Run("a line that finds no room does not wait", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, dst := open(t, slab.Options{SlabSize: 64, SlabCount: 2, Full: slab.Drop, Levels: through})
			dst.Stall()
			put(t, w, numbered(0, 60), numbered(1, 60))
			start := time.Now()
			putLevel(t, w, slog.LevelError, numbered(2, 60))
			if d := time.Since(start); d != 0 {
				t.Errorf("it took %v", d)
			}
			dst.Heal()
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			settled(t, w, dst, 3)
		})
	})
	t.Run("after Close", func(t *testing.T) {
		w, dst := open(t, slab.Options{Levels: through})
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
