package receiver

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/internal/testkit"
)

// article is the event of the article that the collector is measured by.
const article = `{"service":"payment-api","level":"error","message":"failed to charge customer","timestamp":"2026-05-28T12:40:00Z","trace_id":"6f9c9b9d7a1a","metadata":{"customer_id":"cus_123","region":"eu-west","retry_count":2}}`

// exchange is a request and its answer without net/http around them.
type exchange struct {
	header http.Header
	code   int
	req    *http.Request
	body   bytes.Reader
	data   []byte
}

func newExchange(data []byte) *exchange {
	x := &exchange{header: http.Header{}, data: data}
	x.req, _ = http.NewRequest("POST", "http://127.0.0.1:4318/api/logs", io.NopCloser(&x.body))
	x.req.ContentLength = int64(len(data))
	return x
}

func (x *exchange) Header() http.Header             { return x.header }
func (x *exchange) WriteHeader(code int)            { x.code = code }
func (x *exchange) Write(p []byte) (int, error)     { return len(p), nil }
func (x *exchange) SetReadDeadline(time.Time) error { return nil }

func (x *exchange) serve(h http.Handler) {
	x.body.Reset(x.data)
	clear(x.header)
	h.ServeHTTP(x, x.req)
}

func hundred() []byte {
	return []byte("[" + strings.Repeat(article+",", 99) + article + "]")
}

// storesNothing is a Backend.
var storesNothing = StoreFunc(func(context.Context, *normalize.Batch, StoreOptions) (Stored, error) { return Stored{}, nil })

func TestAllocationsPerRequest(t *testing.T) {
	raced := testkit.Race(t, "it drops some of what is put into a pool")
	r := New(storesNothing, Options{})
	for name, body := range map[string][]byte{"one event": []byte(article), "a hundred": hundred(), "a hundred in gzip": []byte(gzipped(string(hundred())))} {
		x := newExchange(body)
		x.serve(r)
		fewest := ^uint64(0)
		for range 10 {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for range 100 {
				x.serve(r)
			}
			runtime.ReadMemStats(&after)
			fewest = min(fewest, after.Mallocs-before.Mallocs)
		}
		if x.code != 200 {
			t.Fatal(x.code)
		}
		if fewest > 2*100 && !raced {
			t.Errorf("%s: %d allocations for 100 requests", name, fewest)
		}
	}
}

// BenchmarkRequest answers requests of 100 of the article's events without
// net/http around it: this package, and the article's first handler.
func BenchmarkRequest(b *testing.B) {
	stored := 0
	r := New(StoreFunc(func(_ context.Context, b *normalize.Batch, _ StoreOptions) (Stored, error) {
		stored += len(b.Lines)
		return Stored{}, nil
	}), Options{})
	type event struct {
		Service   string         `json:"service"`
		Level     string         `json:"level"`
		Message   string         `json:"message"`
		Timestamp string         `json:"timestamp"`
		TraceID   string         `json:"trace_id"`
		Metadata  map[string]any `json:"metadata"`
	}
	naive := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		var events []event
		if json.Unmarshal(body, &events) != nil {
			w.WriteHeader(400)
			return
		}
		var buf bytes.Buffer
		json.NewEncoder(&buf).Encode(events)
		stored += buf.Len()
		w.WriteHeader(200)
	})
	for _, c := range []struct {
		name    string
		handler http.Handler
		body    []byte
	}{
		{"receive", r, hundred()},
		{"receive-gzip", r, []byte(gzipped(string(hundred())))},
		{"receive-one", r, []byte(article)},
		{"naive", naive, hundred()},
	} {
		b.Run(c.name, func(b *testing.B) {
			x := newExchange(c.body)
			b.ReportAllocs()
			for b.Loop() {
				x.serve(c.handler)
			}
			if x.code != 200 {
				b.Fatal(x.code)
			}
		})
	}
}
