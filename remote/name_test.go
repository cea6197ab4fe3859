package remote_test

import (
	"context"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollway/rollway/remote"
)

// A names answers for the address of every name.
type names struct {
	net.PacketConn
	mu    sync.Mutex
	addrs []string // guarded by mu
}

// startNames returns a server of names, and a resolver that asks it.
func startNames(t *testing.T, addrs ...string) (*names, *net.Resolver) {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	s := &names{PacketConn: c, addrs: addrs}
	go s.serve()
	return s, &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", c.LocalAddr().String())
	}}
}

func (s *names) move(addrs ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addrs = addrs
}

func (s *names) serve() {
	buf := make([]byte, 1<<10)
	for {
		n, from, err := s.ReadFrom(buf)
		if err != nil {
			return
		}
		end := 12 // of the question
		for end < n && buf[end] != 0 {
			end += 1 + int(buf[end])
		}
		if end += 5; end > n {
			continue
		}
		answer := append([]byte(nil), buf[:end]...)
		copy(answer[2:], "\x81\x80\x00\x01\x00\x00\x00\x00\x00\x00") // a response; one question
		asked := answer[end-3]                                       // 1: IPv4, 28: IPv6
		s.mu.Lock()
		for _, a := range s.addrs {
			ip, kind := netip.MustParseAddr(a), byte(1)
			if ip.Is6() {
				kind = 28
			}
			if kind == asked {
				answer[7]++
				answer = append(answer, 0xc0, 12, 0, kind, 0, 1, 0, 0, 0, 0, 0, byte(ip.BitLen()/8))
				answer = append(answer, ip.AsSlice()...)
			}
		}
		s.mu.Unlock()
		s.WriteTo(answer, from)
	}
}

const here, there = "127.0.0.1", "127.0.0.2"

// A peer whose name gets another address is followed there, over UDP too, where
// nothing else tells. Of several addresses one that is alive is found.
func TestNameOfThePeer(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has " + there)
	}
	t.Run("udp, it moves", func(t *testing.T) {
		t.Parallel()
		addr := reserveUDP(t)
		_, port, _ := net.SplitHostPort(addr)
		before, after := startGramPeer(t, "udp", addr), startGramPeer(t, "udp", there+":"+port)
		server, resolver := startNames(t, here)
		w := open(t, "udp://logs.test:"+port, remote.Options{})
		w.SetResolver(resolver, time.Millisecond)
		sent := 0
		next := func() {
			write(t, w, numbered(sent, sent+1))
			sent++
		}
		for range 10 {
			next()
		}
		eventually(t, "the lines are there", func() bool { return string(before.bytes()) == numbered(0, 10) })
		server.move(there)
		eventually(t, "a line is at the new address", func() bool {
			next()
			return len(after.bytes()) > 0
		})
		if err := w.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
		eventually(t, "every line is somewhere, once and in order", func() bool {
			return string(before.bytes())+string(after.bytes()) == numbered(0, sent)
		})
		settled(t, w, sent, sent)
		if s := w.Stats(); s.Connects != 2 {
			t.Errorf("Stats = %+v, want one socket for each address", s)
		}
	})
	t.Run("udp, the first is dead", func(t *testing.T) {
		t.Parallel()
		addr := reserveUDP(t)
		_, port, _ := net.SplitHostPort(addr)
		peer := startGramPeer(t, "udp", addr)
		_, resolver := startNames(t, there, here)
		w := open(t, "udp://logs.test:"+port, remote.Options{Retries: 1})
		w.SetResolver(resolver, time.Hour)
		write(t, w, numbered(0, 10))
		eventually(t, "the lines are there", func() bool { return string(peer.bytes()) == numbered(0, 10) })
		settled(t, w, 10, 10)
	})
	t.Run("tcp", func(t *testing.T) {
		t.Parallel()
		addr := reserve(t)
		_, port, _ := net.SplitHostPort(addr)
		peer := startTCPPeer(t, addr, nil, nil)
		server, resolver := startNames(t, there, here)
		w := open(t, "tcp://logs.test:"+port, remote.Options{Retries: 1})
		w.SetResolver(resolver, 0)
		write(t, w, numbered(0, 10))
		if err := w.Sync(); err != nil {
			t.Errorf("Sync = %v", err)
		}
		peer.stop()
		moved := startTCPPeer(t, there+":"+port, nil, nil)
		server.move(there)
		write(t, w, numbered(10, 20))
		if err := w.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
		if got := string(peer.bytes()) + string(moved.bytes()); got != numbered(0, 20) {
			t.Errorf("the peers have %q", got)
		}
		settled(t, w, 20, 20)
	})
	t.Run("a name that is gone", func(t *testing.T) {
		t.Parallel()
		_, resolver := startNames(t)
		w := open(t, "udp://logs.test:514", remote.Options{})
		w.SetResolver(resolver, time.Hour)
		if n, err := w.Write([]byte(numbered(0, 1))); n != 0 || err == nil || !strings.Contains(err.Error(), "logs.test") {
			t.Errorf("Write = %d, %v", n, err)
		}
		settled(t, w, 0, 0)
	})
}

// A peer that answers, which no datagram of ours asks for, does not cut short the
// time in which a refusal is heard.
func TestTalkativeUDPPeer(t *testing.T) {
	t.Parallel()
	addr := reserveUDP(t)
	peer := listenGram(t, "udp", addr)
	w := open(t, "udp://"+addr, remote.Options{})
	write(t, w, numbered(0, 1))
	_, from, err := peer.ReadFrom(make([]byte, 100))
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		peer.WriteTo([]byte("thank you"), from)
	}
	begin := time.Now()
	if err := w.Sync(); err != nil {
		t.Errorf("Sync = %v", err)
	}
	if took := time.Since(begin); took < 40*time.Millisecond {
		t.Errorf("Sync has listened for %v, want 50 ms", took)
	}
	settled(t, w, 1, 1)
}
