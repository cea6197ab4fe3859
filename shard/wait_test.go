package shard_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/rollwaytest"
	"github.com/rollway/rollway/shard"
)

// Who waits longer goes first: records that wait for room are written in the
// order in which they came, of any size, and nobody who comes later gets before
// them.
func TestBlockIsFirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const waiting, term = 60, 64 << 10
		o := small
		o.CloseTimeout = time.Hour
		w, dst := open(t, o)
		rng := rand.New(rand.NewPCG(1, 1))
		dst.Stall()
		given := 0
		var wg sync.WaitGroup
		give := func() {
			given++
			rec := fmt.Sprintf("%d %s", given, strings.Repeat("x", rng.IntN(term/3)))
			if given%7 == 0 {
				rec += strings.Repeat("x", term/2)
			}
			wg.Go(func() {
				if err := w.LogBytes([]byte(rec)); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		for range waiting {
			give()
			time.Sleep(time.Second)
		}
		dst.Heal()
		dst.Always(rollwaytest.Fault{Delay: time.Second, Take: 1 << 30})
		for range waiting { // newcomers, while room comes free bit by bit
			give()
			time.Sleep(100 * time.Millisecond)
		}
		wg.Wait()
		dst.Heal()
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		for i, line := range dst.Lines() {
			if n, _, _ := strings.Cut(line, " "); n != fmt.Sprint(i+1) {
				t.Fatalf("record %s is number %d in the file", n, i+1)
			}
		}
		settled(t, w, given, given)
	})
}

// Those who wait in several shards all get their turn, and one whose time is up
// holds up nobody.
func TestBlockServesEveryShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := shard.Options{BufferSize: 256 << 10, Shards: 4, Full: shard.Block, BlockTimeout: 20 * time.Second, CloseTimeout: time.Hour, NoLossNotice: true}
		w, dst := open(t, o)
		dst.Always(rollwaytest.Fault{Delay: time.Second, Take: 1 << 30})
		const producers, each = 40, 10
		var mu sync.Mutex
		dropped, longest := 0, time.Duration(0)
		var wg sync.WaitGroup
		for g := range producers {
			wg.Go(func() {
				for i := range each {
					began := time.Now()
					err := w.LogBytes(record(g, i, 30_000))
					mu.Lock()
					longest = max(longest, time.Since(began))
					if errors.Is(err, shard.ErrBufferFull) {
						dropped++
					} else if err != nil {
						t.Error(err)
					}
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		dst.Heal()
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if longest > o.BlockTimeout {
			t.Errorf("a call took %v", longest)
		}
		settled(t, w, producers*each, producers*each-dropped)
		s := w.Stats()
		if s.Dropped.BufferFull != uint64(dropped) {
			t.Errorf("%d dropped; Stats %+v", dropped, s)
		}
		var sum shard.ShardStats
		for _, p := range s.Shards {
			sum.Accepted += p.Accepted
			sum.Dropped.BufferFull += p.Dropped.BufferFull
		}
		if sum.Accepted != s.Accepted || sum.Dropped != s.Dropped || len(s.Shards) != 4 {
			t.Errorf("the shards sum up to %+v; Stats %+v", sum, s)
		}
	})
}
