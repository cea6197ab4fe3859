package relay

import (
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/testkit"
)

// A TestStall that takes nothing of what waits for it, in the relay or in the socket
// to it, is reset with its peer, and nobody who takes a little.
func TestStall(t *testing.T) {
	a := newAuthority(t)
	for _, rd := range []road{
		{name: "plain", listen: "tcp://127.0.0.1:0"},
		{name: "no pipe left", listen: "tcp://127.0.0.1:0", noPipes: true},
		{name: "TLS", listen: "tls://127.0.0.1:0", options: Options{ServerTLS: a.config("127.0.0.1")}, clientTLS: &tls.Config{RootCAs: a.pool}},
	} {
		for _, size := range []int{1 << 20, 64 << 20} { // some of it the socket has, or all that goes in
			t.Run(fmt.Sprintf("%s, %d MiB", rd.name, size>>20), func(t *testing.T) {
				rd := rd
				if runtime.GOOS != "linux" && size == 1<<20 {
					t.Skip("only Linux tells how much of what a socket took has not left")
				}
				log := new(testkit.Buffer)
				rd.options.StallTimeout, rd.options.Log = time.Second, slog.New(slog.NewTextHandler(log, nil))
				w := newWay(t, rd)
				stuck, stuckUp := w.connect()
				_ = socketOf(stuck).(*net.TCPConn).SetReadBuffer(4 << 10)
				quiet, quietUp := w.connect() // has exchanged something, and waits for nothing
				send(t, quietUp, "hello")
				receive(t, quiet, "hello")
				wrote := make(chan error, 1)
				go func() {
					_, err := stuckUp.Write(make([]byte, size))
					wrote <- err
				}()
				w.closed(ReasonClientStalled, 1)
				if _, err := io.Copy(io.Discard, stuck); !isReset(err) {
					t.Errorf("the client that took nothing has %v, want a reset", err)
				}
				err := <-wrote
				if err == nil { // all of it went into sockets
					_, err = io.Copy(io.Discard, stuckUp)
				}
				if !isReset(err) {
					t.Errorf("the upstream of the client that took nothing has %v, want a reset", err)
				}
				eventually(t, func() bool { return strings.Contains(log.String(), "a client takes nothing") }, log.String)
				send(t, quietUp, "hello again")
				receive(t, quiet, "hello again")
				s := w.relay.Stats()
				if s.Active != 1 || s.Waiting != 0 || w.relay.budget.held.Load() != 0 {
					t.Errorf("%d connections, %d directions that wait, %d bytes granted", s.Active, s.Waiting, w.relay.budget.held.Load())
				}
			})
		}
	}
}

// What a client sent behind its PROXY header waits as all bytes do: it is counted as
// the destination takes it, and so is the direction that waits.
func TestFirstBytesWait(t *testing.T) {
	first := make([]byte, 16<<20) // more than the sockets take
	for name, pair := range map[string]func(t *testing.T) (near, far net.Conn){
		"socket": socketPair,
		"memory": func(*testing.T) (near, far net.Conn) { return net.Pipe() },
	} {
		t.Run(name, func(t *testing.T) {
			noLeak(t)
			r, err := New(Options{To: []string{"tcp://127.0.0.1:1"}})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			clientNear, client := socketPair(t)
			upstreamNear, upstream := pair(t)
			if reason := r.beginSetup(0); reason != 0 {
				t.Fatal(reason)
			}
			c := r.join(newPeer(clientNear), newPeer(upstreamNear), time.Now())
			c.client.first = first
			c.run()
			counts := canWait && c.upstream.plain() // part of a write
			eventually(t, func() bool { s := r.Stats(); return s.Waiting == 1 && (s.BytesUp > 0) == counts }, func() string {
				s := r.Stats()
				return fmt.Sprintf("%d directions wait, %d bytes are counted", s.Waiting, s.BytesUp)
			})
			if n, err := io.CopyN(io.Discard, upstream, int64(len(first))); err != nil {
				t.Fatalf("%d bytes arrive: %v", n, err)
			}
			eventually(t, func() bool { s := r.Stats(); return s.Waiting == 0 && s.BytesUp == uint64(len(first)) }, func() string {
				s := r.Stats()
				return fmt.Sprintf("%d directions wait, %d of %d bytes are counted", s.Waiting, s.BytesUp, len(first))
			})
			client.Close()
			upstream.Close()
			eventually(t, func() bool { return open(r) == 0 }, func() string { return "the connection is left" })
		})
	}
}

// socketPair returns both ends of a TCP connection.
func socketPair(t *testing.T) (near, far net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if far, err = net.Dial("tcp", l.Addr().String()); err == nil {
		near, err = l.Accept()
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []net.Conn{near, far} {
		t.Cleanup(func() { c.Close() })
		_ = c.SetDeadline(time.Now().Add(patience))
	}
	return near, far
}
