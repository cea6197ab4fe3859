//go:build unix

package file_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/internal/testkit"
)

// TestStress follows every line of random runs: all modes and policies, rotation,
// compression, files that another program moves away, Write and WriteBuffers of
// several goroutines with Sync, Rotate and Reopen beside them, Close amid it. A
// failure names the seed that repeats it.
func TestStress(t *testing.T) {
	t.Parallel()
	stressSeeds(t, 12)
}

func TestStressLong(t *testing.T) {
	testkit.Nightly(t, testkit.Kills, "more random runs")
	stressSeeds(t, 500)
}

func stressSeeds(t *testing.T, n int) {
	first := seedOf(t)
	for i := range n {
		seed := first + uint64(i)
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			stress(t, seed)
		})
	}
}

func stress(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0))
	o := file.Options{
		Mode:      modes[rng.IntN(len(modes))],
		Sync:      file.SyncPolicy(rng.IntN(3)),
		SyncEvery: time.Duration(1+rng.IntN(20)) * time.Millisecond,
		KeepPlain: rng.IntN(3),
	}
	need(t, o.Mode)
	if rng.IntN(3) > 0 {
		o.MaxSize = int64(5_000 + rng.IntN(100_000))
	}
	if rng.IntN(2) == 0 {
		o.Compress = file.Gzip{Level: 1}
	}
	if rng.IntN(3) == 0 && o.MaxSize == 0 {
		o.Every = time.Second
	}
	large := rng.IntN(3) == 0 // for Direct to take as they are
	moves, closeAmid := rng.IntN(2) == 0, rng.IntN(3) == 0
	var heard told
	o.OnError = heard.add
	defer func() {
		if t.Failed() {
			t.Logf("%+v, large %v, moves %v, close amid it %v\n%s", o, large, moves, closeAmid, heard.String())
		}
	}()
	dir := fastDir(t, o.Mode)
	path := filepath.Join(dir, "log")
	f := openChecking(t, path, o, []time.Duration{quick, time.Millisecond, time.Second}[rng.IntN(3)])

	producers, each := 1+rng.IntN(6), 20+rng.IntN(60)
	accepted := make([]int, producers)
	var stop atomic.Bool
	var others, writers sync.WaitGroup
	beside := func(call func() error) {
		others.Go(func() {
			for !stop.Load() {
				if err := call(); err != nil && !errors.Is(err, os.ErrClosed) {
					t.Error(err)
				}
				ledger(f).Check(t)
				time.Sleep(time.Millisecond)
			}
		})
	}
	beside(f.Sync)
	beside(func() error { return f.Flush(t.Context()) })
	beside(func() error {
		if moves {
			err := os.Rename(path, fmt.Sprintf("%s/moved-%d", dir, time.Now().UnixNano()))
			if err != nil && !errors.Is(err, fs.ErrNotExist) { // it is being rotated
				return err
			}
		}
		return f.Reopen()
	})
	if o.MaxSize > 0 {
		beside(f.Rotate)
	}
	for p := range producers {
		rng := rand.New(rand.NewPCG(seed, uint64(p+1)))
		buffers := largeBuffers(t, 2, 1<<20+128<<10) // memory that Direct takes
		writers.Go(func() {
			for accepted[p] < each {
				var bufs [][]byte
				for i := range 1 + rng.IntN(2) {
					b := buffers[i][:0]
					size := rng.IntN(3000)
					if large && rng.IntN(10) == 0 {
						size += 1 << 20
					}
					for begin := true; begin || len(b) < size; begin = false {
						b = fmt.Appendf(b, "%d %d %s.\n", p, accepted[p], strings.Repeat("x", min(size, rng.IntN(100_000))))
						accepted[p]++
					}
					bufs = append(bufs, b)
				}
				var n int64
				var err error
				if len(bufs) == 1 {
					var m int
					m, err = f.Write(bufs[0])
					n = int64(m)
				} else {
					n, err = writeBuffers(f, bufs)
				}
				if errors.Is(err, os.ErrClosed) {
					for _, b := range bufs {
						k := min(int64(len(b)), n)
						n -= k
						accepted[p] -= strings.Count(string(b[k:]), "\n")
					}
					return
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	if closeAmid {
		time.Sleep(time.Duration(rng.IntN(10_000)) * time.Microsecond)
	} else {
		writers.Wait()
	}
	if err := f.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	writers.Wait()
	stop.Store(true)
	others.Wait()

	names, contents := parts(t, path, nil)
	for _, name := range glob(t, filepath.Join(dir, "moved-*")) {
		names, contents = append(names, name), append(contents, read(t, name))
	}
	seen := make([]map[int]bool, producers)
	for p := range seen {
		seen[p] = map[int]bool{}
	}
	last, total := make([]int, producers), 0
	for i, data := range contents {
		if moves || i == 0 { // order holds within a file, and without moves across files
			for p := range last {
				last[p] = -1
			}
		}
		for line := range strings.Lines(data) {
			text := strings.TrimRight(line, " \n")
			if text == "" {
				continue
			}
			var p, n int
			if _, err := fmt.Sscanf(text, "%d %d ", &p, &n); err != nil || p >= producers || !strings.HasSuffix(text, ".") {
				t.Fatalf("%s: line %.60q", names[i], line)
			}
			if seen[p][n] || n <= last[p] {
				t.Fatalf("%s: line %d of producer %d, after %d, seen before: %v", names[i], n, p, last[p], seen[p][n])
			}
			seen[p][n], last[p] = true, n
		}
		if o.MaxSize > 0 && int64(len(data)) > o.MaxSize+2<<20 {
			t.Errorf("%s has %d bytes", names[i], len(data))
		}
	}
	for p, n := range accepted {
		total += n
		if len(seen[p]) != n {
			t.Errorf("producer %d: %d lines of %d", p, len(seen[p]), n)
		}
	}
	ledger(f).CheckSettled(t, total, total)
}
