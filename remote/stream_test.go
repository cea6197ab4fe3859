package remote_test

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/rollway/rollway/remote"
)

// transports runs test over plain TCP and over TLS. serverTLS is nil for the
// first.
func transports(t *testing.T, test func(t *testing.T, scheme string, serverTLS *tls.Config, o remote.Options)) {
	t.Run("tcp", func(t *testing.T) {
		t.Parallel()
		test(t, "tcp", nil, remote.Options{})
	})
	t.Run("tls", func(t *testing.T) {
		t.Parallel()
		ca := newAuthority(t)
		test(t, "tls", ca.server(t, "127.0.0.1"), remote.Options{TLSConfig: &tls.Config{RootCAs: ca.pool}})
	})
}

// streams is transports with a local socket too.
func streams(t *testing.T, test func(t *testing.T, scheme string, serverTLS *tls.Config, o remote.Options)) {
	transports(t, test)
	t.Run("unix", func(t *testing.T) {
		t.Parallel()
		test(t, "unix", nil, remote.Options{})
	})
}

// anywhere is an address to listen at.
func anywhere(t testing.TB, scheme string) string {
	if scheme == "unix" {
		return socketPath(t)
	}
	return reserve(t)
}

func TestStreamIsByteExact(t *testing.T) {
	t.Parallel()
	streams(t, func(t *testing.T, scheme string, serverTLS *tls.Config, o remote.Options) {
		peer := startTCPPeer(t, anywhere(t, scheme), serverTLS, nil)
		w := open(t, scheme+"://"+peer.Addr().String(), o)
		all := numbered(0, 10)
		write(t, w, all)
		write(t, w, strings.TrimSuffix(numbered(10, 20_000), "\n"))
		if s := w.Stats(); s.Connects != 1 || !s.Connected {
			t.Errorf("Stats = %+v", s)
		}
		if err := w.Close(); err != nil {
			t.Fatalf("Close = %v", err)
		}
		// Close is the proof that the peer has read it: no waiting here.
		peer.want(t, all+numbered(10, 20_000))
		settled(t, w, 20_000, 20_000)
		if s := w.Stats(); s.Connected || s.BytesSent < uint64(len(all)) || s.Errors != 0 {
			t.Errorf("Stats = %+v", s)
		}
	})
}

func TestPeerClosedWhileIdle(t *testing.T) {
	t.Parallel()
	streams(t, func(t *testing.T, scheme string, serverTLS *tls.Config, o remote.Options) {
		// Each connection is closed in order after its first line.
		peer := startTCPPeer(t, anywhere(t, scheme), serverTLS, func(c net.Conn, keep io.Writer) {
			line, _ := bufio.NewReader(c).ReadString('\n')
			io.WriteString(keep, line)
		})
		w := open(t, scheme+"://"+peer.Addr().String(), o)
		for i := range 5 {
			write(t, w, numbered(i, i+1))
			eventually(t, "the peer's end is noticed", func() bool {
				return len(peer.each()) == i+1 && peer.each()[i] != "" && peerGone(w)
			})
		}
		peer.want(t, numbered(0, 1), numbered(1, 2), numbered(2, 3), numbered(3, 4), numbered(4, 5))
		settled(t, w, 5, 5)
		if err := w.Close(); err != nil {
			t.Errorf("Close after orderly ends = %v", err)
		}
		if s := w.Stats(); s.Connects != 5 || s.Errors != 0 {
			t.Errorf("Stats = %+v", s)
		}
	})
}

func peerGone(w *remote.Writer) bool { return !w.Stats().Connected }

// What a peer sends back is no reason to stop, and no reset when it is unread.
func TestTalkativePeer(t *testing.T) {
	t.Parallel()
	peer := startTCPPeer(t, "127.0.0.1:0", nil, func(c net.Conn, keep io.Writer) {
		in := bufio.NewScanner(c)
		for in.Scan() {
			io.WriteString(keep, in.Text()+"\n")
			io.WriteString(c, strings.Repeat("thank you ", 1000))
		}
	})
	w := open(t, "tcp://"+peer.Addr().String(), remote.Options{})
	for i := range 100 {
		write(t, w, numbered(i, i+1))
	}
	if err := w.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
	peer.want(t, numbered(0, 100))
}
