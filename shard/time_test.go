package shard_test

import (
	"bytes"
	"errors"
	"fmt"
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

// It holds also within a batch of many buffers: a record of a quiet shard waits
// for those that were queued before it was due, and for no others.
func TestFlushIntervalWithinABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const interval, perWrite, terms = 100 * time.Millisecond, 30 * time.Millisecond, 32
		dst := slowly{perWrite, make(chan bool, 1)}
		w, err := shard.New(dst, shard.Options{BufferSize: 64 << 10, Shards: 2, TermsPerShard: terms / 2, Full: shard.Block, FlushInterval: interval, CloseTimeout: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		var stop atomic.Bool
		var both sync.WaitGroup
		onShard(&both, 0, func() {
			for !stop.Load() {
				w.LogBytes(bytes.Repeat([]byte("b"), 30_000))
			}
		})
		onShard(&both, 1, func() {
			defer stop.Store(true)
			time.Sleep(2 * terms * perWrite)
			for i := range 20 {
				w.LogBytes([]byte("quiet")) // stands in line for a buffer first
				given := time.Now()
				<-dst.quiet
				if took, most := time.Since(given), interval+terms*perWrite; took > most {
					t.Errorf("record %d was written after %v, want %v at most", i, took, most)
				}
				time.Sleep(7 * perWrite) // another moment of the next batch
			}
		})
		both.Wait()
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
}

// slowly is a destination that takes a while for each Write, and tells of those
// with a record "quiet".
type slowly struct {
	takes time.Duration
	quiet chan bool
}

func (s slowly) Write(p []byte) (int, error) {
	time.Sleep(s.takes)
	if bytes.Contains(p, []byte("quiet\n")) {
		s.quiet <- true
	}
	return len(p), nil
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

// A destination that fails or is slow for many times FlushInterval takes no
// record away while the buffers have room: they are not sent off half empty
// when no other is free.
func TestNoDropsWhileBuffersHaveRoom(t *testing.T) {
	const interval, records = 100 * time.Millisecond, 300
	for name, fault := range map[string]rollwaytest.Fault{
		"fails": {Err: rollwaytest.ErrFault},
		"slow":  {Delay: 7 * interval, Take: 1 << 30},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, dst := open(t, shard.Options{BufferSize: 64 << 10, Shards: 2, FlushInterval: interval})
				dst.Always(fault)
				var both sync.WaitGroup
				for on := range uint32(2) {
					onShard(&both, on, func() {
						for range records {
							if err := w.LogBytes(bytes.Repeat([]byte("x"), 60)); err != nil {
								t.Errorf("LogBytes = %v", err)
								return
							}
							time.Sleep(interval / 10)
						}
					})
				}
				both.Wait()
				if s := w.Stats(); s.Dropped.Total() > 0 || s.Pending == 0 {
					t.Errorf("Stats %+v", s)
				}
				dst.Heal()
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
				ledger(w).CheckSettled(t, 2*records, 2*records)
			})
		})
	}
}
