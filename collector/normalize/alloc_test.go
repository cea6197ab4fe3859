package normalize

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/testkit"
)

// articleBody returns an array of count of the article's events.
func articleBody(count int) []byte {
	return []byte("[" + strings.Repeat(article+",", count-1) + article + "]")
}

func TestNoAllocationPerEvent(t *testing.T) {
	nested := `{"time":1779972000.5,"msg":"x\u0061","a":{"b":[1, 2, {"c":"d"}]},"a":1,"tags":["x"],"error":{"e": 1},"\u0062":2,"trace_id":"W47/95gDgQPSabYzgT/GDA==","span_id":"EEE19B7EDA7D1838"}`
	many := "{"
	for i := range 100 {
		many += `"key` + strings.Repeat("x", i) + `":1,`
	}
	many = many[:len(many)-1] + "}"
	for name, body := range map[string][]byte{
		"array":       articleBody(1000),
		"NDJSON":      []byte(strings.Repeat(article+"\n", 1000)),
		"canonical":   []byte(strings.Repeat(articleLine+"\n", 1000)),
		"every case":  []byte(strings.Repeat(nested+"\n", 1000)),
		"many fields": []byte(strings.Repeat(many+"\n", 100)),
		"one event":   []byte(article),
	} {
		n, b := New(Limits{}), new(Batch)
		got := testkit.Mallocs(func() {
			b.Reset()
			if err := n.Body(b, body, received); err != nil || b.RejectedTotal != 0 {
				t.Fatal(err, b.Rejected)
			}
		})
		if got != 0 {
			t.Errorf("%s: %d allocations for %d events", name, got, b.Records)
		}
	}
	// Line by line, as from a TCP connection.
	n, b, line := New(Limits{}), new(Batch), []byte(article+"\n")
	if got := testkit.Mallocs(func() {
		b.Reset()
		for range 100 {
			n.Line(b, line, received)
		}
	}); got != 0 {
		t.Errorf("lines: %d allocations for %d events", got, b.Records)
	}
}

// TestChunkIsUsedAgain: lines a little longer than a chunk take no chunk of new memory each time.
func TestChunkIsUsedAgain(t *testing.T) {
	n, b := New(Limits{}), new(Batch)
	body := []byte(strings.Repeat(articleLine+"\n", chunkBytes/len(articleLine)+10))
	read := func() {
		b.Reset()
		b.Expect(len(body) + len(body)/8)
		if err := n.Body(b, body, received); err != nil || len(b.Chunks()) != 1 {
			t.Fatal(err, len(b.Chunks()))
		}
	}
	read()
	const rounds = 10
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range rounds {
		read()
	}
	runtime.ReadMemStats(&after)
	if took := (after.TotalAlloc - before.TotalAlloc) / rounds; took > chunkBytes/4 {
		t.Errorf("%d bytes are allocated for %d bytes of lines", took, b.Size())
	}
}

// TestRejectionsAreBounded sends far more faults than are listed.
func TestRejectionsAreBounded(t *testing.T) {
	n, b := New(Limits{}), new(Batch)
	body := []byte("{}\n" + strings.Repeat("1\n{\n[2]\n", 10_000))
	got := testkit.Mallocs(func() {
		b.Reset()
		n.Body(b, body, received)
	})
	if b.Records != 1 || b.RejectedTotal != 30_000 || len(b.Rejected) != 100 {
		t.Fatalf("%d records, %d rejected, %d listed", b.Records, b.RejectedTotal, len(b.Rejected))
	}
	// The decoder allocates its errors, this package must add nothing.
	if got > 4*10_000+10*100 {
		t.Errorf("%d allocations for 30,000 faults", got)
	}
}

// TestManyNamesCostNoMoreEach guards against quadratic work in one event.
func TestManyNamesCostNoMoreEach(t *testing.T) {
	if testing.Short() {
		t.Skip("compares times")
	}
	// The fewest of several rounds in turn, as a busy machine disturbs some.
	cost := func(fields int) time.Duration {
		event := "{" + strings.Repeat(`"a":1,`, fields-1) + `"a":1}`
		body := []byte(strings.Repeat(event+"\n", 20_000/fields))
		n, b := New(Limits{}), new(Batch)
		best := time.Hour
		for range 5 {
			b.Reset()
			start := time.Now()
			n.Body(b, body, received)
			best = min(best, time.Since(start))
		}
		if b.RejectedTotal != 0 {
			t.Fatal(b.Rejected)
		}
		return best
	}
	few, many := cost(10), cost(1000)
	for round := 0; round < 50 && many > 5*few; round++ {
		few, many = min(few, cost(10)), min(many, cost(1000))
	}
	if many > 5*few {
		t.Errorf("20,000 fields took %v in events of 10 and %v in events of 1000", few, many)
	}
}

// BenchmarkArticle normalizes 100 of the article's events in one array; the
// other two decode, fill defaults and encode them with encoding/json: into the
// article's struct with its map, and into the same with raw metadata.
func BenchmarkArticle(b *testing.B) {
	body := articleBody(100)
	run := func(name string, body []byte, read func(body []byte) error) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if err := read(body); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100, "ns/event")
		})
	}
	n, batch := New(Limits{}), new(Batch)
	normalize := func(body []byte) error {
		batch.Reset()
		if err := n.Body(batch, body, received); err != nil || batch.Records != 100 {
			return fmt.Errorf("%d records, %w", batch.Records, err)
		}
		return nil
	}
	run("normalize", body, normalize)
	run("normalize-ndjson", []byte(strings.Repeat(article+"\n", 100)), normalize)
	run("encoding-json", body, decodeAndEncode[map[string]any])
	run("encoding-json-raw", body, decodeAndEncode[json.RawMessage])
}

func decodeAndEncode[Metadata any](body []byte) error {
	var events []struct {
		Service   string   `json:"service"`
		Level     string   `json:"level"`
		Message   string   `json:"message"`
		Timestamp string   `json:"timestamp"`
		TraceID   string   `json:"trace_id"`
		Metadata  Metadata `json:"metadata"`
	}
	if err := json.Unmarshal(body, &events); err != nil {
		return err
	}
	_, err := json.Marshal(events)
	return err
}
