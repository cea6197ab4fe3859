package shard_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/logfile"
	"github.com/rollway/rollway/shard"
)

// TestStressFiles follows every record of random runs into real files: Direct,
// Uncached and Buffered, lines and framed, with rotation, old files that are
// removed or used again, files that are moved away, Reopen, Flush and Sync
// meanwhile, Close amid it. A failure names the seed that repeats it.
func TestStressFiles(t *testing.T) {
	seeds(t, func(t *testing.T, seed uint64) { stressFiles(t, seed, false) })
}

// stressFiles is one run. With faulty calls of the system fail now and then: there
// is a second folder, and what OnError says is there twice may be.
func stressFiles(t *testing.T, seed uint64, faulty bool) {
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
	if o.File.MaxSize > 0 && !moves { // whoever moves files away takes them for himself
		o.File.Keep = rng.IntN(4)
	}
	var heard told
	o.OnError = heard.add
	dir := t.TempDir()
	path, second := filepath.Join(dir, "log"), filepath.Join(dir, "second")
	if faulty {
		if err := os.Mkdir(second, 0o700); err != nil {
			t.Fatal(err)
		}
		o.File.Failover = second
		o.Retry = shard.Retry{Min: time.Millisecond, Max: 5 * time.Millisecond}
	}
	producers, each := 1+rng.IntN(60), 50+rng.IntN(150)
	if faulty { // each call stops for the tracer, and each failure waits
		each /= 4
		o.File.Chunk = max(o.File.Chunk, 64<<10)
	}
	closeAmid := rng.IntN(3) == 0
	what := fmt.Sprintf("%s, %d × %d bytes, %v, files of %d, %d kept, %v, check %v, moved %v, %d producers, close amid it %v",
		nameOf(o.File), shards, term, o.Full, o.File.MaxSize, o.File.Keep, o.File.Sync, o.File.CheckEvery, moves, producers, closeAmid)
	defer func() {
		if t.Failed() {
			t.Log(what)
			t.Log(heard.String())
		}
	}()

	w, err := shard.Open(path, o)
	if err != nil {
		if !faulty {
			t.Fatal(err)
		}
		return // that was the fault
	}
	var stop atomic.Bool
	var others, writers sync.WaitGroup
	others.Go(func() {
		for !stop.Load() {
			err := w.Flush(t.Context())
			if syncErr := w.Sync(); !faulty {
				err = errors.Join(err, syncErr)
			}
			if err != nil && !errors.Is(err, os.ErrClosed) {
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
			if err := w.Reopen(); err != nil && !errors.Is(err, os.ErrClosed) && !faulty {
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
	if err := w.Close(); err != nil && !faulty {
		t.Errorf("Close: %v", err)
	}
	writers.Wait()
	stop.Store(true)
	others.Wait()
	s := w.Stats()

	twice := strings.Contains(heard.String(), "are written again elsewhere")
	found := 0
	taken := map[[2]int]bool{}
	var files []map[int]span
	names := append(seriesOf(t, path), seriesOf(t, filepath.Join(second, "log"))...)
	for _, name := range names {
		spans := map[int]span{}
		readTorn(t, name, faulty, func(p, seq int) {
			key := [2]int{p, seq}
			if !taken[key] || !twice {
				g.take(t, p, seq)
				found++
			}
			taken[key] = true
			s, ok := spans[p]
			if ok && seq <= s.last {
				t.Fatalf("%s: record %d of goroutine %d comes after %d", name, seq, p, s.last)
			}
			if !ok {
				s.first = seq
			}
			spans[p] = span{s.first, seq}
		})
		files = append(files, spans)
		if info, err := os.Stat(name); err != nil || o.File.MaxSize > 0 && info.Size() > o.File.MaxSize && !moves && !faulty {
			t.Errorf("%s: %d bytes, %v", name, info.Size(), err)
		}
	}
	if !faulty { // else lines go on at the end of a file that others came after
		checkOrder(t, files, !moves)
	}
	if s.File.Removed+s.File.Recycled > 0 {
		found += g.forget(t, files, faulty)
	}
	g.check(t, s, found, producers*each)
}

// forget takes the accepted records that are in none of the files for those of
// files that were removed or used again: they are older than what is there. It
// returns how many there are.
func (g *given) forget(t *testing.T, files []map[int]span, anyOrder bool) (n int) {
	t.Helper()
	for p, accepted := range g.accepted {
		first := math.MaxInt
		for _, spans := range files {
			if s, ok := spans[p]; ok {
				first = min(first, s.first)
			}
		}
		for seq := range accepted {
			if seq < first || anyOrder {
				delete(accepted, seq)
				n++
			}
		}
	}
	return n
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
