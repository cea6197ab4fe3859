//go:build !race

package journal

import (
	"context"
	"runtime"
	"sync"
	"testing"
)

// Append allocates nothing in the steady state, alone, in groups, and synced.
func TestAppendAllocatesNothing(t *testing.T) {
	for _, c := range []struct {
		name     string
		parallel int
		count    int
		synced   bool
	}{
		{"alone", 1, 20_000, false},
		{"parallel", 8, 20_000, false},
		{"parallel synced", 8, 10_000, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if c.synced {
				dir = shmDir(t)
			}
			j := mustOpen(t, dir, Options{})
			b := lines(0, 3)
			b.Synced = c.synced
			run := func() uint64 {
				begin := make(chan struct{})
				var ready, done sync.WaitGroup
				var before, after runtime.MemStats
				for range c.parallel {
					ready.Add(1)
					done.Go(func() {
						ctx, cancel := context.WithCancel(context.Background())
						defer cancel()
						ctx.Done()
						ready.Done()
						<-begin
						for range c.count / c.parallel {
							if _, err := j.Append(ctx, b); err != nil {
								t.Error(err)
								return
							}
						}
					})
				}
				ready.Wait()
				runtime.ReadMemStats(&before)
				close(begin)
				done.Wait()
				runtime.ReadMemStats(&after)
				return after.Mallocs - before.Mallocs
			}
			run() // fills the free list and the buffer
			// The least of ten: the runtime allocates for itself now and then.
			most, least := uint64(c.count/1000), run()
			for tries := 1; tries < 10 && least > most; tries++ {
				least = min(least, run())
			}
			if least > most {
				t.Errorf("%d allocations in %d appends", least, c.count)
			}
		})
	}
}

// A reader allocates per segment, not per frame.
func TestReadAllocatesNothing(t *testing.T) {
	j := mustOpen(t, t.TempDir(), Options{})
	for i := range 3000 {
		mustAppend(t, j, lines(i, 1))
	}
	r := j.NewReader(0)
	defer r.Close()
	if n := testing.AllocsPerRun(2500, func() {
		if _, ok, err := r.TryNext(); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations per frame", n)
	}
}
