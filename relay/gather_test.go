package relay

import (
	"crypto/tls"
	"io"
	"strings"
	"testing"
	"time"
)

// Small pieces in quick succession gather, until somebody answers or they come
// no more.
func TestGathering(t *testing.T) {
	noLeak(t)
	r, err := New(Options{To: []string{"tcp://127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c := r.join(side{}, side{}, time.Now())
	p := &c.up
	p.gathering.low = true  // no socket to set it at
	r.sleeping.Add(1 << 20) // nobody sleeps
	begin := func() {
		t.Helper()
		eventually(t, func() bool {
			for range 2 * gatherRounds {
				p.gather(200)
			}
			return p.gathering.on
		}, func() string { return "small pieces do not gather" })
	}
	begin()
	for range gatherRounds {
		p.gathering.waited = true
		if p.gather(200); !p.gathering.on {
			t.Fatal("a piece that was waited for ends the gathering")
		}
	}
	p.gather(gatherBelow)
	if !p.gathering.on {
		t.Error("a large piece ends the gathering")
	}
	c.down.bytes.Add(1)
	p.gathering.low = false
	if p.gather(200); p.gathering.on {
		t.Error("an answer does not end the gathering")
	}
	begin()
	for range gatherRounds + 1 {
		p.gathering.waited = true
		p.gather(200)
	}
	if p.gathering.on {
		t.Error("pieces that are all waited for gather")
	}
}

// What has gathered at the end of a stretch arrives, though nothing follows it.
func TestEndOfGathering(t *testing.T) {
	a := newAuthority(t)
	for _, rd := range []road{
		{name: "plain", listen: "tcp://127.0.0.1:0"},
		{name: "TLS", listen: "tls://127.0.0.1:0", options: Options{ServerTLS: a.config("127.0.0.1")}, clientTLS: &tls.Config{RootCAs: a.pool}},
	} {
		t.Run(rd.name, func(t *testing.T) {
			w := newWay(t, rd)
			client, upstream := w.connect()
			line := strings.Repeat("x", 200)
			for stretch := range 10 {
				n := 500 << (stretch % 3)
				read := make(chan error, 1)
				go func() {
					_, err := io.CopyN(io.Discard, upstream, int64(n*len(line)))
					read <- err
				}()
				for range n {
					send(t, client, line)
				}
				if err := <-read; err != nil {
					t.Fatal(err)
				}
			}
			client.Close()
			upstream.Close()
		})
	}
}
