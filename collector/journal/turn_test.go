package journal

import (
	"runtime"
	"testing"
)

// Turn returns once the write and the fsync that were under way have ended, and not before.
func TestTurn(t *testing.T) {
	j := mustOpen(t, t.TempDir(), Options{})
	mustAppend(t, j, lines(0, 1))
	j.Turn() // nothing is under way
	for what, hang := range map[string]struct {
		queue      *queue
		begin, end func()
	}{
		"a write":  {&j.queue, j.acquire, j.release},
		"an fsync": {&j.syncer.queue, func() { j.syncer.busy = true }, func() { j.syncer.busy = false; j.syncer.queue.pop().ready <- struct{}{} }},
	} {
		hang.begin()
		turned := make(chan struct{})
		go func() { j.Turn(); close(turned) }()
		for waits := false; !waits; runtime.Gosched() {
			j.mu.Lock()
			waits = hang.queue.head != nil
			j.mu.Unlock()
		}
		select {
		case <-turned:
			t.Errorf("%s is under way, and the turn is over", what)
		default:
		}
		hang.end()
		<-turned
	}
}
