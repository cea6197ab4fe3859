package shard_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/rollwaytest"
	"github.com/rollway/rollway/shard"
)

// A notice hangs, Shutdown gives up, the notice gets through at last: the
// records that would have come after it are counted.
func TestAbandonedWithinANotice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := small
		o.Full = shard.Drop
		w, dst := open(t, o)
		record := strings.Repeat("r", 40_000)
		dst.Next(rollwaytest.Fault{Delay: time.Minute, Take: len(record) + 1}, rollwaytest.Fault{Delay: time.Hour, Take: 1 << 20})
		given := 0
		for ; w.LogBytes([]byte(record)) == nil; given++ {
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute) // the first record is through
		synctest.Wait()
		if n := dst.Calls(); n != 2 || w.Stats().Written != 1 {
			t.Errorf("%d calls, Stats %+v", n, w.Stats())
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := w.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Shutdown = %v", err)
		}
		ledger(w).Check(t)
		time.Sleep(time.Hour)
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

// A Shutdown whose deadline has passed, while writers that wait get their places:
// it ends, and each record is accounted for.
func TestShutdownAmidPlaces(t *testing.T) {
	const waiting = 8
	record := bytes.Repeat([]byte("r"), 20_000) // three of them fill a buffer
	for round := range 300 {
		o := small
		o.NoLossNotice = true
		if round%2 == 0 {
			o.BlockTimeout = 50 * time.Microsecond
		}
		dst := new(rollwaytest.Destination)
		w, err := shard.New(dst, o)
		if err != nil {
			t.Fatal(err)
		}
		dst.Stall()
		var full atomic.Int64
		var wg sync.WaitGroup
		for range waiting {
			wg.Go(func() {
				for {
					switch err := w.LogBytes(record); {
					case errors.Is(err, os.ErrClosed):
						return
					case errors.Is(err, shard.ErrBufferFull):
						full.Add(1)
					case err != nil:
						t.Error(err)
						return
					}
				}
			})
		}
		eventually(t, "no buffer is free", func() bool { return w.Stats().TermsFree == 0 })
		dst.Heal() // places are given from here on
		time.Sleep(time.Duration(round) * time.Microsecond)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		done := make(chan struct{})
		go func() {
			w.Shutdown(ctx)
			wg.Wait()
			close(done)
		}()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Fatal("Shutdown has not ended after a minute")
		}
		eventually(t, "nothing is pending", func() bool { return w.Stats().Pending == 0 })
		if s := w.Stats(); s.Rejected != waiting || s.Dropped.BufferFull != uint64(full.Load()) || s.Written != uint64(len(dst.Lines())) {
			t.Fatalf("%d lines, %d calls said full; Stats %+v", len(dst.Lines()), full.Load(), s)
		}
		ledger(w).Check(t)
	}
}
