package relay

import (
	"io"
	"testing"
	"time"
)

// Who takes a little now and then is not reset.
func TestSlowIsNotStalled(t *testing.T) {
	w := newWay(t, road{listen: "tcp://127.0.0.1:0", options: Options{StallTimeout: -1}})
	client, upstream := w.connect()
	wr := newWriter(upstream)
	wr.awaitStall(t)
	c := w.relay.snapshot()[0]
	now := time.Now()
	look := func(after time.Duration) {
		t.Helper()
		now = now.Add(after)
		w.relay.endStalled(now, time.Minute)
	}
	for range 5 {
		look(30 * time.Second)
		taken := c.down.wait.stall.taken
		// The system takes more only once it has room for a good part.
		eventually(t, func() bool {
			if _, err := io.CopyN(io.Discard, client, 64<<10); err != nil {
				t.Fatal(err)
			}
			return c.down.bytes.Load()-uint64(c.down.dst.unsent()) != taken
		}, func() string { return "nothing more is taken" })
		look(31 * time.Second)
		if c.reason.Load() != 0 {
			t.Fatalf("the connection ended: %v", Reason(c.reason.Load()))
		}
	}
	look(61 * time.Second)
	look(61 * time.Second)
	w.closed(ReasonClientStalled, 1)
	wr.wait()
}
