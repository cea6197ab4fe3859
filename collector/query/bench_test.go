package query

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/journal"
)

// benchLine has 250 bytes with its line feed.
const benchLine = `{"time":"2026-05-28T12:40:00.123456789Z","level":"INFO","msg":"request served","service":"payment-api","trace_id":"6f9c9b9d7a1a","attrs":{"customer_id":"cus_123","region":"eu-west","http":{"method":"POST","status":200,"path":"/v1/charge"},"n":1234}}` + "\n"

// manyTextsExpr asks for n texts of 8 bytes, which are not in benchLine.
func manyTextsExpr(n int) string {
	var b []byte
	for i := range n {
		b = fmt.Appendf(b, `"absent%02x" or `, i%256)
		if i >= 256 {
			b[len(b)-len(`x" or `)] = '~'
		}
	}
	return strings.TrimSuffix(string(b), " or ")
}

// BenchmarkMatch scans one line at a time; the lines are in the cache.
func BenchmarkMatch(b *testing.B) {
	for _, c := range []struct{ name, expr string }{
		{"4_texts", manyTextsExpr(4)},
		{"12_texts", manyTextsExpr(12)},
		{"13_texts", manyTextsExpr(13)},
		{"64_texts", manyTextsExpr(64)},
		{"512_texts", manyTextsExpr(512)},
		{"level", "level>=warn"},
		{"absent_text", "timeout"},
		{"absent_ignoring_case", `i"timeout"`},
		{"absent_expression", `re"(?i)timeout"`},
		{"absent_word", `w"charg"`},
		{"present_text", `"/v1/charge"`},
		{"attr_string", "region=eu-west"},
		{"attr_other", "customer_id=cus_999"},
		{"attr_number", "http.status>=500"},
		{"list_of_3", "customer_id in (cus_1, cus_2, cus_3)"},
		{"list_of_500", "customer_id in (" + strings.ReplaceAll(manyTextsExpr(500), " or ", ", ") + ")"},
		{"range", "http.status in 300..599"},
		{"network", "customer_id in 10.0.0.0/8"},
		{"or_of_three", `level>=warn or http.status>=500 or "timeout"`},
		{"time_and_attr", "time>=2026-05-28 n>11"},
	} {
		b.Run(c.name, func(b *testing.B) {
			q := mustParse(b, c.expr)
			line := []byte(benchLine)
			b.SetBytes(int64(len(line)))
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				if q.Match(line) {
					n++
				}
			}
			sink = n
		})
	}
}

// BenchmarkScan reads 64 MiB of different lines, as a query does.
func BenchmarkScan(b *testing.B) {
	var lines []byte
	for i := 0; len(lines) < 64<<20; i++ {
		line := []byte(benchLine)
		copy(line[bytes.Index(line, []byte("6f9c")):], string(rune('a'+i%26)))
		lines = append(lines, line...)
	}
	for _, c := range []struct{ name, expr string }{
		{"level", "level>=warn"},
		{"absent_text", "timeout"},
		{"attr_number", "http.status>=500"},
		{"or_of_three", `level>=warn or http.status>=500 or "timeout"`},
	} {
		b.Run(c.name, func(b *testing.B) {
			q := mustParse(b, c.expr)
			b.SetBytes(int64(len(lines)))
			for b.Loop() {
				n := 0
				for rest := lines; len(rest) > 0; {
					end := bytes.IndexByte(rest, '\n') + 1
					if q.Match(rest[:end]) {
						n++
					}
					rest = rest[end:]
				}
				sink = n
			}
		})
	}
}

var sink int

// BenchmarkSpans searches a packed journal of 64 MiB of different lines without HTTP; -cpu says by
// how many workers.
func BenchmarkSpans(b *testing.B) {
	s := openStore(b, journal.Options{SegmentBytes: 16 << 20, Pack: true})
	total, r := 0, rand.New(rand.NewPCG(1, 2))
	for total < 80<<20 {
		var lines []string
		for range 1000 {
			lines = append(lines, fmt.Sprintf(`{"time":"2026-05-28T12:40:00.123456789Z","level":"INFO","msg":"request %x served","service":"payment-api","trace_id":"%016x","attrs":{"customer_id":"cus_%d","region":"eu-west","status":%d,"ms":%d}}`, r.Uint32(), r.Uint64(), r.IntN(1e6), 200+r.IntN(300), r.IntN(5000)))
			total += len(lines[len(lines)-1]) + 1
		}
		s.add(b, lines...)
	}
	waitFor(b, "packed segments", func() bool { return s.Stats().PackedSegments >= 4 })
	for _, c := range []struct{ name, expr string }{
		{"whole_lines", `re"served [a-z]+$"`},
		{"few_lines", `cus_1234`},
		{"stats", `| stats count(), quantile(0.99, ms) by status`},
		{"top", `| top 10 customer_id`},
	} {
		b.Run(c.name, func(b *testing.B) {
			a, err := over(s, Options{}) // as many turns as processors now
			if err != nil {
				b.Fatal(err)
			}
			defer a.Close()
			b.SetBytes(int64(total))
			for b.Loop() {
				w := httptest.NewRecorder()
				a.ServeQuery(w, httptest.NewRequest("GET", "/api/query?q="+url.QueryEscape(c.expr), nil))
				if w.Code != 200 {
					b.Fatal(w.Body)
				}
			}
		})
	}
}

// BenchmarkServeQuery asks a real journal of 64 MiB over HTTP, nothing found.
func BenchmarkServeQuery(b *testing.B) {
	s := openStore(b, journal.Options{})
	batch := journal.Batch{Lines: bytes.Repeat([]byte(benchLine), 1000), Records: 1000}
	batch.MinTime, batch.MaxTime = timesOf([]string{benchLine})
	total := 0
	for ; total < 64<<20; total += len(batch.Lines) {
		if _, err := s.Append(context.Background(), batch); err != nil {
			b.Fatal(err)
		}
	}
	_, base := serve(b, s, Options{})
	for _, c := range []struct{ name, expr string }{
		{"level", "level>=warn"},
		{"absent_text", "timeout"},
		{"attr_number", "http.status>=500"},
		{"other_day", "time>=2026-06-01"},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(total))
			for b.Loop() {
				if resp, body, err := ask(b, base, "q", c.expr); err != nil || resp.StatusCode != 200 || body != "" {
					b.Fatal(resp.Status, body, err)
				}
			}
		})
	}
}
