package powercut

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/direct"
	"github.com/rollway/rollway/internal/segment"
	"github.com/rollway/rollway/shard"
)

// TestPowerCut for buffers that are written where they are, as large ones are: here
// those of 8 KiB and more, in calls of two blocks or of all.
func TestPowerCutInPlace(t *testing.T) {
	seed := chosenSeed()
	for name, o := range map[string]segment.Options{
		"fsync by Sync":             {},
		"by Sync, rotated":          {MaxSize: 150 << 10},
		"after each write":          {Sync: segment.Each, Chunk: 8 << 10},
		"after each write, rotated": {Sync: segment.Each, MaxSize: 150 << 10},
		"by interval":               {Sync: segment.Interval, SyncEvery: time.Millisecond, Chunk: 8 << 10, MaxSize: 150 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			o.Mode, o.InPlace, o.StallAfter, o.CheckEvery, o.Perm = direct.Direct, 8<<10, time.Minute, -1, 0o600
			ops := recordInPlace(t, o)
			replay(t, seed, options(shard.FileOptions{Mode: shard.Direct, MaxSize: o.MaxSize, Sync: shard.SyncPolicy(o.Sync)}), ops)
		})
	}
}

// recordInPlace is recordOps for a Log, of which each round is one write: a buffer
// of each goroutine.
func recordInPlace(t *testing.T, o segment.Options) []op {
	t.Helper()
	r, dir, end := mount(t)
	defer end()
	o.Notice = func(err error) { t.Errorf("Notice: %v", err) }
	l, err := segment.Open(filepath.Join(dir, "log"), o)
	if err != nil {
		t.Fatal(err)
	}
	closed := false
	defer func() {
		if !closed { // a test that fails would leave the mount otherwise
			l.Close()
		}
	}()
	set, err := direct.NewMemorySet(goroutines, 20<<10)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Free()
	for round := range rounds {
		var bufs [][]byte
		for g := range goroutines {
			b := set.Bytes(g)[:0]
			for i := round * perRound; i < (round+1)*perRound; i++ {
				b = append(append(b, numbered(g, i)...), '\n')
			}
			bufs = append(bufs, b)
		}
		if _, err := l.WriteBuffers(bufs); err != nil {
			t.Fatal(err)
		}
		if o.Sync != segment.Each {
			if round%3 > 0 { // several writes deep
				continue
			}
			if err := l.Sync(); err != nil {
				t.Fatal(err)
			}
		}
		r.tellAll((round + 1) * perRound)
	}
	err = l.Sync()
	closed = true
	if err := errors.Join(err, l.Close()); err != nil {
		t.Fatal(err)
	}
	r.tellAll(rounds * perRound)
	if s := l.Stats(); s.Mode != direct.Direct || s.Padded < 10*direct.Align {
		t.Errorf("%d bytes of white space, %v: this tests little", s.Padded, s.Mode)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ops
}
