package remote_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rollway/rollway/remote"
)

// A forgetfulPeer stores what comes under a new Idempotency-Key, once, and loses
// every other answer on its way.
type forgetfulPeer struct {
	*httptest.Server
	mu       sync.Mutex
	keys     map[string]string
	stored   strings.Builder
	requests int
}

func startForgetfulPeer(t *testing.T) *forgetfulPeer {
	p := &forgetfulPeer{keys: map[string]string{}}
	p.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		key := r.Header.Get("Idempotency-Key")
		if was, ok := p.keys[key]; !ok {
			p.keys[key] = string(body)
			p.stored.Write(body)
		} else if was != string(body) {
			t.Errorf("key %s came with %q and %q", key, was, body)
		}
		if p.requests++; p.requests%2 == 1 {
			panic(http.ErrAbortHandler)
		}
	}))
	p.Config.ErrorLog = discardLog
	p.Start()
	t.Cleanup(p.Close)
	return p
}

func (p *forgetfulPeer) lines() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stored.String()
}

// wantOnce wants each of n numbered lines once.
func wantOnce(t *testing.T, got string, n int) {
	t.Helper()
	for i := range n {
		if times := strings.Count(got, numbered(i, i+1)); times != 1 {
			t.Errorf("line %d is there %d times", i, times)
		}
	}
	if lines := strings.Count(got, "\n"); lines != n {
		t.Errorf("%d lines are stored, want %d", lines, n)
	}
}

// Callers retry in their own ways; what the peer has got is sent again under the
// same key in each, so that it is stored once.
func TestCallersThatRetry(t *testing.T) {
	t.Parallel()
	const lines = 20
	for _, c := range []struct {
		name string
		run  func(w *remote.Writer)
	}{
		{"the rest of the buffer", func(w *remote.Writer) {
			for i := range lines {
				for p := numbered(i, i+1); p != ""; {
					n, _ := w.Write([]byte(p))
					p = p[n:]
				}
			}
		}},
		{"the rest with newer lines after it", func(w *remote.Writer) {
			var p string
			for i := 0; i < lines || p != ""; i++ {
				if i < lines {
					p += numbered(i, i+1)
				}
				n, _ := w.Write([]byte(p))
				p = p[n:]
			}
		}},
		{"several buffers in turn", func(w *remote.Writer) {
			var rest []string
			for i := range lines / 2 {
				rest = append(rest, numbered(2*i, 2*i+2))
			}
			for len(rest) > 0 {
				p := rest[0]
				rest = rest[1:]
				if n, _ := w.Write([]byte(p)); n < len(p) {
					rest = append(rest, p[n:])
				}
			}
		}},
		{"many goroutines", func(w *remote.Writer) {
			var wg sync.WaitGroup
			for g := range 10 {
				wg.Go(func() {
					for p := numbered(2*g, 2*g+2); p != ""; {
						n, _ := w.Write([]byte(p))
						p = p[n:]
					}
				})
			}
			wg.Wait()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			peer := startForgetfulPeer(t)
			w := open(t, peer.URL+"/", remote.Options{})
			c.run(w)
			wantOnce(t, peer.lines(), lines)
			settled(t, w, lines, lines)
		})
		t.Run("elastic, "+c.name, func(t *testing.T) {
			t.Parallel()
			peer := startElasticPeer(t)
			var requests atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if requests.Add(1)%2 == 0 {
					peer.serve(t, rw, r)
					return
				}
				peer.serve(t, httptest.NewRecorder(), r)
				panic(http.ErrAbortHandler)
			}))
			server.Config.ErrorLog = discardLog
			t.Cleanup(server.Close)
			w := open(t, "elastic+"+server.URL+"/logs-shop", remote.Options{})
			c.run(w)
			wantOnce(t, string(peer.bytes()), lines)
			settled(t, w, lines, lines)
		})
	}
}

// Lines of a request that was divided, because the peer takes no body as large, keep
// their key if the answer is lost.
func TestKeysAfterDivision(t *testing.T) {
	t.Parallel()
	peer := startForgetfulPeer(t)
	handler := peer.Config.Handler
	small := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.ContentLength > 150<<10 {
			rw.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		defer func() {
			if recover() != nil { // the peer has stored the lines
				rw.WriteHeader(http.StatusBadGateway)
			}
		}()
		handler.ServeHTTP(rw, r)
	}))
	defer small.Close()
	w := open(t, small.URL+"/", remote.Options{})
	const lines = 101
	var p string
	for i := range lines {
		pad := 100
		if i < lines/2 {
			pad = 4 << 10
		}
		p += strings.Repeat(" ", pad) + numbered(i, i+1)
	}
	for p != "" {
		n, _ := w.Write([]byte(p))
		p = p[n:]
	}
	wantOnce(t, peer.lines(), lines)
	settled(t, w, lines, lines)
}

// The same bytes are new lines once a failed request is out of mind by the
// number of later ones, and as soon as the request was repeated.
func TestKeysAreForgotten(t *testing.T) {
	t.Parallel()
	peer := startHTTPPeer(t)
	w := open(t, peer.URL+"/", remote.Options{})
	send := func(line, code int) string {
		t.Helper()
		peer.answer(status(code, ""))
		w.Write([]byte(numbered(line, line+1)))
		seen := peer.seen()
		return seen[len(seen)-1].header.Get("Idempotency-Key")
	}
	keys := make([]string, 17)
	for i := range keys {
		keys[i] = send(i, 503)
	}
	for i, key := range keys {
		again := send(i, 200)
		if (again == key) != (i > 0) {
			t.Errorf("failed request %d of 17: its key is %q, then %q", i, key, again)
		}
		if third := send(i, 200); third == again {
			t.Errorf("line %d as a new one has the old key", i)
		}
	}
	ledger(w).Check(t)
}
