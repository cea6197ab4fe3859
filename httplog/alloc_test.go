//go:build !race

// Under the race detector sync.Pool drops values at random, which allocates.

package httplog_test

import (
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"

	"github.com/rollway/rollway"
	"github.com/rollway/rollway/httplog"
)

// nowhere is a ResponseWriter as that of net/http, as far as it matters here.
type nowhere struct{ header http.Header }

func (w nowhere) Header() http.Header         { return w.header }
func (w nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (w nowhere) WriteHeader(int)             {}
func (w nowhere) Flush()                      {}

// TestAllocations holds what the middleware adds to a request, all told, the
// line at its end included.
func TestAllocations(t *testing.T) {
	log, err := rollway.New(rollway.Options{Outputs: []rollway.Output{{Writer: io.Discard}}})
	if err != nil {
		t.Fatal(err)
	}
	body := []byte("ok")
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write(body) })
	m := httplog.Middleware(log, httplog.Options{})(handler)
	for _, c := range []struct {
		name  string
		h     http.Handler
		id    string
		trace string
		want  float64
	}{
		{"without", handler, "", "", 0},
		{"incoming id", m, "r1", "", 13},
		{"new id", m, "", "", 14},
		{"incoming id and trace", m, "r1", parent, 19},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := nowhere{http.Header{}}
			r := httptest.NewRequest("GET", "/pay", nil)
			if c.id != "" {
				r.Header.Set("X-Request-Id", c.id)
			}
			if c.trace != "" {
				r.Header.Set("Traceparent", c.trace)
			}
			if got := mallocs(5000, func() { c.h.ServeHTTP(w, r) }); got > c.want+0.01 {
				t.Errorf("%.3f allocations a request, want at most %v", got, c.want)
			} else {
				t.Logf("%.3f allocations a request", got)
			}
		})
	}
}

// mallocs returns the allocations of a call of f.
func mallocs(n int, f func()) float64 {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for range 100 {
		f() // fills pools and caches
	}
	least := math.Inf(1) // of some rounds: the runtime itself allocates now and then
	for range 10 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range n / 10 {
			f()
		}
		runtime.ReadMemStats(&after)
		least = min(least, float64(after.Mallocs-before.Mallocs)/float64(n/10))
	}
	return least
}

// BenchmarkMiddleware is the middleware's own cost: its handler writes two
// bytes to nowhere.
func BenchmarkMiddleware(b *testing.B) {
	log, err := rollway.New(rollway.Options{Outputs: []rollway.Output{{Writer: io.Discard}}})
	if err != nil {
		b.Fatal(err)
	}
	body := []byte("ok")
	m := httplog.Middleware(log, httplog.Options{})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write(body) }))
	w := nowhere{http.Header{}}
	r := httptest.NewRequest("GET", "/pay", nil)
	r.Header.Set("X-Request-Id", "r1")
	b.ReportAllocs()
	for b.Loop() {
		m.ServeHTTP(w, r)
	}
}
