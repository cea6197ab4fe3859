package remote_test

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rollway/rollway/remote"
	"github.com/rollway/rollway/slab"
)

const (
	producers = 4
	perEach   = 3000
)

// produce lets each of the producers write its lines through a slab.Writer,
// slowly enough for a few restarts, and closes it.
func produce(t *testing.T, w *slab.Writer) {
	t.Helper()
	var wg sync.WaitGroup
	for p := range producers {
		wg.Go(func() {
			for seq := range perEach {
				if _, err := fmt.Fprintf(w, `{"msg":"line","attrs":{"producer":%d,"seq":%d}}`+"\n", p, seq); err != nil {
					t.Errorf("Write = %v", err)
					return
				}
				if seq%50 == 0 {
					time.Sleep(5 * time.Millisecond)
				}
			}
		})
	}
	wg.Wait()
}

type place struct{ producer, seq int }

// inOrder wants whole lines, and each producer's numbers to rise within data;
// a line that comes again, with all those after it, begins a new run if again
// is true. It adds what it finds to seen.
func inOrder(t *testing.T, data []byte, again bool, seen map[place]int) {
	t.Helper()
	last := map[int]int{}
	for line := range bytes.Lines(data) {
		var l struct{ Attrs struct{ Producer, Seq int } }
		if err := json.Unmarshal(line, &l); err != nil {
			t.Errorf("torn line %q: %v", line, err)
			continue
		}
		p, seq := l.Attrs.Producer, l.Attrs.Seq
		if prev, ok := last[p]; ok && seq != prev+1 && !(again && seq <= prev && seen[place{p, seq}] > 0) {
			t.Errorf("producer %d: line %d after line %d", p, seq, prev)
		}
		last[p] = seq
		seen[place{p, seq}]++
	}
}

func wantAll(t *testing.T, seen map[place]int) (extra int) {
	t.Helper()
	for p := range producers {
		for seq := range perEach {
			if seen[place{p, seq}] == 0 {
				t.Errorf("producer %d: line %d is missing", p, seq)
			}
			extra += max(0, seen[place{p, seq}]-1)
		}
	}
	return extra
}

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

// An HTTP server that is killed, also within requests, and comes back. Nothing
// is lost; what had no answer may come twice, and then in the old order.
func TestSlabAndHTTPWithRestarts(t *testing.T) {
	for _, compression := range []string{"none", "gzip"} {
		t.Run(compression, func(t *testing.T) {
			addr := reserve(t)
			l, err := net.Listen("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			peer := newHTTPPeer(t) // keeps what all servers took
			peer.always = func(http.ResponseWriter, *http.Request) { time.Sleep(time.Millisecond) }
			w := open(t, "http://"+addr+"/", remote.Options{Compression: compression})
			out := openSlab(t, w)
			stop, stopped := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(stopped)
				for l := l; ; {
					server := &http.Server{Handler: http.HandlerFunc(peer.serve), ErrorLog: discardLog}
					go server.Serve(l)
					select {
					case <-stop:
						server.Shutdown(t.Context())
						return
					case <-time.After(60 * time.Millisecond):
					}
					server.Close()
					time.Sleep(20 * time.Millisecond)
					if l, err = net.Listen("tcp", addr); err != nil {
						t.Error(err)
						return
					}
				}
			}()
			produce(t, out)
			exact(t, out, w)
			close(stop)
			<-stopped
			seen := map[place]int{}
			inOrder(t, peer.bytes(), true, seen)
			extra := wantAll(t, seen)
			t.Logf("%d connections, %d errors, %d of %d lines twice", w.Stats().Connects, w.Stats().Errors, extra, producers*perEach)
		})
	}
}

// shaken ends the handshake of a TLS connection, which may take long on a busy
// machine, and reports whether lines can come.
func shaken(c net.Conn) bool {
	t, ok := c.(*tls.Conn)
	return !ok || t.Handshake() == nil
}

// A TCP peer that restarts in good order (it sends a FIN, and reads on until
// the Writer has closed its side) loses nothing either.
func TestSlabAndStreamWithOrderlyRestarts(t *testing.T) {
	streams(t, func(t *testing.T, scheme string, serverTLS *tls.Config, o remote.Options) {
		peer := startTCPPeer(t, anywhere(t, scheme), serverTLS, func(c net.Conn, keep io.Writer) {
			if !shaken(c) {
				return
			}
			go func() {
				time.Sleep(50 * time.Millisecond)
				c.(interface{ CloseWrite() error }).CloseWrite()
			}()
			io.Copy(keep, c)
		})
		w := open(t, scheme+"://"+peer.Addr().String(), o)
		out := openSlab(t, w)
		produce(t, out)
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
// tell. What it did read is in order and whole but for each connection's last
// line, nothing comes twice but the line that was torn, and the ledger stays
// exact about what it counts.
func TestSlabAndStreamWithResets(t *testing.T) {
	transports(t, func(t *testing.T, scheme string, serverTLS *tls.Config, o remote.Options) {
		var broken atomic.Int64
		o.OnError = func(error) { broken.Add(1) }
		peer := startTCPPeer(t, "127.0.0.1:0", serverTLS, func(c net.Conn, keep io.Writer) {
			if shaken(c) {
				c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
				io.Copy(keep, c)
			}
			reset(c)
		})
		w := open(t, scheme+"://"+peer.Addr().String(), o)
		out := openSlab(t, w)
		produce(t, out)
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
		if s.Connects < 3 || broken.Load() == 0 {
			t.Errorf("Stats = %+v, OnError called %d times", s, broken.Load())
		}
	})
}
