package relay

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// A client that takes what waits for it little by little, after its upstream has
// reset, does not hold up Shutdown beyond its end.
func TestCutOfTricklingPeer(t *testing.T) {
	const total = 256 << 10
	w := newWay(t, road{listen: "tcp://127.0.0.1:0", options: Options{grace: 2 * time.Second}})
	client, upstream := w.connect()
	if err := client.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	if _, err := upstream.Write(make([]byte, total)); err != nil {
		t.Fatal(err)
	}
	w.moved(0, total)
	reset(t, upstream)
	c := w.relay.snapshot()[0]
	eventually(t, func() bool { return Reason(c.reason.Load()) == ReasonUpstreamReset }, func() string { return "the reset is not noticed" })

	var trickle atomic.Bool
	trickle.Store(true)
	ended := make(chan error, 1)
	taken := 0
	go func() {
		b := make([]byte, 256)
		for {
			n, err := client.Read(b)
			if taken += n; err != nil {
				ended <- err
				return
			}
			if trickle.Load() {
				time.Sleep(20 * time.Millisecond)
			}
		}
	}()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := shutdown(t, w.relay, ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown returns %v", err)
	}
	if s := w.relay.Stats(); s.Active != 0 || s.Closed[ReasonUpstreamReset] != 1 {
		t.Errorf("after Shutdown: %d connections, closed %v", s.Active, s.Closed)
	}
	trickle.Store(false)
	if err := <-ended; !isReset(err) || taken == total {
		t.Errorf("the client took %d bytes of %d, and has %v", taken, total, err)
	}
}
