package slab_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/line"
	"github.com/rollway/rollway/rollwaytest"
	"github.com/rollway/rollway/slab"
)

// openTwo is open with a failover.
func (on front) openTwo(t *testing.T, o slab.Options) (w *slab.Writer, first, second *rollwaytest.Destination) {
	t.Helper()
	second = new(rollwaytest.Destination)
	o.Failover = second
	w, first = on.open(t, o)
	t.Cleanup(func() {
		second.Heal()
		if n := second.Overlaps(); n > 0 {
			t.Errorf("%d calls of the failover came while a Write was under way", n)
		}
	})
	return w, first, second
}

// seqs returns the numbers of the lines at dst, which are to be whole, made by
// numbered, and in order without a repetition.
func seqs(t *testing.T, name string, dst *rollwaytest.Destination) (all []int) {
	t.Helper()
	if b := dst.Bytes(); len(b) > 0 && b[len(b)-1] != '\n' {
		t.Errorf("%s ends within a line: %.80q", name, b[max(0, len(b)-80):])
	}
	got, _ := lines(dst)
	for _, l := range got {
		n := 0
		if _, err := fmt.Sscanf(l, "%06d", &n); err != nil || l != numbered(n, len(l)) {
			t.Fatalf("%s has a torn or mixed line: %q", name, l)
		}
		if len(all) > 0 && n <= all[len(all)-1] {
			t.Fatalf("%s has line %d after %d", name, n, all[len(all)-1])
		}
		all = append(all, n)
	}
	return all
}

// settledTwo wants each of the lines 0 to n-1 at one of the two at least, in
// order at each, and the account of w to say so. It returns how many are at
// both.
func settledTwo(t *testing.T, w *slab.Writer, first, second *rollwaytest.Destination, n int) (twice int) {
	t.Helper()
	at := make([]int, n)
	for _, all := range [][]int{seqs(t, "the destination", first), seqs(t, "the failover", second)} {
		for _, i := range all {
			at[i]++
		}
	}
	for i, k := range at {
		if k == 0 {
			t.Errorf("line %d is nowhere", i)
		}
		twice += k / 2
	}
	ledger(w).CheckSettled(t, n, n)
	if s := w.Stats(); s.SlabsFree != s.Slabs || s.FailedOver > s.Written {
		t.Errorf("Stats = %+v, want all slabs free", s)
	}
	return twice
}

func TestFailoverTakesOverAndGivesBack(t *testing.T) { fronts(t, testFailoverTakesOverAndGivesBack) }

func testFailoverTakesOverAndGivesBack(t *testing.T, on front) {
	for name, fault := range map[string]rollwaytest.Fault{
		"error":        {Err: syscall.EIO},
		"short write":  {},
		"panic":        {Panic: "disk on fire"},
		"ended thread": {Exit: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told reports
				w, first, second := on.openTwo(t, slab.Options{SlabSize: 256, SlabCount: 4, MaxWait: 2 * time.Second, OnError: told.add})
				n := 0
				more := func(k int) {
					for range k {
						put(t, w, numbered(n, 30))
						n++
					}
				}
				more(10)
				if err := w.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				if fault.Panic == nil && !fault.Exit { // those cannot say what they took
					first.Next(rollwaytest.Fault{Take: 31 + 11, Err: fault.Err})
				}
				first.Always(fault)
				more(5)
				time.Sleep(1400 * time.Millisecond)
				if second.Calls() != 0 {
					t.Errorf("the failover was called after %v", time.Since(start))
				}
				time.Sleep(500 * time.Millisecond)
				synctest.Wait()
				got := seqs(t, "the failover", second)
				s := w.Stats()
				if len(got) < 4 || !s.FailingOver || s.Pending != 0 || int(s.FailedOver) != len(got) {
					t.Errorf("after 1.9s the failover has %v, Stats = %+v", got, s)
				}
				more(50)
				time.Sleep(20 * time.Second)
				if calls := first.Calls(); calls > 30 {
					t.Errorf("the destination was called %d times in 22s", calls)
				}
				first.Heal()
				for range 12 {
					time.Sleep(time.Second)
					more(5)
				}
				if err := w.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
				if s := w.Stats(); s.FailingOver || s.Failing {
					t.Errorf("after recovery Stats = %+v, want the destination in use", s)
				}
				all := seqs(t, "the destination", first)
				if all[len(all)-1] != n-1 {
					t.Errorf("the destination's last line is %d, want %d", all[len(all)-1], n-1)
				}
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
				twice := settledTwo(t, w, first, second, n)
				if twice > 1 {
					t.Errorf("%d lines are at both, want no more than the one that was torn", twice)
				}
				if text := told.String(); !strings.Contains(text, "lines go to the failover: the destination has failed for") {
					t.Errorf("OnError got %q, want it to hear of the failover", text)
				}
			})
		})
	}
}

func TestFailoverOfAStalledDestination(t *testing.T) { fronts(t, testFailoverOfAStalledDestination) }

func testFailoverOfAStalledDestination(t *testing.T, on front) {
	synctest.Test(t, func(t *testing.T) {
		w, first, second := on.openTwo(t, slab.Options{SlabSize: 256, SlabCount: 4, MaxWait: 2 * time.Second})
		first.Stall()
		for i := range 30 { // more than all slabs hold: they go on with one less
			put(t, w, numbered(i, 60))
			time.Sleep(100 * time.Millisecond)
		}
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		s := w.Stats()
		if s.FailedOver != 30 || s.Pending != 0 || !s.FailingOver || s.SlabsFree != 3 || s.Failing {
			t.Errorf("Stats = %+v, want 30 lines failed over, and all slabs free but the one in the call that stalls", s)
		}
		first.Heal()
		synctest.Wait()
		for i := 30; i < 40; i++ {
			put(t, w, numbered(i, 60))
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		twice := settledTwo(t, w, first, second, 40)
		if twice == 0 || twice > 4 {
			t.Errorf("%d lines are at both, want those of the slab that stalled", twice)
		}
		if all := seqs(t, "the destination", first); !slices.Contains(all, 39) {
			t.Errorf("the destination has %v, want it in use again", all)
		}
	})
}

func TestFailoverWhenAStalledCallHasTakenAPart(t *testing.T) {
	fronts(t, testFailoverWhenAStalledCallHasTakenAPart)
}

func testFailoverWhenAStalledCallHasTakenAPart(t *testing.T, on front) {
	for _, take := range []int{0, 20, 31, 31 + 20, 3 * 31} {
		synctest.Test(t, func(t *testing.T) {
			w, first, second := on.openTwo(t, slab.Options{MaxWait: time.Second, WriteThrough: slog.LevelInfo})
			// The call fails long after it was abandoned; a trial follows.
			first.Next(rollwaytest.Fault{Delay: 30 * time.Second, Take: take, Err: syscall.EIO})
			put(t, w, numbered(0, 30), numbered(1, 30), numbered(2, 30))
			for i := 3; i < 60; i++ {
				putLevel(t, w, slog.LevelInfo, numbered(i, 30))
				time.Sleep(time.Second)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			settledTwo(t, w, first, second, 60)
			if s := w.Stats(); s.FailedOver < 20 || s.FailedOver > 45 {
				t.Errorf("take %d: %d lines failed over, want those of about 40s", take, s.FailedOver)
			}
		})
	}
}

func TestBothDestinationsFail(t *testing.T) { fronts(t, testBothDestinationsFail) }

func testBothDestinationsFail(t *testing.T, on front) {
	for name, tc := range map[string]struct {
		fail func(first, second *rollwaytest.Destination)
		heal func(first, second *rollwaytest.Destination)
	}{
		"the failover heals": {
			func(first, second *rollwaytest.Destination) { first.Fail(nil); second.Fail(nil) },
			func(first, second *rollwaytest.Destination) { second.Heal() },
		},
		"the destination heals": {
			func(first, second *rollwaytest.Destination) { first.Fail(nil); second.Fail(nil) },
			func(first, second *rollwaytest.Destination) { first.Heal() },
		},
		"both stall, the failover heals": {
			func(first, second *rollwaytest.Destination) { first.Stall(); second.Stall() },
			func(first, second *rollwaytest.Destination) { second.Heal() },
		},
		"both stall, the destination heals": {
			func(first, second *rollwaytest.Destination) { first.Stall(); second.Stall() },
			func(first, second *rollwaytest.Destination) { first.Heal() },
		},
		"a stall and torn lines": {
			func(first, second *rollwaytest.Destination) {
				first.Stall()
				second.Next(rollwaytest.Fault{Take: 40}, rollwaytest.Fault{Take: 5}, rollwaytest.Fault{Take: 40, Err: io.ErrShortWrite})
				second.Fail(nil)
			},
			func(first, second *rollwaytest.Destination) { first.Heal() },
		},
		"torn lines at both": {
			func(first, second *rollwaytest.Destination) {
				first.Next(rollwaytest.Fault{Take: 31 + 7})
				first.Fail(nil)
				second.Next(rollwaytest.Fault{Take: 9})
				second.Fail(nil)
			},
			func(first, second *rollwaytest.Destination) { second.Heal(); time.Sleep(time.Minute); first.Heal() },
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, first, second := on.openTwo(t, slab.Options{SlabSize: 128, MaxWait: time.Second})
				tc.fail(first, second)
				const n = 20
				for i := range n {
					put(t, w, numbered(i, 30))
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				s := w.Stats()
				ledger(w).Check(t)
				if s.Pending < n-3 || s.Dropped.Total() != 0 {
					t.Errorf("Stats = %+v, want nearly all lines pending", s)
				}
				tc.heal(first, second)
				if err := w.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got := w.Stats().Written; got != n {
					t.Errorf("%d lines written, want %d", got, n)
				}
				first.Heal()
				second.Heal()
				time.Sleep(time.Minute)
				for i := range 5 { // what is torn is mended
					put(t, w, numbered(n+i, 30))
					time.Sleep(time.Second)
				}
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
				settledTwo(t, w, first, second, n+5)
			})
		})
	}
}

func TestGiveUpWithAFailover(t *testing.T) { fronts(t, testGiveUpWithAFailover) }

func testGiveUpWithAFailover(t *testing.T, on front) {
	synctest.Test(t, func(t *testing.T) {
		w, first, second := on.openTwo(t, slab.Options{SlabSize: 128, MaxWait: time.Second, GiveUp: 5 * time.Second, NoNotice: true})
		first.Next(rollwaytest.Fault{Take: 31 + 7})
		first.Fail(nil)
		second.Fail(nil)
		for i := range 12 {
			put(t, w, numbered(i, 30))
		}
		time.Sleep(time.Minute)
		s := w.Stats()
		if s.Written != 1 || s.Pending != 1 || s.Dropped.GaveUp != 10 {
			t.Errorf("Stats = %+v, want 1 line written, the torn one pending, 10 given up", s)
		}
		second.Heal()
		time.Sleep(10 * time.Second)
		if s := w.Stats(); s.Written != 2 || s.FailedOver != 1 || s.Pending != 0 {
			t.Errorf("Stats = %+v, want the torn line with the failover", s)
		}
		first.Heal()
		time.Sleep(time.Minute)
		put(t, w, numbered(12, 30))
		if err := w.Close(); !errors.Is(err, line.ErrLost) || !strings.Contains(err.Error(), "lines lost: 10, given up") {
			t.Errorf("Close = %v, want the loss", err)
		}
		if got := seqs(t, "the destination", first); !slices.Equal(got, []int{0, 1, 12}) {
			t.Errorf("the destination has %v, want 0, 1 (its rest) and 12", got)
		}
		if got := seqs(t, "the failover", second); !slices.Equal(got, []int{1}) {
			t.Errorf("the failover has %v, want 1", got)
		}
		ledger(w).CheckSettled(t, 13, 3)
	})
}

func TestCloseUsesTheFailoverAtOnce(t *testing.T) { fronts(t, testCloseUsesTheFailoverAtOnce) }

func testCloseUsesTheFailoverAtOnce(t *testing.T, on front) {
	for name, fail := range map[string]func(*rollwaytest.Destination){
		"failing":  func(d *rollwaytest.Destination) { d.Fail(nil) },
		"stalling": func(d *rollwaytest.Destination) { d.Stall() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, first, second := on.openTwo(t, slab.Options{SlabSize: 128, MaxWait: time.Hour, KeepOpen: true})
				fail(first)
				for i := range 10 {
					put(t, w, numbered(i, 30))
				}
				time.Sleep(10 * time.Second)
				start := time.Now()
				if err := w.Close(); err != nil {
					t.Errorf("Close = %v", err)
				}
				if d := time.Since(start); d > time.Second {
					t.Errorf("Close took %v, want up to 1s", d)
				}
				ledger(w).CheckSettled(t, 10, len(seqs(t, "the failover", second)))
			})
		})
	}
}

func TestCloseClosesBoth(t *testing.T) { fronts(t, testCloseClosesBoth) }

func testCloseClosesBoth(t *testing.T, on front) {
	t.Run("in good order", func(t *testing.T) {
		w, first, second := on.openTwo(t, slab.Options{})
		put(t, w, numbered(0, 30))
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if first.Closes() != 1 || second.Closes() != 1 {
			t.Errorf("%d and %d closes, want one each", first.Closes(), second.Closes())
		}
		settledTwo(t, w, first, second, 1)
	})
	t.Run("errors of both", func(t *testing.T) {
		w, first, second := on.openTwo(t, slab.Options{})
		first.FailClose(syscall.EIO)
		second.FailClose(syscall.EPIPE)
		if err := w.Close(); !errors.Is(err, syscall.EIO) || !errors.Is(err, syscall.EPIPE) {
			t.Errorf("Close = %v, want both errors", err)
		}
	})
	t.Run("a stalled one after its Write has returned", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, first, second := on.openTwo(t, slab.Options{})
			first.Stall()
			put(t, w, numbered(0, 30))
			err := w.Close()
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "the destination's Write has not returned") {
				t.Errorf("Close = %v, want a deadline exceeded that names the destination's Write", err)
			}
			ledger(w).CheckSettled(t, 1, 1)
			if first.Closes() != 0 || second.Closes() != 1 {
				t.Errorf("%d and %d closes, want 0 and 1", first.Closes(), second.Closes())
			}
			first.Heal()
			synctest.Wait()
			if first.Closes() != 1 {
				t.Errorf("the destination was closed %d times, want once", first.Closes())
			}
			settledTwo(t, w, first, second, 1)
		})
	})
	t.Run("one that hangs in Close", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, first, second := on.openTwo(t, slab.Options{})
			second.StallClose()
			put(t, w, numbered(0, 30))
			if err := w.Close(); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "the failover's Close has not returned") {
				t.Errorf("Close = %v, want a deadline exceeded that names the failover's Close", err)
			}
			settledTwo(t, w, first, second, 1)
		})
	})
}

func TestShutdownDeadlineWithBothStalled(t *testing.T) {
	fronts(t, testShutdownDeadlineWithBothStalled)
}

func testShutdownDeadlineWithBothStalled(t *testing.T, on front) {
	for name, heal := range map[string]func(first, second *rollwaytest.Destination){
		"the destination returns first": func(first, second *rollwaytest.Destination) { first.Heal() },
		"the failover returns first":    func(first, second *rollwaytest.Destination) { second.Heal() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, first, second := on.openTwo(t, slab.Options{SlabSize: 128, SlabCount: 4, MaxWait: time.Second})
				first.Stall()
				second.Stall()
				for i := range 12 {
					putLevel(t, w, slog.LevelWarn, numbered(i, 30))
				}
				time.Sleep(time.Minute)
				if err := w.Close(); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Close = %v, want a deadline exceeded", err)
				}
				s := w.Stats()
				if s.Pending != 4 || s.Dropped.Shutdown != 8 || s.DroppedByLevel != map[bool]slab.ByLevel{false: {Warn: 8}, true: {Unknown: 8}}[on.shards > 1] {
					t.Errorf("Stats = %+v, want the 4 lines in the calls pending, 8 dropped", s)
				}
				heal(first, second)
				synctest.Wait()
				if s := w.Stats(); s.Pending != 0 || s.Written != 4 {
					t.Errorf("Stats = %+v, want the 4 lines written", s)
				}
				first.Heal()
				second.Heal()
				synctest.Wait()
				s = w.Stats()
				if s.Written != 4 || s.SlabsFree != 4 {
					t.Errorf("Stats = %+v, want 4 lines written, all slabs free", s)
				}
				ledger(w).Check(t)
			})
		})
	}
}

func TestSyncWithAFailover(t *testing.T) { fronts(t, testSyncWithAFailover) }

func testSyncWithAFailover(t *testing.T, on front) {
	synctest.Test(t, func(t *testing.T) {
		w, first, second := on.openTwo(t, slab.Options{MaxWait: time.Second})
		put(t, w, numbered(0, 30))
		if err := w.Sync(); err != nil || first.Syncs() != 1 || second.Syncs() != 0 {
			t.Errorf("Sync = %v, %d and %d syncs, want nil, 1 and 0: the failover has nothing", err, first.Syncs(), second.Syncs())
		}
		first.Fail(nil)
		put(t, w, numbered(1, 30))
		if err := w.Sync(); err != nil || second.Syncs() != 1 {
			t.Errorf("Sync = %v, the failover was synced %d times, want nil and once", err, second.Syncs())
		}
		first.Heal()
		first.Stall()
		time.Sleep(10 * time.Second)
		put(t, w, numbered(2, 30))
		if err := w.Sync(); err != nil { // the trial stalls; what it had before is synced
			t.Errorf("Sync = %v, want nil", err)
		}
		first.Heal()
		synctest.Wait()
		put(t, w, numbered(3, 30))
		second.FailSync(syscall.EIO)
		if err := w.Sync(); err != nil {
			t.Errorf("Sync = %v, want nil: the failover has nothing new", err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		settledTwo(t, w, first, second, 4)
	})
}

// hungSync is a destination whose Sync does not return while hang is not nil.
type hungSync struct {
	*rollwaytest.Destination
	hang chan struct{}
}

func (h *hungSync) Sync() error {
	if h.hang != nil {
		<-h.hang
	}
	return nil
}

// TestFailoverHangsInSync: a Sync of the failover that hangs costs the healthy
// destination no line, and no call more than MaxWait.
func TestFailoverHangsInSync(t *testing.T) { fronts(t, testFailoverHangsInSync) }

func testFailoverHangsInSync(t *testing.T, on front) {
	synctest.Test(t, func(t *testing.T) {
		second := &hungSync{Destination: new(rollwaytest.Destination)}
		w, first := on.open(t, slab.Options{SlabSize: 64, SlabCount: 4, Failover: second})
		first.Fail(nil)
		put(t, w, numbered(0, 60))
		time.Sleep(time.Second)
		first.Heal()
		time.Sleep(10 * time.Second)
		put(t, w, numbered(1, 60))
		time.Sleep(time.Second)
		if first.Calls() == 0 || second.Calls() == 0 {
			t.Fatalf("%d and %d calls", first.Calls(), second.Calls())
		}
		second.hang = make(chan struct{})
		synced := make(chan error, 1)
		go func() { synced <- w.Sync() }()
		synctest.Wait()
		const n = 100
		for i := 2; i < n; i++ {
			begin := time.Now()
			put(t, w, numbered(i, 60))
			if took := time.Since(begin); took > 100*time.Millisecond {
				t.Errorf("line %d took %v", i, took)
			}
		}
		if err := <-synced; err == nil {
			t.Error("Sync = nil")
		}
		close(second.hang)
		synctest.Wait()
		second.hang = nil
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		ledger(w).CheckSettled(t, n, n)
	})
}

// TestFailoverSyncsSlowly: a Sync of the failover that is slow is waited for while
// the destination fails, however many lines find no room meanwhile.
func TestFailoverSyncsSlowly(t *testing.T) { fronts(t, testFailoverSyncsSlowly) }

func testFailoverSyncsSlowly(t *testing.T, on front) {
	synctest.Test(t, func(t *testing.T) {
		second := &hungSync{Destination: new(rollwaytest.Destination)}
		w, first := on.open(t, slab.Options{SlabSize: 64, SlabCount: 4, Full: slab.Block, Failover: second})
		first.Fail(nil)
		put(t, w, numbered(0, 60))
		time.Sleep(time.Second)
		second.hang = make(chan struct{})
		synced := make(chan error, 1)
		go func() { synced <- w.Sync() }()
		synctest.Wait()
		time.AfterFunc(500*time.Millisecond, func() { close(second.hang) })
		const n = 20
		for i := 1; i < n; i++ {
			put(t, w, numbered(i, 60))
		}
		if err := <-synced; err != nil {
			t.Errorf("Sync = %v", err)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		ledger(w).CheckSettled(t, n, n)
	})
}
