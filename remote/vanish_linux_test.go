package remote_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rollway/rollway/remote"
)

// vanish lets nothing get to c any more, as if its host had lost its power: what
// is sent to it is not even acknowledged.
func vanish(t *testing.T, c any) {
	t.Helper()
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	nothing := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: 0}}
	raw.Control(func(fd uintptr) {
		if err := unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &nothing[0]}); err != nil {
			t.Error(err)
		}
	})
}

// A host that vanishes without a word, or a firewall that forgets an idle
// connection: lines go on to be written for as long as a peer may be silent, and
// not until the system stops to send them again, a quarter of an hour later. The
// next lines come by a new connection, and the loss is told.
func TestPeerVanishes(t *testing.T) {
	t.Parallel()
	transports(t, func(t *testing.T, scheme string, serverTLS *tls.Config, o remote.Options) {
		conns := make(chan net.Conn, 10)
		peer := startTCPPeer(t, "127.0.0.1:0", serverTLS, func(c net.Conn, keep io.Writer) {
			conns <- c
			io.Copy(keep, c)
		})
		var told told
		o.OnError = told.note
		w := open(t, scheme+"://"+peer.Addr().String(), o)
		w.SetSilence(300 * time.Millisecond)
		write(t, w, numbered(0, 1))
		eventually(t, "the line is there", func() bool { return string(peer.bytes()) == numbered(0, 1) })
		c := <-conns
		if t, ok := c.(*tls.Conn); ok {
			c = t.NetConn()
		}
		vanish(t, c)
		write(t, w, numbered(1, 4))
		if err := hurried(w); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "has not read") {
			t.Errorf("Sync of lines that nobody acknowledges = %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := w.SyncContext(ctx); !errors.Is(err, syscall.ETIMEDOUT) || !strings.Contains(err.Error(), "after 4 lines") {
			t.Errorf("Sync once the peer was silent for too long = %v", err)
		}
		write(t, w, numbered(4, 6))
		if err := w.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
		peer.want(t, numbered(0, 1), numbered(4, 6))
		settled(t, w, 6, 6) // Written is what the system took: the loss is told instead
		w.Told()
		if text := told.text(); !strings.Contains(text, "after 4 lines; the last lines of each may be lost") {
			t.Errorf("OnError was told %q", text)
		}
	})
}

// A peer that ends the connection, with lines on the way that it never
// acknowledges: a caller without time to wait for that is told that they are not
// read, and a Sync that has says that they may be lost.
func TestSyncHasNoTimeToVerify(t *testing.T) {
	t.Parallel()
	conns := make(chan net.Conn, 1)
	peer := startTCPPeer(t, "127.0.0.1:0", nil, func(c net.Conn, keep io.Writer) {
		conns <- c
		io.Copy(keep, c)
	})
	w := open(t, "tcp://"+peer.Addr().String(), remote.Options{})
	write(t, w, numbered(0, 1))
	eventually(t, "the line is there", func() bool { return string(peer.bytes()) == numbered(0, 1) })
	c := <-conns
	vanish(t, c)
	write(t, w, numbered(1, 2))
	c.(*net.TCPConn).CloseWrite()
	eventually(t, "the end is noticed", func() bool { return peerGone(w) })
	if err := hurried(w); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "has not read") { // one that waited knows more
		t.Errorf("Sync without time = %v, want that the peer has not read everything", err)
	}
	if err := w.Sync(); err == nil || !strings.Contains(err.Error(), "after 2 lines") || !strings.Contains(err.Error(), "bytes not acknowledged") {
		t.Errorf("Sync with time = %v, want that lines may be lost", err)
	}
	if err := w.Sync(); err != nil {
		t.Errorf("another Sync = %v, want nil: told once", err)
	}
	settled(t, w, 2, 2)
}

// The first address of the peer's name is one of IPv6 that refuses, or drops all
// that is sent to it; the lines go to the second, of IPv4, within seconds.
func TestDeadIPv6Address(t *testing.T) {
	t.Parallel()
	if l, err := net.Listen("tcp", "[::1]:0"); err != nil {
		t.Skip("this machine has no IPv6: ", err)
	} else {
		l.Close()
	}
	for _, dead := range []string{"refuses", "drops"} {
		for _, scheme := range []string{"tcp", "http"} {
			t.Run(scheme+", "+dead, func(t *testing.T) {
				t.Parallel()
				keyed := newKeyedPeer(t)
				_, port, _ := net.SplitHostPort(keyed.addr)
				if dead == "drops" {
					var plain net.ListenConfig
					plain.SetMultipathTCP(false) // it has no filters
					l, err := plain.Listen(t.Context(), "tcp", "[::1]:"+port)
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { l.Close() })
					vanish(t, l)
				}
				var got func() []byte
				if scheme == "tcp" {
					got = startTCPPeer(t, keyed.addr, nil, nil).bytes
				} else {
					keyed.up()
					got = keyed.bytes
				}
				_, resolver := startNames(t, "::1", here)
				url := map[string]string{"tcp": "tcp://logs.test:" + port, "http": "http://logs.test:" + port + "/"}[scheme]
				w := open(t, url, remote.Options{DisableCompression: true, Timeout: 10 * time.Minute}) // the first address has 50 s, if the second waits for it
				w.SetResolver(resolver, 0)
				var dials atomic.Int64
				w.SetBeforeConnect(func() { dials.Add(1) })
				begin := time.Now()
				write(t, w, numbered(0, 10))
				if took := time.Since(begin); took > 30*time.Second {
					t.Errorf("Write took %v", took)
				}
				if err := w.Close(); err != nil {
					t.Errorf("Close = %v", err)
				}
				if string(got()) != numbered(0, 10) || dials.Load() != 2 {
					t.Errorf("the peer has %q after %d dials, want both addresses tried", got(), dials.Load())
				}
				settled(t, w, 10, 10)
			})
		}
	}
}
