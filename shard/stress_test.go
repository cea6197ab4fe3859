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
	stressFor  = flag.Duration("stress", time.Second, "run TestStress and TestStressFiles with one seed after another, each for this long")
	stressSeed = flag.Uint64("seed", 0, "run TestStress or TestStressFiles with this seed alone")
)

// TestStress follows every record of random runs: many goroutines, any policy
// and size, a destination that fails in every way, Flush and Sync meanwhile,
// Close amid it. A failure names the seed that repeats it.
func TestStress(t *testing.T) { seeds(t, stress) }

// seeds runs one seed after another for as long as -stress says, or -seed alone.
func seeds(t *testing.T, run func(t *testing.T, seed uint64)) {
	if *stressSeed != 0 {
		run(t, *stressSeed)
		return
	}
	for end, runs := time.Now().Add(*stressFor), 0; ; runs++ {
		seed := rand.Uint64()
		if !t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { run(t, seed) }) {
			t.Fatalf("repeat with: go test -run '^%s$' ./shard -args -seed %d", t.Name(), seed)
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
	g := &given{accepted: make([]map[int]bool, producers)}
	for p := range producers {
		g.accepted[p] = map[int]bool{}
		writers.Go(func() { g.produce(t, w, seed, p, each, term, stressRecord) })
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
		g.take(t, p, seq)
		if seq <= last[p] {
			t.Fatalf("goroutine %d: %d comes after %d", p, seq, last[p])
		}
		last[p] = seq
		found++
	}
	g.check(t, w.Stats(), found, producers*each)
}

func stressRecord(p, seq, size int) []byte {
	return fmt.Appendf(nil, "%d %d %s", p, seq, strings.Repeat("p", size))
}

// given is what producers have given, and what became of it at once.
type given struct {
	accepted                 []map[int]bool // by producer; only it writes to its own
	full, rejected, tooLarge atomic.Uint64
}

// produce gives each records of producer p, some of them too long for a term.
func (g *given) produce(t *testing.T, w *shard.Writer, seed uint64, p, each, term int, record func(p, seq, size int) []byte) {
	rng := rand.New(rand.NewPCG(seed, 2+uint64(p)))
	for seq := range each {
		size := rng.IntN(200)
		switch rng.IntN(50) {
		case 0:
			size = rng.IntN(term / 2)
		case 1:
			size = term
		}
		switch err := w.LogBytes(record(p, seq, size)); {
		case err == nil:
			g.accepted[p][seq] = true
		case errors.Is(err, shard.ErrBufferFull):
			g.full.Add(1)
		case errors.Is(err, os.ErrClosed):
			g.rejected.Add(1)
		case errors.Is(err, shard.ErrTooLarge):
			g.tooLarge.Add(1)
		default:
			t.Errorf("LogBytes: %v", err)
		}
		if seq%64 == 0 {
			time.Sleep(time.Duration(rng.IntN(100)) * time.Microsecond)
		}
	}
}

// take notes that a record was found.
func (g *given) take(t *testing.T, p, seq int) {
	if p < 0 || p >= len(g.accepted) || !g.accepted[p][seq] {
		t.Fatalf("record %d of goroutine %d was not accepted, or is there twice", seq, p)
	}
	delete(g.accepted[p], seq)
}

// check wants all that was accepted to have been found, and the ledger to say
// the same.
func (g *given) check(t *testing.T, s shard.Stats, found, all int) {
	t.Helper()
	for p := range g.accepted {
		if len(g.accepted[p]) > 0 {
			t.Errorf("goroutine %d: %d accepted records are lost", p, len(g.accepted[p]))
		}
	}
	if s.Written != uint64(found) || s.Pending != 0 || s.Dropped.BufferFull != g.full.Load() || s.Dropped.TooLarge != g.tooLarge.Load() || s.Rejected != g.rejected.Load() {
		t.Errorf("found %d, full %d, too large %d, rejected %d; Stats %+v", found, g.full.Load(), g.tooLarge.Load(), g.rejected.Load(), s)
	}
	var sum uint64
	for _, part := range s.Shards {
		sum += part.Accepted
	}
	if sum != s.Accepted {
		t.Errorf("the shards have accepted %d of %d", sum, s.Accepted)
	}
	if n := uint64(all); s.Accepted+s.Rejected != n {
		t.Errorf("accepted %d + rejected %d is not %d", s.Accepted, s.Rejected, n)
	}
}
