package slab_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/line"
	"github.com/rollway/rollway/rollwaytest"
	"github.com/rollway/rollway/slab"
)

// stamped is a destination that notes when each line came.
type stamped struct {
	delay time.Duration
	at    map[string]time.Time
}

func (d *stamped) Write(p []byte) (int, error) {
	time.Sleep(d.delay)
	for _, l := range strings.Split(strings.TrimSuffix(string(p), "\n"), "\n") {
		d.at[l] = time.Now()
	}
	return len(p), nil
}

func TestNoByteWaitsLongerThanFlushInterval(t *testing.T) {
	fronts(t, testNoByteWaitsLongerThanFlushInterval)
}

func testNoByteWaitsLongerThanFlushInterval(t *testing.T, on front) {
	for _, tc := range []struct {
		every, delay time.Duration
		lines        int
	}{
		{every: 3 * time.Millisecond, lines: 1000},                               // a trickle that never lets the writer go idle
		{every: 3 * time.Millisecond, delay: 40 * time.Millisecond, lines: 1000}, // and a slow destination
		{every: 99 * time.Millisecond, lines: 100},
		{every: 101 * time.Millisecond, lines: 100},
		{every: 770 * time.Millisecond, lines: 100}, // around the time when it goes to sleep
		{every: 830 * time.Millisecond, lines: 100},
		{every: time.Minute, lines: 100},
	} {
		t.Run(fmt.Sprintf("a line every %v, a write takes %v", tc.every, tc.delay), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dst := &stamped{delay: tc.delay, at: make(map[string]time.Time)}
				w, err := on.New(dst, slab.Options{})
				if err != nil {
					t.Fatal(err)
				}
				written := make([]time.Time, tc.lines)
				for i := range written {
					written[i] = time.Now()
					put(t, w, fmt.Sprint(i))
					time.Sleep(tc.every)
				}
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
				// A line may meet one write under way and then needs its own.
				bound := 100*time.Millisecond + 2*tc.delay
				for i, at := range written {
					if age := dst.at[fmt.Sprint(i)].Sub(at); age > bound {
						t.Fatalf("line %d was %v old when written, want up to %v", i, age, bound)
					}
				}
			})
		})
	}
}

func TestIdleWriterSleepsWithoutATicker(t *testing.T) { fronts(t, testIdleWriterSleepsWithoutATicker) }

func testIdleWriterSleepsWithoutATicker(t *testing.T, on front) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := on.open(t, slab.Options{FlushInterval: time.Millisecond})
		put(t, w, "one")
		start := time.Now()
		// A ticker that goes on would make a year of virtual time take 3e10
		// rounds of the clock; the test would not end.
		time.Sleep(365 * 24 * time.Hour)
		if d := time.Since(start); d != 365*24*time.Hour {
			t.Fatalf("slept %v", d)
		}
		put(t, w, "two")
		time.Sleep(time.Millisecond)
		synctest.Wait()
		want(t, "lines", dst.Lines(), []string{"one", "two"})
	})
}

func TestBackoff(t *testing.T) { fronts(t, testBackoff) }

func testBackoff(t *testing.T, on front) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := on.open(t, slab.Options{FlushInterval: time.Millisecond})
		dst.Fail(nil)
		put(t, w, "one")
		time.Sleep(time.Millisecond)
		synctest.Wait()
		calls := dst.Calls()
		if calls != 1 {
			t.Fatalf("%d calls after the first tick, want 1", calls)
		}
		last := time.Now()
		for i, wait := range []time.Duration{10, 20, 40, 80, 160, 320, 640, 1280, 2560, 5000, 5000} {
			wait *= time.Millisecond
			for dst.Calls() == calls {
				time.Sleep(time.Millisecond / 4)
				synctest.Wait()
			}
			calls = dst.Calls()
			if d := time.Since(last); d < wait/2 || d > wait+time.Millisecond {
				t.Errorf("wait %d took %v, want %v to %v", i+1, d, wait/2, wait)
			}
			last = time.Now()
		}
		dst.Heal()
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s := w.Stats(); s.Failing || s.Errors != 12 {
			t.Errorf("Stats after recovery = %+v, want 12 errors, and that it works", s)
		}
		settled(t, w, dst, 1)
	})
}

// askingError asks to be left alone for so long.
type askingError time.Duration

func (e askingError) Error() string             { return "slow down" }
func (e askingError) RetryAfter() time.Duration { return time.Duration(e) }

func TestRetryAfterIsHonoured(t *testing.T) { fronts(t, testRetryAfterIsHonoured) }

func testRetryAfterIsHonoured(t *testing.T, on front) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := on.open(t, slab.Options{CloseTimeout: time.Hour})
		asks := fmt.Errorf("post: %w", askingError(30*time.Second))
		dst.Next(rollwaytest.Fault{Err: asks}, rollwaytest.Fault{Take: 4, Err: asks})
		put(t, w, "one", "two")
		start := time.Now()
		if err := w.Close(); err != nil { // which does not hurry what asked for time
			t.Fatal(err)
		}
		if d := time.Since(start); d != time.Minute {
			t.Errorf("two answers that ask for 30 s took %v, want 1m0s", d)
		}
		settled(t, w, dst, 2)
	})
}

func TestCloseHurriesTheBackoffOnce(t *testing.T) { fronts(t, testCloseHurriesTheBackoffOnce) }

func testCloseHurriesTheBackoffOnce(t *testing.T, on front) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := on.open(t, slab.Options{})
		dst.Fail(nil)
		put(t, w, "one")
		time.Sleep(time.Minute) // the waits are of seconds by now
		for calls := dst.Calls(); dst.Calls() == calls; {
			time.Sleep(time.Millisecond)
		}
		dst.Heal()
		start := time.Now()
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d != 0 {
			t.Errorf("Close took %v, want an attempt at once", d)
		}
		settled(t, w, dst, 1)
	})
}

func TestGiveUp(t *testing.T) { fronts(t, testGiveUp) }

func testGiveUp(t *testing.T, on front) {
	synctest.Test(t, func(t *testing.T) {
		var told reports
		w, dst := on.open(t, slab.Options{SlabSize: 64, GiveUp: 30 * time.Second, OnError: told.add})
		dst.Fail(nil)
		put(t, w, numbered(0, 30), numbered(1, 30), numbered(2, 30), numbered(3, 30), numbered(4, 30))
		err := w.Flush(t.Context())
		if !errors.Is(err, rollwaytest.ErrFault) || !errors.Is(err, line.ErrLost) || !strings.Contains(err.Error(), "lines lost: 5, given up") {
			t.Errorf("Flush = %v, want it to say that 5 lines were given up, and why", err)
		}
		if s := w.Stats(); s.Dropped.GaveUp != 5 || s.Pending != 0 || s.Accepted != 5 {
			t.Errorf("Stats = %+v, want 5 lines given up", s)
		}
		dst.Heal()
		put(t, w, numbered(5, 30))
		if err := w.Flush(t.Context()); err != nil {
			t.Errorf("Flush after recovery = %v", err)
		}
		err = w.Close()
		if !errors.Is(err, rollwaytest.ErrFault) || !errors.Is(err, line.ErrLost) || !strings.Contains(err.Error(), "lines lost: 5, given up") {
			t.Errorf("Close = %v, want it to say that 5 lines were given up, and why", err)
		}
		got, notices := lines(dst)
		want(t, "lines", got, []string{numbered(5, 30)})
		want(t, "notices", notices, []string{notice(5, "destination failed")})
		settled(t, w, dst, 6)
		if text := told.String(); !strings.Contains(text, "lines lost: 2 (destination failed)") {
			t.Errorf("OnError got %q, want the first loss among them", text)
		}
	})
}

func TestGiveUpNeverTearsALine(t *testing.T) { fronts(t, testGiveUpNeverTearsALine) }

func testGiveUpNeverTearsALine(t *testing.T, on front) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := on.open(t, slab.Options{SlabSize: 64, GiveUp: time.Second})
		// The destination takes a line and a half, then nothing for a while.
		dst.Next(rollwaytest.Fault{Take: 31 + 15, Err: io.ErrClosedPipe})
		dst.Fail(nil)
		for i := range 6 {
			put(t, w, numbered(i, 30))
		}
		time.Sleep(10 * time.Second) // all three slabs had their turn
		synctest.Wait()
		if s := w.Stats(); s.Written != 1 || s.Dropped.GaveUp != 4 || s.Pending != 1 {
			t.Errorf("Stats = %+v, want one line written, the torn one pending, four given up", s)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := w.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "lines pending: 1") {
			t.Errorf("Flush = %v, want a deadline exceeded with one line pending", err)
		}
		dst.Heal()
		put(t, w, numbered(6, 30))
		if err := w.Close(); !strings.Contains(fmt.Sprint(err), "lines lost: 4, given up") {
			t.Errorf("Close = %v, want it to say that 4 lines were given up", err)
		}
		got, notices := lines(dst)
		want(t, "lines", got, []string{numbered(0, 30), numbered(1, 30), numbered(6, 30)})
		want(t, "notices", notices, []string{notice(4, "destination failed")})
		settled(t, w, dst, 7)
	})
}
