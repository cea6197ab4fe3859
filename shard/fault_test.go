package shard_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/internal/goid"
	"github.com/rollway/rollway/rollwaytest"
	"github.com/rollway/rollway/shard"
)

func log(t *testing.T, w *shard.Writer, records ...string) {
	t.Helper()
	for _, r := range records {
		if err := w.LogBytes([]byte(r)); err != nil {
			t.Fatalf("LogBytes(%.40q) = %v", r, err)
		}
	}
}

// settled wants everything dealt with: so many records given, so many of them
// written.
func settled(t *testing.T, w *shard.Writer, accepted, written int) {
	t.Helper()
	ledger(w).CheckSettled(t, accepted, written)
}

// small is one shard with terms of 64 KiB.
var small = shard.Options{BufferSize: 64 << 10, Shards: 1, Full: shard.Block}

// A record of which the destination has a part is never given up, however often
// the time for that comes.
func TestGiveUpNeverTearsARecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := small
		o.NoLossNotice = true
		o.Retry = shard.Retry{Min: time.Millisecond, GiveUp: time.Second}
		w, dst := open(t, o)
		log(t, w, "aaaa", "bb", "cc")
		dst.Next(rollwaytest.Fault{Take: 2, Err: rollwaytest.ErrFault})
		dst.Fail(nil)
		time.Sleep(10 * time.Second) // gives up again and again
		if s := w.Stats(); s.Dropped.GaveUp != 2 || s.Pending != 1 {
			t.Errorf("Stats %+v, want 2 records given up and one pending", s)
		}
		dst.Heal()
		log(t, w, "dd")
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := string(dst.Bytes()); got != "aaaa\ndd\n" {
			t.Errorf("the destination has %q", got)
		}
		settled(t, w, 4, 2)
		if err := w.Close(); err == nil || !strings.Contains(err.Error(), "gave up 2 records") {
			t.Errorf("Close = %v", err)
		}
	})
}

// FlushInterval holds for a quiet shard also while another keeps the
// destination busy.
func TestFlushIntervalBesideABusyShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const interval, perWrite = time.Second, 30 * time.Millisecond
		w, dst := open(t, shard.Options{BufferSize: 64 << 10, Shards: 2, TermsPerShard: 4, Full: shard.Block, FlushInterval: interval})
		dst.Always(rollwaytest.Fault{Delay: perWrite, Take: 1 << 30})
		var stop atomic.Bool
		var busy sync.WaitGroup
		defer busy.Wait()
		defer stop.Store(true)
		onShard(&busy, 0, func() {
			for !stop.Load() {
				w.LogBytes(bytes.Repeat([]byte("b"), 30_000))
			}
		})
		time.Sleep(time.Second)
		onShard(&busy, 1, func() { w.LogBytes([]byte("quiet")) })
		time.Sleep(interval + 10*perWrite)
		if !bytes.Contains(dst.Bytes(), []byte("quiet\n")) {
			t.Errorf("after %v the record is not written: Stats %+v", interval+10*perWrite, w.Stats())
		}
	})
}

// onShard runs f on a goroutine of that shard of two, if goroutines can be told
// apart.
func onShard(wg *sync.WaitGroup, shard uint32, f func()) {
	found := make(chan struct{})
	defer close(found)
	for range 100 {
		is := make(chan bool, 1)
		wg.Go(func() {
			mine := goid.Hash(2) == shard
			is <- mine
			if mine {
				f()
			} else {
				<-found // or the next goroutine would be this one again
			}
		})
		if <-is {
			return
		}
	}
	wg.Go(f)
}

func TestFlushIntervalUnderATrickle(t *testing.T) {
	for _, interval := range []time.Duration{time.Millisecond, 100 * time.Millisecond, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			w, dst := open(t, shard.Options{BufferSize: 64 << 10, Shards: 2, FlushInterval: interval})
			n := 0
			for _, pause := range []time.Duration{interval / 20, interval / 3, interval * 5, interval * 40} {
				for range 30 {
					log(t, w, fmt.Sprint(n))
					n++
					time.Sleep(pause)
					if age := w.Stats().OldestAge; age > interval+time.Millisecond {
						t.Fatalf("a record is %v old", age)
					}
				}
			}
			time.Sleep(interval)
			if got := len(dst.Lines()); got != n {
				t.Errorf("%d of %d records written", got, n)
			}
		})
	}
}

// BlockTimeout bounds a call, also one that others overtake and one with many
// lines.
func TestBlockTimeoutBoundsTheCall(t *testing.T) {
	const bound = 100 * time.Millisecond
	t.Run("many producers", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			o := small
			o.BlockTimeout = bound
			w, dst := open(t, o)
			dst.Always(rollwaytest.Fault{Delay: bound * 2 / 3, Take: 1 << 30})
			var longest, dropped atomic.Int64
			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() {
					record := bytes.Repeat([]byte("r"), 40_000)
					for range 50 {
						began := time.Now()
						err := w.LogBytes(record)
						took := int64(time.Since(began))
						for old := longest.Load(); took > old && !longest.CompareAndSwap(old, took); old = longest.Load() {
						}
						if errors.Is(err, shard.ErrBufferFull) {
							dropped.Add(1)
						} else if err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			if d := time.Duration(longest.Load()); d > bound {
				t.Errorf("a call took %v, the bound is %v", d, bound)
			}
			dst.Heal()
			if err := w.Close(); err != nil {
				t.Error(err)
			}
			s := w.Stats()
			if s.Dropped.BufferFull != uint64(dropped.Load()) || s.Accepted != 1000 || s.Pending != 0 {
				t.Errorf("%d calls said full; Stats %+v", dropped.Load(), s)
			}
		})
	})
	t.Run("one Write of many buffers", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			o := small
			o.BlockTimeout = bound
			w, dst := open(t, o)
			dst.Stall()
			lines := bytes.Repeat(append(bytes.Repeat([]byte("l"), 999), '\n'), 1000)
			began := time.Now()
			if n, err := w.Write(lines); n != len(lines) || err != nil {
				t.Errorf("Write = %d, %v, want %d, nil", n, err, len(lines))
			}
			if took := time.Since(began); took != bound {
				t.Errorf("the call took %v, want %v", took, bound)
			}
			dst.Heal()
			if err := w.Close(); err != nil {
				t.Error(err)
			}
			var written int
			for _, l := range dst.Lines() {
				if l[0] == 'l' {
					written++
				}
			}
			settled(t, w, 1000, written)
		})
	})
}

// A notice hangs, Shutdown gives up, the notice gets through at last: the
// records that would have come after it are counted.
func TestAbandonedWithinANotice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := small
		o.Full = shard.Drop
		w, dst := open(t, o)
		dst.Stall()
		record := strings.Repeat("r", 40_000)
		given := 0
		for ; w.LogBytes([]byte(record)) == nil; given++ {
			time.Sleep(time.Second)
		}
		dst.Heal()
		dst.Stall()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := w.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Shutdown = %v", err)
		}
		ledger(w).Check(t)
		dst.Heal()
		synctest.Wait()
		found := 0
		for _, l := range dst.Lines() {
			if l == record {
				found++
			}
		}
		settled(t, w, given+1, found)
	})
}

func TestShutdownOnAStuckDestination(t *testing.T) {
	for _, closeIt := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			o := small
			o.CloseDestination = closeIt
			w, dst := open(t, o)
			dst.Stall()
			log(t, w, "one", "two")
			time.Sleep(2 * time.Second) // both are inside
			var wg sync.WaitGroup
			for range 5 { // they wait for room
				wg.Go(func() {
					for {
						if err := w.LogBytes(bytes.Repeat([]byte("r"), 30_000)); err != nil {
							if !errors.Is(err, os.ErrClosed) {
								t.Error(err)
							}
							return
						}
					}
				})
			}
			time.Sleep(time.Second)
			errs := make([]error, 3)
			for i := range errs {
				wg.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(3-i)*time.Second)
					defer cancel()
					errs[i] = w.Shutdown(ctx)
				})
			}
			began := time.Now()
			wg.Wait()
			if took := time.Since(began); took != time.Second {
				t.Errorf("the earliest deadline of 1s came after %v", took)
			}
			for _, err := range errs {
				if !errors.Is(err, context.DeadlineExceeded) || err != errs[0] || !strings.Contains(err.Error(), "2 inside a write") {
					t.Errorf("Shutdown = %v", err)
				}
			}
			if s := w.Stats(); s.Pending != 2 || s.Stalled == 0 || s.Rejected != 5 {
				t.Errorf("Stats %+v", s)
			}
			dst.Heal()
			synctest.Wait()
			s := w.Stats()
			if s.Written != 2 || s.Pending != 0 || dst.Closes() != map[bool]int{true: 1}[closeIt] {
				t.Errorf("Stats %+v, %d calls of Close", s, dst.Closes())
			}
		})
	}
}

// A Shutdown whose deadline has passed amid another's beginning.
func TestShutdownsAtOnce(t *testing.T) {
	for range 300 {
		dst := new(rollwaytest.Destination)
		w, err := shard.New(dst, shard.Options{BufferSize: 128 << 10, Shards: 32})
		if err != nil {
			t.Fatal(err)
		}
		dst.Fail(nil)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 5 {
					w.LogBytes([]byte("record"))
				}
				ctx, cancel := context.WithCancel(context.Background())
				cancel()
				w.Shutdown(ctx)
			})
		}
		wg.Wait()
		for until := time.Now().Add(30 * time.Second); w.Stats().Pending > 0; time.Sleep(time.Millisecond) {
			if time.Now().After(until) {
				t.Fatalf("still pending: %+v", w.Stats())
			}
		}
		if s := w.Stats(); s.Accepted+s.Rejected != 40 {
			t.Fatalf("Stats %+v, want 40 records", s)
		}
	}
}

func TestGoexitIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reports []string
		o := small
		o.OnError = func(err error) { reports = append(reports, err.Error()) }
		w, dst := open(t, o)
		for round := range 20 {
			dst.Next(rollwaytest.Fault{Exit: true}, rollwaytest.Fault{Take: 5}, rollwaytest.Fault{Exit: true}, rollwaytest.Fault{Panic: "too"})
			log(t, w, fmt.Sprint("one ", round), fmt.Sprint("two ", round))
			if err := w.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		for i, l := range dst.Lines() {
			if want := fmt.Sprint([]string{"one ", "two "}[i%2], i/2); l != want {
				t.Fatalf("line %d is %q, want %q", i, l, want)
			}
		}
		settled(t, w, 40, 40)
		if len(reports) == 0 || !strings.Contains(reports[0], "ended its goroutine in write") {
			t.Errorf("OnError got %q", reports)
		}
	})
}

// exits ends the goroutine in the methods named.
type exits struct {
	*rollwaytest.Destination
	sync, close bool
}

func (e exits) Sync() error {
	if e.sync {
		e.Next(rollwaytest.Fault{Exit: true})
		e.Write(nil)
	}
	return e.Destination.Sync()
}

func (e exits) Close() error {
	if e.close {
		e.Next(rollwaytest.Fault{Exit: true})
		e.Write(nil)
	}
	return e.Destination.Close()
}

func TestGoexitInSyncAndClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dst := new(rollwaytest.Destination)
		o := small
		o.CloseDestination = true
		w, err := shard.New(exits{dst, true, true}, o)
		if err != nil {
			t.Fatal(err)
		}
		log(t, w, "one")
		if err := w.Sync(); err == nil || !strings.Contains(err.Error(), "ended its goroutine in Sync") {
			t.Errorf("Sync = %v", err)
		}
		log(t, w, "two")
		if err := w.Close(); err == nil || !strings.Contains(err.Error(), "ended its goroutine in Close") {
			t.Errorf("Close = %v", err)
		}
		settled(t, w, 2, 2)
	})
}

// consumer takes its buffers as net.Buffers does: they are gone afterwards.
type consumer struct{ *rollwaytest.Destination }

func (c consumer) WriteBuffers(bufs [][]byte) (int64, error) {
	b := net.Buffers(bufs)
	return b.WriteTo(c.Destination)
}

func TestVectoredDestinationMayConsumeItsBuffers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dst := new(rollwaytest.Destination)
		o := small
		o.TermsPerShard = 8
		o.Retry.Min = time.Millisecond
		w, err := shard.New(consumer{dst}, o)
		if err != nil {
			t.Fatal(err)
		}
		var want strings.Builder
		dst.Stall()
		for i := range 200 {
			if i == 100 {
				synctest.Wait()
				dst.Heal()
				dst.Next(rollwaytest.Fault{Take: 1000, Err: rollwaytest.ErrFault}, rollwaytest.Fault{Take: 60_000, Err: rollwaytest.ErrFault})
			}
			record := fmt.Sprint(i, strings.Repeat("r", 3000))
			want.WriteString(record + "\n")
			log(t, w, record)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if got := string(dst.Bytes()); got != want.String() {
			t.Errorf("%d bytes, want %d", len(got), want.Len())
		}
		settled(t, w, 200, 200)
	})
}

// A Sync whose context ends does not fail another that has time.
func TestSyncsOfDifferentPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dst := &slowSync{Destination: new(rollwaytest.Destination), takes: 2 * time.Second}
		w, err := shard.New(dst, small)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		log(t, w, "one")
		dst.Stall()
		var wg sync.WaitGroup
		for _, patience := range []time.Duration{time.Second, 10 * time.Second} {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				if err := w.SyncContext(ctx); errors.Is(err, context.DeadlineExceeded) != (patience == time.Second) {
					t.Errorf("SyncContext with %v: %v", patience, err)
				}
			})
			synctest.Wait()
		}
		dst.Heal()
		wg.Wait()
	})
}

type slowSync struct {
	*rollwaytest.Destination
	takes time.Duration
}

func (s *slowSync) SyncContext(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(s.takes):
		return nil
	}
}

// A loss is announced also when the announcement fails at first and no record
// follows, and when nothing but the loss happens.
func TestNoticesAreOwedUntilTheyAreWritten(t *testing.T) {
	tooLarge := bytes.Repeat([]byte("x"), 70_000)
	notice := func(dst *rollwaytest.Destination) bool {
		return bytes.Contains(dst.Bytes(), []byte(`"reason":"line too large","dropped":1}`))
	}
	t.Run("idle", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, dst := open(t, small)
			time.Sleep(time.Hour)
			if err := w.LogBytes(tooLarge); !errors.Is(err, shard.ErrTooLarge) {
				t.Errorf("LogBytes = %v", err)
			}
			time.Sleep(2 * time.Second)
			if !notice(dst) {
				t.Errorf("the destination has %q", dst.Bytes())
			}
		})
	})
	t.Run("fails at first", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, dst := open(t, small)
			dst.FailTimes(1)
			w.LogBytes(tooLarge)
			time.Sleep(time.Minute)
			if err := w.Close(); err != nil {
				t.Error(err)
			}
			if !notice(dst) {
				t.Errorf("the destination has %q", dst.Bytes())
			}
			settled(t, w, 1, 0)
		})
	})
	t.Run("torn", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, dst := open(t, small)
			dst.Next(rollwaytest.Fault{Take: 10, Err: rollwaytest.ErrFault}, rollwaytest.Fault{Take: 7}, rollwaytest.Fault{Panic: 1}, rollwaytest.Fault{Exit: true})
			w.LogBytes(tooLarge)
			log(t, w, "after")
			if err := w.Close(); err != nil {
				t.Error(err)
			}
			if l := dst.Lines(); len(l) != 2 || !notice(dst) || l[1] != "after" {
				t.Errorf("the destination has %q", l)
			}
			if s := w.Stats(); s.Notices != 1 {
				t.Errorf("Stats %+v", s)
			}
			settled(t, w, 2, 1)
		})
	})
}

func TestStallsAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type report struct {
			at   time.Time
			text string
		}
		var mu sync.Mutex
		var reports []report
		o := small
		o.StallAfter = 200 * time.Millisecond
		o.FlushInterval = time.Millisecond
		o.CloseDestination = true
		o.OnError = func(err error) {
			mu.Lock()
			defer mu.Unlock()
			reports = append(reports, report{time.Now(), err.Error()})
		}
		w, dst := open(t, o)
		dst.Stall()
		log(t, w, "one")
		began := time.Now()
		time.Sleep(time.Second)
		if s := w.Stats(); s.Stalls != 1 || s.Stalled < 900*time.Millisecond {
			t.Errorf("Stats %+v", s)
		}
		dst.Heal()
		synctest.Wait()
		if s := w.Stats(); s.Stalls != 1 || s.Stalled != 0 {
			t.Errorf("Stats %+v", s)
		}
		mu.Lock()
		if len(reports) != 1 || reports[0].at.Sub(began) > o.StallAfter+2*time.Millisecond || !strings.Contains(reports[0].text, "write has not returned for 200ms") {
			t.Errorf("%v: %v", began, reports)
		}
		reports = nil
		mu.Unlock()

		// Slow calls one after the other, none long enough.
		dst.Always(rollwaytest.Fault{Delay: 199 * time.Millisecond, Take: 1 << 20})
		for range 20 {
			log(t, w, "slow")
			time.Sleep(150 * time.Millisecond)
		}
		dst.Heal()
		time.Sleep(time.Hour)
		if s := w.Stats(); s.Stalls != 1 {
			t.Errorf("Stats %+v", s)
		}

		dst.StallClose()
		done := make(chan error)
		go func() { done <- w.Close() }()
		time.Sleep(100 * time.Millisecond)
		if s := w.Stats(); s.Stalled != 0 {
			t.Errorf("stalled for %v after 100ms of Close", s.Stalled)
		}
		time.Sleep(400 * time.Millisecond)
		if s := w.Stats(); s.Stalled < 400*time.Millisecond || s.Stalls != 2 {
			t.Errorf("Stats %+v after 500 ms of the destination's Close", s)
		}
		dst.Heal()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
