package remote_test

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// A gramPeer keeps the datagrams that it reads.
type gramPeer struct {
	net.PacketConn
	t     testing.TB
	mu    sync.Mutex
	grams []string
	done  chan struct{}
}

// startGramPeer listens at addr of network udp or unixgram.
func startGramPeer(t testing.TB, network, addr string) *gramPeer {
	t.Helper()
	p := listenGram(t, network, addr)
	p.start()
	return p
}

// listenGram is startGramPeer for a peer that reads nothing yet.
func listenGram(t testing.TB, network, addr string) *gramPeer {
	t.Helper()
	config := net.ListenConfig{}
	if network == "udp" {
		config.Control = shareAddress
	}
	c, err := config.ListenPacket(t.Context(), network, addr)
	if err != nil {
		t.Fatal(err)
	}
	if u, ok := c.(*net.UDPConn); ok {
		u.SetReadBuffer(4 << 20) // a test is about what arrives
	}
	p := &gramPeer{PacketConn: c, t: t, done: make(chan struct{})}
	t.Cleanup(func() { c.Close() })
	return p
}

func (p *gramPeer) start() {
	go func() {
		defer close(p.done)
		buf := make([]byte, 1<<20)
		for {
			n, _, err := p.ReadFrom(buf)
			if err != nil {
				return
			}
			p.mu.Lock()
			p.grams = append(p.grams, string(buf[:n]))
			p.mu.Unlock()
		}
	}()
}

func (p *gramPeer) stop() {
	p.Close()
	<-p.done
}

func (p *gramPeer) each() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.grams...)
}

func (p *gramPeer) bytes() []byte { return []byte(strings.Join(p.each(), "")) }

// socketPath returns a path that is short enough for a socket on any system.
func socketPath(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "rw")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

// datagrams runs test over UDP and a local socket. listen may be called again
// once the peer before is closed.
func datagrams(t *testing.T, test func(t *testing.T, url string, listen func() *gramPeer)) {
	t.Run("udp", func(t *testing.T) {
		t.Parallel()
		addr := reserveUDP(t)
		test(t, "udp://"+addr, func() *gramPeer { return listenGram(t, "udp", addr) })
	})
	t.Run("unixgram", func(t *testing.T) {
		if runtime.GOOS == "windows" {
			t.Skip("Windows has no local datagram sockets")
		}
		t.Parallel()
		path := socketPath(t)
		test(t, "unixgram://"+path, func() *gramPeer {
			os.Remove(path) // Close leaves it
			return listenGram(t, "unixgram", path)
		})
	})
}
