package aside

import (
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
)

// TestQueue: every function runs once, in order, whatever the ones before it do;
// while one hangs nobody waits, and only so many are kept.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q Queue
		<-q.Idle()
		var ran []int
		add := func(i int, and func()) bool {
			return q.Do(func() {
				ran = append(ran, i)
				and()
			})
		}
		hang := make(chan struct{})
		add(0, func() { panic("careless") })
		add(1, runtime.Goexit)
		add(2, func() { <-hang })
		synctest.Wait()
		idle := q.Idle()
		for i := range maxWaiting {
			if !add(3+i, func() {}) {
				t.Fatalf("%d functions wait, and another finds no room", i)
			}
		}
		if add(-1, func() {}) {
			t.Errorf("%d functions wait, and another is taken", maxWaiting)
		}
		select {
		case <-idle:
			t.Error("idle while a function hangs")
		default:
		}
		close(hang)
		<-idle
		for i := range 3 + maxWaiting {
			if !slices.Contains(ran, i) || ran[i] != i {
				t.Fatalf("ran %v", ran)
			}
		}
		if !add(1000, func() {}) {
			t.Error("nothing waits, and a function finds no room")
		}
		<-q.Idle()
		if n := len(ran); n != 3+maxWaiting+1 {
			t.Errorf("%d functions ran, want %d", n, 3+maxWaiting+1)
		}
	})
}
