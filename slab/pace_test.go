package slab_test

import (
	"bytes"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/slab"
)

// clocked notes when each of its Writes began.
type clocked struct {
	mu    sync.Mutex
	times []time.Time
}

func (c *clocked) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.times = append(c.times, time.Now())
	return len(p), nil
}

// since returns the times of all Writes after begin, as durations from there.
func (c *clocked) since(begin time.Time) (after []time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.times {
		if !t.Before(begin) {
			after = append(after, t.Sub(begin))
		}
	}
	return after
}

// TestWriterLooksByItself: while slabs fill at a steady pace a sealed one waits
// for the Writer to look, a part of the time that a slab takes, and
// two are taken at once. With few slabs, with slabs that come fast, and after a
// pause one is taken at once.
func TestWriterLooksByItself(t *testing.T) {
	slabful := append(bytes.Repeat([]byte("x"), 255), '\n')
	for _, tt := range []struct {
		name  string
		count int
		every time.Duration // a slab
		looks bool
	}{
		{"steady", 8, 20 * time.Millisecond, true},
		{"few slabs", 7, 20 * time.Millisecond, false},
		{"fast", 8, time.Millisecond, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dst := new(clocked)
				w, err := slab.New(dst, slab.Options{SlabSize: 256, SlabCount: tt.count, FlushInterval: time.Hour})
				if err != nil {
					t.Fatal(err)
				}
				defer w.Close()
				// A slab is sealed when the next line comes, so one is always open.
				steady := func() {
					for range 10 {
						time.Sleep(tt.every)
						must(t, w, slabful)
					}
					// What was sealed is written, and no look is due just then.
					time.Sleep(tt.every/2 + 7*time.Microsecond)
				}
				steady()
				begin := time.Now()
				must(t, w, slabful)
				synctest.Wait()
				if took := dst.since(begin); (len(took) == 0) != tt.looks {
					t.Errorf("a sealed slab was written after %v; that it waits is %t", took, tt.looks)
				}
				time.Sleep(tt.every / 2)
				if took := dst.since(begin); len(took) != 1 || took[0] > tt.every/2 {
					t.Errorf("it was written after %v, want one write within %v", took, tt.every/2)
				}

				steady()
				begin = time.Now()
				must(t, w, slabful)
				must(t, w, slabful)
				synctest.Wait()
				if took := dst.since(begin); len(took) != 2 || took[1] != 0 {
					t.Errorf("two sealed slabs were written after %v, want at once", took)
				}

				time.Sleep(2*time.Hour + time.Second)
				begin = time.Now()
				must(t, w, slabful)
				must(t, w, slabful)
				synctest.Wait()
				if took := dst.since(begin); len(took) != 1 || took[0] != 0 {
					t.Errorf("after a pause a sealed slab was written after %v, want at once", took)
				}
			})
		})
	}
}

// TestLookingLosesNothing: lines of a low level that come steadily, and then all
// at once, are not dropped because the Writer looks away.
func TestLookingLosesNothing(t *testing.T) {
	p := append(bytes.Repeat([]byte("x"), 63), '\n')
	for _, count := range []int{8, 9, 16} {
		synctest.Test(t, func(t *testing.T) {
			w, err := slab.New(new(clocked), slab.Options{SlabSize: 256, SlabCount: count, FlushInterval: time.Hour, Full: slab.Drop})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			put := func(lines int, every time.Duration) {
				for range lines {
					time.Sleep(every)
					if n, err := w.WriteLevel(slog.LevelInfo, p); n != len(p) || err != nil {
						t.Fatalf("Write = %d, %v", n, err)
					}
				}
			}
			for range 20 {
				put(40, 5*time.Millisecond)
				put(64, time.Microsecond)
			}
			if s := w.Stats(); s.Dropped.Total() != 0 {
				t.Errorf("of %d slabs: %+v", count, s.Dropped)
			}
		})
	}
}

func must(t *testing.T, w *slab.Writer, p []byte) {
	t.Helper()
	if n, err := w.Write(p); n != len(p) || err != nil {
		t.Fatalf("Write = %d, %v", n, err)
	}
}
