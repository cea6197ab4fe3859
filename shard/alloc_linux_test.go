//go:build !race

package shard_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/internal/mallocs"
	"github.com/rollway/rollway/shard"
)

// What a Writer does again and again by itself allocates nothing: flushes of any
// size, a look at the path every second, fsync. The time is virtual, the files are
// real.
func TestFlushDoesNotAllocate(t *testing.T) {
	for _, kind := range kinds {
		for _, policy := range []shard.SyncPolicy{shard.SyncNever, shard.SyncInterval, shard.SyncEach} {
			kind.Sync = policy
			t.Run(fmt.Sprint(nameOf(kind), policy), func(t *testing.T) {
				paced(t, kind, func(w *shard.Writer, flush func(size int)) {
					before, passes := w.Stats(), uint64(0)
					n := mallocs.Of(func() {
						passes++
						for i := range 100 {
							if i%10 == 0 {
								flush(12_000) // written where they are
							} else {
								flush(300)
							}
						}
					})
					if n > 2 { // of the runtime's own
						t.Errorf("%d allocations in 10,000 records and 100 flushes", n)
					}
					s := w.Stats()
					if flushes := s.Flushes - before.Flushes; flushes < 100*passes {
						t.Errorf("%d flushes in %d passes", flushes, passes)
					}
					if syncs := s.File.Syncs - before.File.Syncs; policy != shard.SyncNever && syncs < 100*passes {
						t.Errorf("%d calls of fsync in %d passes", syncs, passes)
					}
				})
			})
		}
	}
}

// A rotation allocates for the new file, and what the old one is done with: about
// 55 times, framed with files that are used again 110 times, a few more in a
// folder that lies deeper.
func TestAllocationsOfARotation(t *testing.T) {
	const each, most = 10, 200
	for _, kind := range kinds {
		kind.MaxSize = 1<<20 + slack
		if kind.Framed {
			kind.Keep = 2
		}
		t.Run(nameOf(kind), func(t *testing.T) {
			paced(t, kind, func(w *shard.Writer, flush func(size int)) {
				before, passes := w.Stats().File.Rotations, uint64(0)
				n := mallocs.Of(func() {
					passes++
					for range each {
						flush(9_000)
					}
				})
				if rotations := w.Stats().File.Rotations - before; rotations != each*passes && rotations != each*passes-1 {
					t.Errorf("%d rotations in %d passes", rotations, passes)
				}
				t.Logf("%d allocations a rotation", n/each)
				if n > each*most {
					t.Errorf("%d allocations in %d rotations, want no more than %d each", n, each, most)
				}
			})
		})
	}
}

// slack is what a buffer takes in a file beyond its length at most, in bytes, and
// the header of a framed one.
const slack = 16 << 10

// paced gives run a Writer, and flush, which logs 100 records of size bytes and
// returns when they are written and what follows a flush is done.
func paced(t *testing.T, kind shard.FileOptions, run func(w *shard.Writer, flush func(size int))) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o := shard.Options{BufferSize: 4 << 20, Shards: 2, FlushInterval: time.Second, File: kind}
		if kind.MaxSize > 0 {
			o.BufferSize = 2 << 20
		}
		w := openFile(t, filepath.Join(t.TempDir(), "log"), o)
		record := bytes.Repeat([]byte("r"), 12_000)
		run(w, func(size int) {
			for range 100 {
				if err := w.LogBytes(record[:size]); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(3 * time.Second) // past the next look, and the next fsync
			synctest.Wait()
		})
		if s := w.Stats(); s.Dropped.Total() > 0 || s.Pending > 0 {
			t.Errorf("Stats %+v", s)
		}
	})
}
