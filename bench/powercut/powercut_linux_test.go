package powercut

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/framed"
	"github.com/rollway/rollway/shard"
)

var seedFlag = flag.Uint64("seed", 0, "replay the random choice with this seed")

const (
	goroutines = 3
	rounds     = 24
	perRound   = 6
)

// The power fails at any moment: what a Sync, or a Flush with SyncEach, has said
// to be safe is there, nothing that was not given is read as a record, and the
// next Open goes on behind what is left.
func TestPowerCut(t *testing.T) {
	seed := chosenSeed()
	for _, c := range []struct {
		name string
		file shard.FileOptions
	}{
		{"lines", shard.FileOptions{}},
		{"lines, fsync after each write", shard.FileOptions{Sync: shard.SyncEach, MaxSize: 150 << 10}},
		{"lines, rotated", shard.FileOptions{MaxSize: 150 << 10, Sync: shard.SyncInterval, SyncEvery: time.Millisecond}},
		{"lines, Direct", shard.FileOptions{Mode: shard.Direct, MaxSize: 150 << 10}},
		{"framed", shard.FileOptions{Framed: true}},
		{"framed, fsync after each write, used again", shard.FileOptions{Framed: true, Sync: shard.SyncEach, MaxSize: 100 << 10, Keep: 2}},
		{"framed, used again", shard.FileOptions{Framed: true, Sync: shard.SyncInterval, SyncEvery: time.Millisecond, MaxSize: 100 << 10, Keep: 2}},
		{"framed, Direct", shard.FileOptions{Framed: true, Mode: shard.Direct, MaxSize: 100 << 10}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := options(c.file)
			replay(t, seed, o, recordOps(t, o))
		})
	}
}

func chosenSeed() uint64 {
	if *seedFlag != 0 {
		return *seedFlag
	}
	return rand.Uint64()
}

func options(file shard.FileOptions) shard.Options {
	return shard.Options{BufferSize: 128 << 10, Shards: 2, Full: shard.Block, FlushInterval: time.Millisecond, StallAfter: time.Minute, CloseTimeout: time.Minute, File: file}
}

// replay has the power fail at each fsync of ops and between, and a Writer with
// o go on.
func replay(t *testing.T, seed uint64, o shard.Options, ops []op) {
	t.Helper()
	rnd, d, states, syncs := rand.New(rand.NewPCG(seed, 1)), newDrive(), 0, 0
	for i, op := range ops {
		atSync := op.kind == opSync || op.kind == opSyncFolder
		if atSync && d.dirty() { // the moment before it has an effect
			states += try(t, d, o, d.least(), d.most(), d.some(rnd), d.some(rnd))
			syncs++
		}
		d.apply(op)
		if !atSync && op.kind != opTell && i%7 == 0 {
			states += try(t, d, o, d.some(rnd))
		}
		if t.Failed() {
			t.Fatalf("at operation %d of %d, kind %d; repeat with -args -seed %d", i, len(ops), op.kind, seed)
		}
	}
	try(t, d, o, d.least(), d.most())
	t.Logf("%d operations, %d syncs, %d states", len(ops), syncs, states)
	if d.safe[0] < rounds*perRound || states < 25 || syncs < rounds/3 {
		t.Errorf("%d records safe: this tests little", d.safe[0])
	}
}

// recordOps has a Writer write, and returns what that did to the disk.
func recordOps(t *testing.T, o shard.Options) []op {
	t.Helper()
	r, dir, end := mount(t)
	defer end()
	o.OnError = func(err error) {
		if !strings.Contains(err.Error(), "is written Buffered, not") {
			t.Errorf("OnError: %v", err)
		}
	}
	w, err := shard.Open(filepath.Join(dir, "log"), o)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close() // a test that fails would leave the mount otherwise
	for round := range rounds {
		give(t, w, round*perRound)
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if o.File.Sync != shard.SyncEach {
			if round%3 > 0 { // several flushes deep
				continue
			}
			if err := w.Sync(); err != nil {
				t.Fatal(err)
			}
		}
		r.tellAll((round + 1) * perRound)
	}
	if err := errors.Join(w.Sync(), w.Close()); err != nil {
		t.Fatal(err)
	}
	r.tellAll(rounds * perRound)
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ops
}

// give logs a round of records of each goroutine, numbered from first on.
func give(t *testing.T, w *shard.Writer, first int) {
	t.Helper()
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			for i := first; i < first+perRound; i++ {
				if err := w.LogBytes(numbered(g, i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// numbered is a record that is all determined by its goroutine and number.
func numbered(g, i int) []byte {
	b := fmt.Appendf(nil, "%d %d ", g, i)
	for k := range (g*7919 + i*104729) % 2500 {
		b = append(b, 'a'+byte((k+g+i)%26))
	}
	return append(b, '.')
}

// afterwards is the number of the first record that is written after a cut.
const afterwards = 1_000_000

// try makes each state a folder, reads it, opens it, writes on, and reads again.
func try(t *testing.T, d *drive, o shard.Options, states ...map[string][]byte) int {
	t.Helper()
	for _, s := range states {
		checkState(t, d, o, s, "as it is", false)
		dir, err := os.MkdirTemp("", "powercut")
		if err != nil {
			t.Fatal(err)
		}
		for name, data := range s {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		on := o
		on.File.Keep = 0 // which would take old files away
		on.File.Sync = shard.SyncNever
		w, err := shard.Open(filepath.Join(dir, "log"), on)
		if err != nil {
			t.Fatalf("Open after the cut: %v; %v", err, sizes(s))
		}
		give(t, w, afterwards)
		if err := w.Close(); err != nil {
			t.Errorf("Close after the cut: %v", err)
		}
		after := map[string][]byte{}
		entries, err := os.ReadDir(dir)
		for _, e := range entries {
			data, readErr := os.ReadFile(filepath.Join(dir, e.Name()))
			after[e.Name()], err = data, errors.Join(err, readErr)
		}
		if err := errors.Join(err, os.RemoveAll(dir)); err != nil {
			t.Fatal(err)
		}
		checkState(t, d, o, after, "opened again", true)
	}
	return len(states)
}

func sizes(s map[string][]byte) (all []string) {
	for _, name := range slices.Sorted(maps.Keys(s)) {
		all = append(all, fmt.Sprintf("%s: %d", name, len(s[name])))
	}
	return all
}

// checkState wants all that is safe, but for what was in files that are removed
// or used again, oldest first; and nothing that was not given.
func checkState(t *testing.T, d *drive, o shard.Options, s map[string][]byte, when string, on bool) {
	t.Helper()
	found := map[[2]int]int{}
	damaged := 0
	for name, data := range s {
		if o.File.Framed {
			readFramed(t, name, data, found)
		} else {
			damaged += readLines(data, found)
		}
	}
	for g := range goroutines {
		first := 0
		if o.File.Keep > 0 {
			for first < d.safe[g] && found[[2]int{g, first}] == 0 {
				first++
			}
			if d.safe[g] > 0 && first >= d.safe[g] {
				t.Errorf("%s: goroutine %d has nothing left of %d that are safe", when, g, d.safe[g])
			}
		}
		for i := first; i < d.safe[g]; i++ {
			if found[[2]int{g, i}] == 0 {
				t.Errorf("%s: record %d of goroutine %d is lost, %d are safe, %d damaged; %v", when, i, g, d.safe[g], damaged, sizes(s))
				return
			}
		}
		for i := afterwards; on && i < afterwards+perRound; i++ {
			if found[[2]int{g, i}] != 1 {
				t.Errorf("%s: record %d of goroutine %d, written after the cut, is there %d times", when, i-afterwards, g, found[[2]int{g, i}])
			}
		}
	}
	for key, n := range found {
		if n > 1 {
			t.Errorf("%s: record %v is there %d times", when, key, n)
		}
	}
	if damaged > 0 && !d.dirty() {
		t.Errorf("%s: %d damaged lines where all is safe", when, damaged)
	}
}

// parse returns which record text is. It reports false for what was not given.
func parse(text []byte) (key [2]int, ok bool) {
	if _, err := fmt.Sscanf(string(text[:min(len(text), 30)]), "%d %d ", &key[0], &key[1]); err != nil {
		return key, false
	}
	return key, bytes.Equal(text, numbered(key[0], key[1]))
}

// readLines notes the whole records, and counts lines that are none.
func readLines(data []byte, found map[[2]int]int) (damaged int) {
	for line := range bytes.Lines(data) {
		text := bytes.TrimRight(line, " \n")
		if len(text) == 0 {
			continue
		}
		if key, ok := parse(text); ok && line[len(line)-1] == '\n' {
			found[key]++
		} else {
			damaged++
		}
	}
	return damaged
}

// readFramed notes the records; what is delivered was given.
func readFramed(t *testing.T, name string, data []byte, found map[[2]int]int) {
	t.Helper()
	r, err := framed.NewReader(bytes.NewReader(data), int64(len(data)), framed.Options{})
	if errors.Is(err, framed.ErrNotSegment) {
		return // its header never came
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for {
		rec, err := r.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		key, ok := parse(rec.Data)
		if !ok {
			t.Errorf("%s delivers %.60q, which was not given", name, rec.Data)
		}
		found[key]++
	}
}
