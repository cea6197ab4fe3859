package remote_test

import (
	"flag"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

var breaks = flag.Duration("breaks", 20*time.Millisecond, "how long TestBreaksLeaveNothing goes on with each scheme")

// However often a peer goes and comes back, a Writer has no more descriptors and
// goroutines than before, and its lines arrive or stay with the caller. With
// -breaks=1h this is a test of hours.
func TestBreaksLeaveNothing(t *testing.T) {
	// A collection of garbage closes the descriptors that were forgotten.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(256 << 20))
	for name, start := range anyPeers {
		// After so many rounds another Writer follows, as the peers keep what they get.
		end := time.Now().Add(*breaks)
		for again := true; again; {
			again = false // also where -run leaves it out
			t.Run(name, func(t *testing.T) {
				breakOften(t, start(t), end, 2000)
				again = time.Now().Before(end)
			})
		}
	}
}

func breakOften(t *testing.T, peer *anyPeer, end time.Time, most int) {
	const kept = "lost or kept\n"
	o := peer.options
	o.OnError = func(error) {}
	w := open(t, peer.url, o)
	sent, rounds := 0, 0
	round := func() {
		peer.up()
		for at := 0; ; { // a Write may meet the end of the life before
			p := numbered(sent, sent+10)[at:]
			n, err := w.Write([]byte(p))
			if at += n; err == nil {
				break
			}
		}
		sent += 10
		if err := w.Sync(); err != nil && !peer.deaf {
			t.Errorf("Sync = %v", err)
		}
		peer.down()
		if n, _ := w.Write([]byte(kept)); n > 0 {
			w.Sync() // sent to nobody, and told
		}
		rounds++
	}
	round()
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	round()
	fds, goroutines := descriptors(), runtime.NumGoroutine()
	for rounds < 4 || rounds < most && time.Now().Before(end) {
		round()
	}
	eventually(t, "descriptors and goroutines are as few as before", func() bool {
		return descriptors() <= fds && runtime.NumGoroutine() <= goroutines
	})
	runtime.GC()
	runtime.ReadMemStats(&after)
	t.Logf("%d rounds, %d descriptors, %d goroutines, heap %d to %d KiB", rounds, fds, goroutines, before.HeapAlloc>>10, after.HeapAlloc>>10)
	if got := strings.ReplaceAll(string(peer.lines()), kept, ""); got != numbered(0, sent) && !peer.deaf {
		t.Errorf("the peer has %d bytes, want %d lines once and in order", len(got), sent)
	}
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 1<<20+int64(rounds)<<12 { // what the peers keep
		t.Errorf("%d rounds have taken %d KiB of memory", rounds, grown>>10)
	}
	ledger(w).CheckSettled(t, int(w.Stats().Accepted), int(w.Stats().Accepted))
}

// descriptors is how many this process has, 0 where that is not told.
func descriptors() int {
	list, _ := os.ReadDir("/proc/self/fd")
	return len(list)
}
