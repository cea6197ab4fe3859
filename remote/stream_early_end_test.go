package remote_test

import (
	"crypto/tls"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/remote"
)

// What accepts every connection and ends it at once, as a load balancer does
// whose servers are all down, gets no line: they stay with the caller, or on disk,
// and come once when there is a server again.
func TestPeerEndsConnectionsAtOnce(t *testing.T) {
	t.Parallel()
	ends := map[string]func(net.Conn){
		"closes": func(c net.Conn) { c.Close() },
		"resets": reset,
	}
	streams(t, func(t *testing.T, scheme string, serverTLS *tls.Config, o remote.Options) {
		for name, end := range ends {
			switch {
			case name == "resets" && scheme == "unix":
				continue // it has none
			case name == "closes" && runtime.GOOS != "linux":
				t.Log("left out: only Linux tells whether the peer has taken everything")
				continue
			}
			for _, spill := range []bool{false, true} {
				o := o
				o.OnError = func(err error) {
					if strings.Contains(err.Error(), "may be lost") {
						t.Errorf("OnError is told of lost lines: %v", err)
					}
				}
				addr := anywhere(t, scheme)
				bad := startTCPPeer(t, addr, serverTLS, func(c net.Conn, _ io.Writer) {
					if shaken(c) {
						end(c)
					}
				})
				if spill {
					o.Spill.Dir = t.TempDir()
				}
				w := open(t, scheme+"://"+addr, o)
				w.SetHears(time.Minute) // on a busy machine the peer is slow to accept
				all := numbered(0, 1000)
				if spill {
					write(t, w, all)
					eventually(t, "attempts have failed", func() bool { return w.Stats().Errors > 1 })
					if s := w.Stats(); s.Written != 0 || s.Spill.Lines != 1000 {
						t.Errorf("%s: Stats = %+v, and nobody has read anything", name, s)
					}
				} else {
					for range 3 {
						if n, err := w.Write([]byte(all)); n != 0 || err == nil {
							t.Errorf("%s: Write = %d, %v, and nobody has read anything", name, n, err)
						}
					}
					settled(t, w, 0, 0)
				}
				bad.stop()
				w.SetHears(time.Millisecond)
				good := startTCPPeer(t, addr, serverTLS, nil)
				if !spill {
					write(t, w, all)
				}
				if err := w.Close(); err != nil {
					t.Errorf("%s: Close = %v", name, err)
				}
				if got := string(good.bytes()); got != all {
					t.Errorf("%s: the peer has %d bytes, want %d", name, len(got), len(all))
				}
				settled(t, w, 1000, 1000)
			}
		}
	})
}

// A peer that ends its own side at once and reads on is not one of these.
func TestPeerThatOnlyReads(t *testing.T) {
	t.Parallel()
	streams(t, func(t *testing.T, scheme string, serverTLS *tls.Config, o remote.Options) {
		peer := startTCPPeer(t, anywhere(t, scheme), serverTLS, func(c net.Conn, keep io.Writer) {
			if shaken(c) {
				c.(interface{ CloseWrite() error }).CloseWrite()
				io.Copy(keep, c)
			}
		})
		w := open(t, scheme+"://"+peer.Addr().String(), o)
		for i := range 5 {
			write(t, w, numbered(i, i+1))
		}
		if err := w.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
		eventually(t, "all is there", func() bool { return string(peer.bytes()) == numbered(0, 5) })
		settled(t, w, 5, 5)
	})
}

// A Sync tells of every connection that broke since the one before.
func TestSyncTellsEveryBreak(t *testing.T) {
	t.Parallel()
	read := make(chan net.Conn)
	peer := startTCPPeer(t, "127.0.0.1:0", nil, func(c net.Conn, keep io.Writer) { keepOf(c, keep, read) })
	w := open(t, "tcp://"+peer.Addr().String(), remote.Options{})
	for i := range 3 {
		write(t, w, numbered(10*i, 10*i+10))
		reset(<-read)
		eventually(t, "the reset is noticed", func() bool { return peerGone(w) })
	}
	if err := w.Sync(); err == nil || !strings.Contains(err.Error(), "3 connections broke, after 30 lines") {
		t.Errorf("Sync = %v, want 3 connections and 30 lines", err)
	}
	if err := w.Sync(); err != nil {
		t.Errorf("another Sync = %v, want nil: told once", err)
	}
	settled(t, w, 30, 30)
}
