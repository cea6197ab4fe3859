package remote_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/rollway/rollway/remote"
)

func TestPostIsByteExact(t *testing.T) {
	t.Parallel()
	for compression, o := range map[string]remote.Options{"": {}, "none": {DisableCompression: true}, "gzip": {Compress: remote.Gzip{}}} {
		t.Run("compression="+compression, func(t *testing.T) {
			peer := startHTTPPeer(t)
			o.Token, o.Header = "tok", http.Header{"X-Scope": {"a", "b"}}
			w := open(t, peer.URL+"/api/logs", o)
			all := numbered(0, 100) + "{\"msg\":\"\u00e9\u2028\\n\\u0000\"}\n"
			write(t, w, all[:len(all)/2])
			write(t, w, numbered(100, 5000))
			got := peer.seen()
			if len(got) != 2 {
				t.Fatalf("%d requests, want 2", len(got))
			}
			h := got[0].header
			for name, want := range map[string]string{
				"Content-Type": "application/x-ndjson", "Authorization": "Bearer tok", "X-Scope": "a",
				"Content-Encoding": map[string]string{"gzip": "gzip"}[compression],
			} {
				if h.Get(name) != want {
					t.Errorf("%s is %q, want %q", name, h.Get(name), want)
				}
			}
			if len(h.Values("X-Scope")) != 2 || !strings.HasPrefix(h.Get("User-Agent"), "rollway/") {
				t.Errorf("header %v", h)
			}
			if a, b := h.Get("Idempotency-Key"), got[1].header.Get("Idempotency-Key"); a == "" || a == b {
				t.Errorf("idempotency keys %q and %q of different batches", a, b)
			}
			half := all[:len(all)/2]
			peer.want(t, half+"\n"+numbered(100, 5000))
			s := w.Stats()
			if s.Connects != 1 || !s.Connected || s.Requests != 2 || s.BytesSent == 0 || s.Errors != 0 {
				t.Errorf("Stats = %+v", s)
			}
			settled(t, w, strings.Count(half, "\n")+1+4900, strings.Count(half, "\n")+1+4900)
		})
	}
}

func TestBlankLinesDoNotBlock(t *testing.T) {
	peer := startHTTPPeer(t)
	w := open(t, peer.URL+"/", remote.Options{})
	write(t, w, "\n \n")
	write(t, w, numbered(0, 1))
	peer.want(t, numbered(0, 1))
	settled(t, w, 3, 1)
}

// net/http may read a request's body after the answer: the caller's bytes must
// not be touched once Write has returned. The race detector watches.
func TestBytesAreTheCallersAfterWrite(t *testing.T) {
	t.Parallel()
	peer := newHTTPPeer(t)
	peer.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.WriteHeader(http.StatusServiceUnavailable) // with the body unread
	})
	peer.Start()
	w := open(t, peer.URL+"/", remote.Options{})
	p := []byte(numbered(0, 50_000))
	for range 5 {
		if n, err := w.Write(p); n != 0 || err == nil {
			t.Fatalf("Write = %d, %v", n, err)
		}
		for i := range p {
			p[i]++
			p[i]--
		}
	}
	settled(t, w, 0, 0)
}
