package relay

import (
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/rollway/rollway/internal/testkit"
)

// open is how many connections count for MaxConns.
func open(r *Relay) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.conns) + r.setups
}

// MaxConns is not exceeded by connections that several listeners take at the
// same moment.
func TestMaxConnsOverListeners(t *testing.T) {
	const most, listeners = 3, 8
	for range 50 {
		w := newWay(t, road{listen: "tcp://127.0.0.1:0", options: Options{MaxConns: most}})
		var clients []net.Conn
		var at sync.WaitGroup
		start := make(chan struct{})
		for range listeners {
			client, taken := net.Pipe()
			clients = append(clients, client)
			at.Go(func() {
				<-start
				w.relay.accepted(taken, false)
			})
		}
		close(start)
		at.Wait()
		w.closed(ReasonLimit, listeners-most)
		if n := open(w.relay); n != most {
			t.Errorf("%d connections are open, want %d", n, most)
		}
		for _, c := range clients {
			c.Close()
		}
		w.settled()
		w.served <- nil
	}
}

// The defaults fit under any limit on descriptors, and 9,900 connections under
// 20,000.
func TestDefaultsFitDescriptors(t *testing.T) {
	for limit := 80; limit < 1<<21; limit += 1 + limit/20 {
		o := Options{Log: slog.New(slog.DiscardHandler)}
		o.fitDescriptors(limit)
		if need := 2*o.MaxConns + 2*o.maxPipes + spareDescriptors; need > limit || o.MaxConns < 1 || o.maxPipes < 1 {
			t.Errorf("limit %d: %d connections and %d pipes need %d descriptors", limit, o.MaxConns, o.maxPipes, need)
		}
	}
	o := Options{}
	if o.fitDescriptors(20_000); o.MaxConns < 9900 {
		t.Errorf("%d connections and %d pipes under 20,000 descriptors", o.MaxConns, o.maxPipes)
	}
	o = Options{}
	if o.fitDescriptors(-1); o.MaxConns != -1 || o.maxPipes != 128 {
		t.Errorf("%d connections and %d pipes without a limit", o.MaxConns, o.maxPipes)
	}
	o = Options{MaxConns: 5, maxPipes: 6}
	if o.fitDescriptors(1000); o.MaxConns != 5 || o.maxPipes != 6 {
		t.Errorf("%+v is not what was asked for", o)
	}
}

func TestLowDescriptorLimitIsSaid(t *testing.T) {
	for _, c := range []struct {
		limit int
		o     Options
		want  string // "": nothing
	}{
		{1024, Options{}, "allows few connections"},
		{1024, Options{MaxConns: 100}, ""},
		{1024, Options{MaxConns: -1}, ""},
		{20_000, Options{}, ""},
		{20_000, Options{MaxConns: 9900}, ""},
		{20_000, Options{MaxConns: 10_000}, "allowed=9902 descriptors=20000 descriptors_needed=20196"},
		{-1, Options{MaxConns: 1 << 20}, ""},
	} {
		var log testkit.Buffer
		c.o.Log = slog.New(slog.NewTextHandler(&log, nil))
		c.o.fitDescriptors(c.limit)
		if got := log.String(); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("limit %d, MaxConns %d: the log has %q, want %q", c.limit, c.o.MaxConns, got, c.want)
		}
	}
}
