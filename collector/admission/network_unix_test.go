//go:build unix

package admission

import (
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Beside work that takes all processors, who is sent something goes on after some slices: while
// more work waits, and while there is as much as processors, in turns that are short.
func TestRequestsBesideWork(t *testing.T) {
	for name, part := range map[string]struct {
		workers int
		turn    time.Duration
	}{"more": {2, 20 * slice}, "short": {1, slice / 4}} {
		t.Run(name, func(t *testing.T) {
			c := New()
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			p := c.Named("p", 1)
			var worked atomic.Int64 // pieces of work, of a twentieth of a slice each
			var sent atomic.Int64   // what that was, and 1; 0: nothing is on its way
			var stop atomic.Bool
			var all sync.WaitGroup
			defer all.Wait()
			defer stop.Store(true)
			for i := range part.workers * c.CPU.Turns() {
				all.Go(func() {
					if i == 0 {
						defer w.Close()
					}
					var turn Turn
					turn.Use(c.CPU, p)
					turn.SetLow(false)
					for !stop.Load() {
						turn.Begin()
						for begin := time.Now(); time.Since(begin) < part.turn && !stop.Load(); {
							for part := time.Now(); time.Since(part) < slice/20; {
							}
							if n := worked.Add(1); i == 0 && sent.CompareAndSwap(0, n+1) {
								w.Write([]byte{0})
							}
							turn.Yield()
						}
						turn.End()
					}
				})
			}
			var turn Turn
			turn.Use(c.CPU, p)
			var took []int64 // slices of all processors: the machine may have other work
			for b := make([]byte, 1); len(took) < 99; {
				if _, err := r.Read(b); err != nil {
					t.Fatal(err)
				}
				if c.CPU.poll.active.Load() { // a second later
					took = append(took, (worked.Load()-sent.Load())/20/int64(c.CPU.Turns()))
				}
				turn.Begin()
				turn.End()
				sent.Store(0)
			}
			slices.Sort(took)
			if median := took[len(took)/2]; median > 10 {
				t.Errorf("half took %d slices or more", median)
			}
			t.Log(took[0], took[len(took)/2], took[len(took)*9/10])
		})
	}
}
