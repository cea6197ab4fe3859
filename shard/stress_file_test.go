package shard_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/logfile"
	"github.com/rollway/rollway/shard"
)

// TestStressFiles follows every record of random runs into real files: Direct,
// Uncached and Buffered, lines and framed, with rotation, files that are moved
// away, Reopen, Flush and Sync meanwhile, Close amid it. A failure names the
// seed that repeats it.
func TestStressFiles(t *testing.T) { seeds(t, stressFiles) }

func stressFiles(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0))
	shards := 1 << rng.IntN(4)
	o := shard.Options{
		BufferSize:    max(64<<10, shards*(4096+rng.IntN(60_000))),
		Shards:        shards,
		TermsPerShard: 2 + rng.IntN(3),
		FlushInterval: time.Millisecond * time.Duration(1+rng.IntN(5)),
		Full:          shard.Policy(rng.IntN(2)),
		NoLossNotice:  rng.IntN(2) == 0,
		StallAfter:    time.Minute,
		CloseTimeout:  5 * time.Minute, // also of Sync
		File:          kinds[rng.IntN(len(kinds))],
	}
	if rng.IntN(3) == 0 { // large enough to be written where they are
		o.BufferSize = shards * (1<<20 + rng.IntN(1<<20))
	}
	term := o.BufferSize / shards
	if rng.IntN(3) > 0 {
		o.File.MaxSize = int64(max(term, 64<<10) + 16<<10 + rng.IntN(2*term))
	}
	o.File.Chunk = []int{4 << 10, 64 << 10, 8 << 20}[rng.IntN(3)]
	o.File.Sync = shard.SyncPolicy(rng.IntN(3))
	o.File.SyncEvery = time.Millisecond * time.Duration(1+rng.IntN(20))
	o.File.CheckEvery = []time.Duration{-1, time.Millisecond, time.Second}[rng.IntN(3)]
	moves := rng.IntN(2) == 0
	producers, each := 1+rng.IntN(60), 50+rng.IntN(150)
	closeAmid := rng.IntN(3) == 0
	what := fmt.Sprintf("%s, %d × %d bytes, %v, files of %d, %v, check %v, moved %v, %d producers, close amid it %v",
		nameOf(o.File), shards, term, o.Full, o.File.MaxSize, o.File.Sync, o.File.CheckEvery, moves, producers, closeAmid)
	defer func() {
		if t.Failed() {
			t.Log(what)
		}
	}()

	path := filepath.Join(t.TempDir(), "log")
	w := openFile(t, path, o)
	var stop atomic.Bool
	var others, writers sync.WaitGroup
	others.Go(func() {
		for !stop.Load() {
			if err := errors.Join(w.Flush(t.Context()), w.Sync()); err != nil && !errors.Is(err, os.ErrClosed) {
				t.Errorf("barrier: %v", err)
			}
			time.Sleep(2 * time.Millisecond)
		}
	})
	others.Go(func() {
		for !stop.Load() {
			ledger(w).Check(t)
			time.Sleep(200 * time.Microsecond)
		}
	})
	others.Go(func() {
		for !stop.Load() {
			if moves {
				moveAway(t, path)
			}
			if err := w.Reopen(); err != nil && !errors.Is(err, os.ErrClosed) {
				t.Errorf("Reopen: %v", err)
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
	g := &given{accepted: make([]map[int]bool, producers)}
	for p := range producers {
		g.accepted[p] = map[int]bool{}
		writers.Go(func() { g.produce(t, w, seed, p, each, term, record) })
	}
	if closeAmid {
		time.Sleep(time.Duration(rng.IntN(20_000)) * time.Microsecond)
	} else {
		writers.Wait()
	}
	if err := w.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	writers.Wait()
	stop.Store(true)
	others.Wait()

	found := 0
	var files []map[int]span
	for _, name := range seriesOf(t, path) {
		spans := map[int]span{}
		readRecords(t, name, func(p, seq int) {
			g.take(t, p, seq)
			s, ok := spans[p]
			if ok && seq <= s.last {
				t.Fatalf("%s: record %d of goroutine %d comes after %d", name, seq, p, s.last)
			}
			if !ok {
				s.first = seq
			}
			spans[p] = span{s.first, seq}
			found++
		})
		files = append(files, spans)
	}
	checkOrder(t, files, !moves)
	g.check(t, w.Stats(), found, producers*each)
}

// span is which records of a goroutine are in a file.
type span struct{ first, last int }

// checkOrder wants each file to be before or behind each other one for all
// goroutines that are in both; before those that come later, if they are sorted.
func checkOrder(t *testing.T, files []map[int]span, sorted bool) {
	t.Helper()
	for i, a := range files {
		for _, b := range files[i+1:] {
			before, behind := sorted, false
			for p, in := range a {
				other, ok := b[p]
				switch {
				case !ok:
				case in.last < other.first:
					before = true
				case other.last < in.first:
					behind = true
				default:
					t.Errorf("goroutine %d: records %v are in one file, %v in another", p, in, other)
				}
			}
			if before && behind {
				t.Errorf("files are out of order: %v, %v", a, b)
			}
		}
	}
}

// moveAway renames the file as a program that rotates logs does.
func moveAway(t *testing.T, path string) {
	err := os.Rename(path, fmt.Sprintf("%s-%s-0", path, time.Now().UTC().Format(logfile.Stamp)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // it is being rotated
		t.Errorf("move: %v", err)
	}
}
