package remote_test

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rollway/rollway/remote"
	"github.com/rollway/rollway/slab"
)

// exact wants both ledgers to agree that everything was written.
func exact(t *testing.T, out *slab.Writer, w *remote.Writer) {
	t.Helper()
	if err := out.Close(); err != nil {
		t.Errorf("Close of the slab.Writer = %v", err)
	}
	slabLedger(out).CheckSettled(t, producers*perEach, producers*perEach)
	settled(t, w, producers*perEach, producers*perEach)
	if s := w.Stats(); s.Connects < 3 || s.Errors == 0 {
		t.Errorf("Stats = %+v: the restarts were not seen", s)
	}
}

// An HTTP server that is killed, every other time within a request that it has
// taken, and comes back. Nothing is lost; what had no answer comes twice, and then
// in the old order.
func TestSlabAndHTTPWithRestarts(t *testing.T) {
	t.Parallel()
	for name, compress := range map[string]remote.Compressor{"none": nil, "gzip": remote.Gzip{}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			peer := newHTTPPeer(t) // keeps what the server took
			var trap atomic.Pointer[chan struct{}]
			peer.always = func(_ http.ResponseWriter, r *http.Request) {
				if inside := trap.Swap(nil); inside != nil {
					close(*inside)
					<-r.Context().Done()
				}
			}
			server := newHome(t, http.HandlerFunc(peer.serve))
			server.up()
			w := open(t, "http://"+server.addr+"/", remote.Options{Compress: compress})
			out := openSlab(t, w)
			kills := 0
			produce(t, out, func() {
				if kills++; kills%2 == 0 {
					inside := make(chan struct{})
					trap.Store(&inside)
					<-inside
				}
				before := w.Stats().Errors
				server.down()
				eventually(t, "an attempt has failed", func() bool { return w.Stats().Errors > before })
				server.up()
			})
			exact(t, out, w)
			seen := map[place]int{}
			inOrder(t, peer.bytes(), true, seen)
			extra := wantAll(t, seen)
			t.Logf("%d connections, %d errors, %d of %d lines twice", w.Stats().Connects, w.Stats().Errors, extra, producers*perEach)
			if extra == 0 {
				t.Error("no line came twice: no request was killed")
			}
		})
	}
}

// shaken ends the handshake of a TLS connection, which may take long on a busy
// machine, and reports whether lines can come.
func shaken(c net.Conn) bool {
	t, ok := c.(*tls.Conn)
	return !ok || t.Handshake() == nil
}

// keepOf keeps what comes on c, and sends c to used when something has come.
func keepOf(c net.Conn, keep io.Writer, used chan<- net.Conn) {
	first := make([]byte, 1)
	if !shaken(c) {
		return
	}
	if _, err := io.ReadFull(c, first); err != nil {
		return
	}
	keep.Write(first)
	used <- c
	io.Copy(keep, c)
}

// heard does what ends the Writer's connection, and waits until it has noticed.
func heard(t *testing.T, w *remote.Writer, end func()) {
	t.Helper()
	before := w.Stats().Connects
	end()
	eventually(t, "the Writer has noticed", func() bool { s := w.Stats(); return !s.Connected || s.Connects > before })
}

// A TCP peer that restarts in good order (it sends a FIN, and reads on until
// the Writer has closed its side) loses nothing either.
func TestSlabAndStreamWithOrderlyRestarts(t *testing.T) {
	t.Parallel()
	streams(t, func(t *testing.T, scheme string, serverTLS *tls.Config, o remote.Options) {
		used := make(chan net.Conn, 100)
		peer := startTCPPeer(t, anywhere(t, scheme), serverTLS, func(c net.Conn, keep io.Writer) { keepOf(c, keep, used) })
		w := open(t, scheme+"://"+peer.Addr().String(), o)
		out := openSlab(t, w)
		produce(t, out, func() {
			c := <-used
			heard(t, w, func() { c.(interface{ CloseWrite() error }).CloseWrite() })
		})
		if err := out.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
		if err := w.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
		slabLedger(out).CheckSettled(t, producers*perEach, producers*perEach)
		settled(t, w, producers*perEach, producers*perEach)
		eventually(t, "all connections are read", func() bool {
			return bytes.Count(peer.bytes(), []byte("\n")) >= producers*perEach
		})
		seen := map[place]int{}
		inOrder(t, peer.bytes(), false, seen)
		if extra := wantAll(t, seen); extra > 0 {
			t.Errorf("%d lines came twice", extra)
		}
		if s := w.Stats(); s.Connects < 3 {
			t.Errorf("Stats = %+v: no restart was seen", s)
		}
	})
}

// A TCP peer that is killed loses what it had not read, which TCP does not
// tell. What it did read is in order and whole except for each connection's last
// line, nothing comes twice but the line that was torn, and the ledger stays
// exact about what it counts.
func TestSlabAndStreamWithResets(t *testing.T) {
	t.Parallel()
	transports(t, func(t *testing.T, scheme string, serverTLS *tls.Config, o remote.Options) {
		var broken atomic.Int64
		o.OnError = func(error) { broken.Add(1) }
		used := make(chan net.Conn, 100)
		peer := startTCPPeer(t, "127.0.0.1:0", serverTLS, func(c net.Conn, keep io.Writer) {
			keepOf(c, keep, used)
			reset(c)
		})
		w := open(t, scheme+"://"+peer.Addr().String(), o)
		out := openSlab(t, w)
		produce(t, out, func() {
			c := <-used
			heard(t, w, func() { c.SetReadDeadline(time.Unix(1, 0)) })
		})
		out.Close()
		w.Close() // either may say that a connection broke
		slabLedger(out).CheckSettled(t, producers*perEach, producers*perEach)
		settled(t, w, producers*perEach, producers*perEach)
		seen := map[place]int{}
		lines := 0
		for _, data := range peer.each() {
			whole := data[:strings.LastIndexByte(data, '\n')+1]
			lines += strings.Count(whole, "\n")
			inOrder(t, []byte(whole), false, seen)
		}
		if lines != len(seen) {
			t.Errorf("%d lines were read twice", lines-len(seen))
		}
		s := w.Stats()
		t.Logf("%d connections: %d of %d lines lost in the system's buffers, as documented", s.Connects, producers*perEach-lines, producers*perEach)
		w.Told()
		if s.Connects < 3 || broken.Load() == 0 {
			t.Errorf("Stats = %+v, OnError called %d times", s, broken.Load())
		}
	})
}
