package powercut

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/internal/direct"
	"github.com/rollway/rollway/internal/testkit"
)

var seedFlag = flag.Uint64("seed", 0, "replay the random choice with this seed")

const goroutines = 3

// A load is rounds of writes; each has a buffer of so many lines of each
// goroutine.
type load struct {
	rounds   int
	perRound [goroutines]int
}

var (
	small = load{24, [...]int{6, 6, 6}}
	large = load{3, [...]int{6, 7000, 6}} // 8 MiB, which Direct writes where they are on FUSE
)

// The power fails at any moment: what a Sync, or a write with SyncEachWrite, has
// said to be safe is there, nothing that was not given is read as a line, and the
// next Open goes on after what is left.
func TestPowerCut(t *testing.T) {
	testkit.NoRace(t, "it takes five times as long, and looks at the disk only")
	seed := rand.Uint64()
	if *seedFlag != 0 {
		seed = *seedFlag
	}
	for _, c := range []struct {
		name string
		load load
		o    file.Options
	}{
		{"Buffered", small, file.Options{}},
		{"Buffered, fsync after each write", small, file.Options{Sync: file.SyncEachWrite, MaxSize: 150 << 10}},
		{"Buffered, rotated", small, file.Options{MaxSize: 150 << 10, Sync: file.SyncInterval, SyncEvery: time.Millisecond}},
		{"Direct", small, file.Options{Mode: file.Direct, MaxSize: 150 << 10}},
		{"Direct, fsync after each write", small, file.Options{Mode: file.Direct, Sync: file.SyncEachWrite}},
		{"Direct, in place", large, file.Options{Mode: file.Direct}},
		{"Direct, in place, rotated", large, file.Options{Mode: file.Direct, Sync: file.SyncEachWrite, MaxSize: 12 << 20}},
		{"Direct, in place, by interval", large, file.Options{Mode: file.Direct, Sync: file.SyncInterval, SyncEvery: time.Millisecond, MaxSize: 12 << 20}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.o.CloseTimeout = time.Minute
			replay(t, seed, c.load, c.o, recordOps(t, c.load, c.o))
		})
	}
}

// replay has the power fail at each fsync of ops and between, and a File with o go
// on.
func replay(t *testing.T, seed uint64, l load, o file.Options, ops []op) {
	t.Helper()
	rnd, d, states, syncs := rand.New(rand.NewPCG(seed, 1)), newDrive(), 0, 0
	for i, op := range ops {
		atSync := op.kind == opSync || op.kind == opSyncFolder
		if atSync && d.dirty() { // the moment before it has an effect
			states += try(t, d, l, o, d.least(), d.most(), d.some(rnd), d.some(rnd))
			syncs++
		}
		d.apply(op)
		if !atSync && op.kind != opTell && i%7 == 0 {
			states += try(t, d, l, o, d.some(rnd))
		}
		if t.Failed() {
			t.Fatalf("at operation %d of %d, kind %d; repeat with -args -seed %d", i, len(ops), op.kind, seed)
		}
	}
	try(t, d, l, o, d.least(), d.most())
	t.Logf("%d operations, %d syncs, %d states", len(ops), syncs, states)
	if d.safe[0] < l.rounds*l.perRound[0] || states < 10 || syncs < l.rounds/3 {
		t.Errorf("%d lines safe: this tests little", d.safe[0])
	}
}

// recordOps has a File write, and returns what that did to the disk.
func recordOps(t *testing.T, l load, o file.Options) []op {
	t.Helper()
	r, dir, end := mount(t)
	defer end()
	o.OnError = func(err error) { t.Errorf("OnError: %v", err) }
	f, err := file.Open(filepath.Join(dir, "log"), o)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() // a test that fails would leave the mount otherwise
	set, err := direct.NewMemorySet(goroutines, slices.Max(l.perRound[:])*2600)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Free()
	for round := range l.rounds {
		var bufs [][]byte
		lines := 0
		for g := range goroutines {
			b := set.Bytes(g)[:0]
			for i := round * l.perRound[g]; i < (round+1)*l.perRound[g]; i++ {
				b = append(append(b, numbered(g, i)...), '\n')
			}
			lines += l.perRound[g]
			bufs = append(bufs, b)
		}
		if _, err := f.WriteBuffers(bufs, uint64(lines)); err != nil {
			t.Fatal(err)
		}
		if o.Sync != file.SyncEachWrite {
			if round%3 > 0 { // several writes deep
				continue
			}
			if err := f.Sync(); err != nil {
				t.Fatal(err)
			}
		}
		r.tellAll(l, round+1)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
	r.tellAll(l, l.rounds)
	if s := f.Stats(); s.Mode != o.Mode || (l == large) != (s.PaddedBytes > 0) {
		t.Errorf("Stats %+v: this tests little", s)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ops
}

// numbered is a line, without its end, that is all determined by its goroutine and
// number.
func numbered(g, i int) []byte {
	b := fmt.Appendf(nil, "%d %d ", g, i)
	for k := range (g*7919 + i*104729) % 2500 {
		b = append(b, 'a'+byte((k+g+i)%26))
	}
	return append(b, '.')
}

// afterwards is the number of the first line that is written after a cut.
const afterwards = 1_000_000

// inMemory is a folder in memory, if there is one.
var inMemory = func() string {
	if _, err := os.Stat("/dev/shm"); err != nil {
		return ""
	}
	return "/dev/shm"
}()

// try makes each state a folder, reads it, opens it, writes on, and reads again.
func try(t *testing.T, d *drive, l load, o file.Options, states ...map[string][]byte) int {
	t.Helper()
	for _, s := range states {
		checkState(t, d, s, "as it is", false)
		dir, err := os.MkdirTemp(inMemory, "powercut")
		if err != nil {
			t.Fatal(err)
		}
		for name, data := range s {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		on := o
		on.Sync = file.SyncNever
		f, err := file.Open(filepath.Join(dir, "log"), on)
		if err != nil {
			t.Fatalf("Open after the cut: %v; %v", err, sizes(s))
		}
		for g := range goroutines {
			for i := range small.perRound[g] {
				if _, err := f.Write(append(numbered(g, afterwards+i), '\n')); err != nil {
					t.Error(err)
				}
			}
		}
		if err := f.Close(); err != nil {
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
		checkState(t, d, after, "opened again", true)
	}
	return len(states)
}

func sizes(s map[string][]byte) (all []string) {
	for _, name := range slices.Sorted(maps.Keys(s)) {
		all = append(all, fmt.Sprintf("%s: %d", name, len(s[name])))
	}
	return all
}

// checkState wants all that is safe, and nothing that was not given.
func checkState(t *testing.T, d *drive, s map[string][]byte, when string, on bool) {
	t.Helper()
	found := map[[2]int]int{}
	damaged := 0
	for _, data := range s {
		damaged += readLines(data, found)
	}
	for g := range goroutines {
		for i := range d.safe[g] {
			if found[[2]int{g, i}] == 0 {
				t.Errorf("%s: line %d of goroutine %d is lost, %d are safe, %d damaged; %v", when, i, g, d.safe[g], damaged, sizes(s))
				return
			}
		}
		for i := afterwards; on && i < afterwards+small.perRound[g]; i++ {
			if found[[2]int{g, i}] != 1 {
				t.Errorf("%s: line %d of goroutine %d, written after the cut, is there %d times", when, i-afterwards, g, found[[2]int{g, i}])
			}
		}
	}
	for key, n := range found {
		if n > 1 {
			t.Errorf("%s: line %v is there %d times", when, key, n)
		}
	}
	if damaged > 0 && !d.dirty() {
		t.Errorf("%s: %d damaged lines where all is safe", when, damaged)
	}
}

// parse returns which line text is. It reports false for what was not given.
func parse(text []byte) (key [2]int, ok bool) {
	if _, err := fmt.Sscanf(string(text[:min(len(text), 30)]), "%d %d ", &key[0], &key[1]); err != nil {
		return key, false
	}
	return key, bytes.Equal(text, numbered(key[0], key[1]))
}

// readLines notes the whole lines, and counts lines that are none.
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
