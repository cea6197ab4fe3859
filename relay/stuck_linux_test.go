package relay

import (
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/testkit"
)

// Clients that never read, while their upstreams send, leave at least half of its
// throughput to one that reads.
func TestManyStuck(t *testing.T) {
	testkit.NoRace(t, "it compares throughput")
	noLeak(t)
	n := int(size(200, 1000))
	upstream := startProcess(t, "flood")
	w := &way{t: t}
	w.start(road{listen: "tcp://127.0.0.1:0", options: Options{To: []string{"tcp://" + upstream.said}}})
	alone := w.throughput()
	before := tcpMemory(t)
	clients := startProcess(t, "stuck", "RELAY_TEST_ADDR="+w.listener.Addr().String(), "RELAY_TEST_COUNT="+strconv.Itoa(n))
	if clients.said != "ready" {
		t.Fatal(clients.said)
	}
	eventually(t, func() bool { return w.relay.Stats().Waiting == n }, func() string {
		return fmt.Sprintf("%d directions of %d wait", w.relay.Stats().Waiting, n)
	})
	held := tcpMemory(t) - before
	beside := 0
	for range 3 { // others use the machine too
		if beside = max(beside, w.throughput()); beside >= alone/2 {
			break
		}
	}
	t.Logf("%d MB/s alone, %d beside %d clients that never read, for which the system holds %d MiB", alone>>20, beside>>20, n, held>>20)
	if beside < alone/2 {
		t.Errorf("%d MB/s beside clients that never read, %d alone", beside>>20, alone>>20)
	}
	upstream.end()
	clients.end()
	eventually(t, func() bool { return w.relay.Stats().Active == 0 }, func() string { return "connections are left" })
}

// throughput is how many bytes a second a client gets at best over a part of a
// second: others use the machine too.
func (w *way) throughput() (best int) {
	w.t.Helper()
	c, err := net.Dial("tcp", w.listener.Addr().String())
	if err != nil {
		w.t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	buf := make([]byte, 256<<10)
	for range 10 {
		begin, got := time.Now(), 0
		for time.Since(begin) < 100*time.Millisecond {
			n, err := c.Read(buf)
			if err != nil && err != io.EOF {
				w.t.Fatal(err)
			}
			got += n
		}
		best = max(best, int(float64(got)/time.Since(begin).Seconds()))
	}
	return best
}

// tcpMemory is what the system holds for TCP, in bytes.
func tcpMemory(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/net/sockstat")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "TCP:")
	_, rest, _ = strings.Cut(rest, " mem ")
	var pages int
	if _, err := fmt.Sscan(rest, &pages); err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}
