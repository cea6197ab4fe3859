package shard_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rollway/rollway/rollwaytest"
	"github.com/rollway/rollway/shard"
)

var (
	stressFor  = flag.Duration("stress", 2*time.Second, "run TestStress with one seed after another for this long")
	stressSeed = flag.Uint64("seed", 0, "run TestStress with this seed alone")
)

// TestStress follows every record of random runs: many goroutines, any policy
// and size, a destination that fails in every way, Flush and Sync meanwhile,
// Close amid it. A failure names the seed that repeats it.
func TestStress(t *testing.T) {
	if *stressSeed != 0 {
		stress(t, *stressSeed)
		return
	}
	for end, runs := time.Now().Add(*stressFor), 0; ; runs++ {
		seed := rand.Uint64()
		if !t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { stress(t, seed) }) {
			t.Fatalf("repeat with: go test -run TestStress -seed %d ./shard", seed)
		}
		if time.Now().After(end) {
			t.Logf("%d runs", runs+1)
			return
		}
	}
}

func stress(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0))
	shards := 1 << rng.IntN(5)
	o := shard.Options{
		BufferSize:    max(64<<10, shards*(4096+rng.IntN(30_000))),
		Shards:        shards,
		TermsPerShard: 2 + rng.IntN(3),
		FlushInterval: time.Millisecond * time.Duration(1+rng.IntN(5)),
		Full:          shard.Policy(rng.IntN(2)),
		Retry:         shard.Retry{Min: time.Microsecond, Max: 50 * time.Microsecond},
		NoLossNotice:  rng.IntN(2) == 0,
		CloseTimeout:  time.Minute, // also of Sync
	}
	term := o.BufferSize / o.Shards
	producers, each := 1+rng.IntN(100), 200+rng.IntN(400)
	closeAmid := rng.IntN(3) == 0
	w, dst := open(t, o)

	var stop atomic.Bool
	var others, writers sync.WaitGroup
	others.Go(func() {
		rng := rand.New(rand.NewPCG(seed, 1))
		for !stop.Load() && rng.IntN(200) > 0 {
			dst.Next(
				rollwaytest.Fault{Take: rng.IntN(term), Err: rollwaytest.ErrFault},
				rollwaytest.Fault{Take: rng.IntN(term)},
				rollwaytest.Fault{Panic: "stress"},
				rollwaytest.Fault{Exit: true},
				rollwaytest.Fault{Delay: 10 * time.Microsecond, Take: 1 << 30},
			)
			time.Sleep(100 * time.Microsecond)
		}
	})
	others.Go(func() {
		for !stop.Load() {
			if err := errors.Join(w.Flush(t.Context()), w.Sync()); err != nil && !errors.Is(err, os.ErrClosed) {
				t.Errorf("barrier: %v", err)
			}
			time.Sleep(200 * time.Microsecond)
		}
	})
	others.Go(func() {
		for !stop.Load() {
			ledger(w).Check(t)
			time.Sleep(50 * time.Microsecond)
		}
	})
	accepted := make([]map[int]bool, producers)
	var full, rejected, tooLarge atomic.Uint64
	for p := range producers {
		accepted[p] = map[int]bool{}
		writers.Go(func() {
			rng := rand.New(rand.NewPCG(seed, 2+uint64(p)))
			for seq := range each {
				size := rng.IntN(200)
				switch rng.IntN(50) {
				case 0:
					size = rng.IntN(term / 2)
				case 1:
					size = term
				}
				record := fmt.Appendf(nil, "%d %d %s", p, seq, strings.Repeat("p", size))
				switch err := w.LogBytes(record); {
				case err == nil:
					accepted[p][seq] = true
				case errors.Is(err, shard.ErrBufferFull):
					full.Add(1)
				case errors.Is(err, os.ErrClosed):
					rejected.Add(1)
				case errors.Is(err, shard.ErrTooLarge):
					tooLarge.Add(1)
				default:
					t.Errorf("LogBytes: %v", err)
				}
				if seq%64 == 0 {
					time.Sleep(time.Duration(rng.IntN(100)) * time.Microsecond)
				}
			}
		})
	}
	if closeAmid {
		time.Sleep(time.Duration(rng.IntN(3000)) * time.Microsecond)
	} else {
		writers.Wait()
	}
	if err := w.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	writers.Wait()
	stop.Store(true)
	others.Wait()

	// Every record found once, whole, in its goroutine's order.
	last := make([]int, producers)
	for p := range last {
		last[p] = -1
	}
	found := 0
	for line := range bytes.Lines(dst.Bytes()) {
		if line[0] == '{' {
			continue // an announcement
		}
		var p, seq int
		var pad string
		if _, err := fmt.Sscanf(string(line), "%d %d %s", &p, &seq, &pad); err != nil && !strings.HasSuffix(string(line), " \n") {
			t.Fatalf("torn: %.80q", line)
		}
		if strings.Trim(pad, "p") != "" {
			t.Fatalf("mixed: %.80q", line)
		}
		if !accepted[p][seq] {
			t.Fatalf("record %d of goroutine %d was not accepted, or is there twice", seq, p)
		}
		delete(accepted[p], seq)
		if seq <= last[p] {
			t.Fatalf("goroutine %d: %d comes after %d", p, seq, last[p])
		}
		last[p] = seq
		found++
	}
	for p := range accepted {
		if len(accepted[p]) > 0 {
			t.Errorf("goroutine %d: %d accepted records are lost", p, len(accepted[p]))
		}
	}
	s := w.Stats()
	if s.Written != uint64(found) || s.Pending != 0 || s.Dropped.BufferFull != full.Load() || s.Dropped.TooLarge != tooLarge.Load() || s.Rejected != rejected.Load() {
		t.Errorf("found %d, full %d, too large %d, rejected %d; Stats %+v", found, full.Load(), tooLarge.Load(), rejected.Load(), s)
	}
	var sum uint64
	for _, part := range s.Shards {
		sum += part.Accepted
	}
	if sum != s.Accepted {
		t.Errorf("the shards have accepted %d of %d", sum, s.Accepted)
	}
	if n := uint64(producers * each); s.Accepted+s.Rejected != n {
		t.Errorf("accepted %d + rejected %d is not %d", s.Accepted, s.Rejected, n)
	}
}
