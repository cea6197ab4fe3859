package ingest

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

// TestEventIsTheArticles: as its first figure shows it, except for the number.
func TestEventIsTheArticles(t *testing.T) {
	b := newBody(1)
	b.number(0x6f9c9b9d7a1a)
	want := `[{"service":"payment-api","level":"error","message":"failed to charge customer","timestamp":"2026-05-28T12:40:00Z","trace_id":"6f9c9b9d7a1a","metadata":{"customer_id":"cus_123","region":"eu-west","retry_count":2}}]`
	if string(b.data) != want {
		t.Errorf("got %s, want %s", b.data, want)
	}
}

func TestNumbers(t *testing.T) {
	b := newBody(3)
	b.number(0xfffe)
	for i, line := range strings.SplitAfter(string(b.data), "}}") {
		if i == 3 {
			break // the bracket
		}
		if n, err := numberOf([]byte(line)); err != nil || n != 0xfffe+uint64(i) {
			t.Errorf("event %d has number %d, %v", i, n, err)
		}
	}
	for _, line := range []string{"", `{"trace_id":"`, `{"trace_id":"0000"}`, `{"trace_id":"00000000000x"}`, `{"trace_id":"0000000000000"}`} {
		if n, err := numberOf([]byte(line)); err == nil {
			t.Errorf("%q has number %d", line, n)
		}
	}
}

// TestArticlePayload: both versions queue what came in.
func TestArticlePayload(t *testing.T) {
	for _, pooled := range []bool{false, true} {
		var got []logEvent
		h := &article{pooled: pooled, queue: func(p []byte) {
			if err := json.Unmarshal(p, &got); err != nil {
				t.Fatal(err)
			}
		}}
		x, err := newExchange(100)
		if err != nil {
			t.Fatal(err)
		}
		if code := x.serve(h, 7); code != http.StatusAccepted {
			t.Fatalf("pooled %t: status %d", pooled, code)
		}
		var want []logEvent
		if err := json.Unmarshal(x.body.data, &want); err != nil {
			t.Fatal(err)
		}
		if len(got) != 100 || !reflect.DeepEqual(got, want) {
			t.Errorf("pooled %t: %v queued", pooled, got)
		}
	}
}

// TestBuilder: nothing of one event is in the next.
func TestBuilder(t *testing.T) {
	b := newBuilder()
	b.fill(logEvent{Service: "a", Level: "error", Message: "m", TraceID: "t", Metadata: map[string]any{"n": 2.0, "s": "v", "b": true, "none": nil}})
	want := &builder{"a", "error", "m", "t", map[string]string{"n": "2.000000", "s": "v", "b": "true", "none": "<nil>"}}
	if !reflect.DeepEqual(b, want) {
		t.Errorf("built %v, want %v", b, want)
	}
	if b.reset(); !reflect.DeepEqual(b, &builder{fields: map[string]string{}}) {
		t.Errorf("%v is left", b)
	}
}

// TestReadBackFails on events that are missing or too many.
func TestReadBackFails(t *testing.T) {
	h, j, err := own{}.open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	x, err := newExchange(10)
	if err != nil {
		t.Fatal(err)
	}
	for _, first := range []uint64{0, 10} {
		if code := x.serve(h, first); code != http.StatusOK {
			t.Fatal(code)
		}
	}
	if err := checkAll(j, 20); err != nil {
		t.Error(err)
	}
	for _, n := range []uint64{19, 21} {
		if checkAll(j, n) == nil {
			t.Errorf("%d events passed for 20", n)
		}
	}
	if x.serve(h, 10); checkAll(j, 30) == nil {
		t.Error("events that are there twice passed")
	}
}

// TestBenchmarkIsTheArticles: a builder for each event before there is a pool, and
// none with it. What it costs is measured; this is the order of it.
func TestBenchmarkIsTheArticles(t *testing.T) {
	count := map[bool]float64{}
	for _, pooled := range []bool{false, true} {
		run := benchmarkRun(pooled)
		run.Loop(0, 1) // fills the pools
		count[pooled] = testing.AllocsPerRun(20, func() { run.Loop(0, 1) })
	}
	if saved := count[false] - count[true]; saved < 300 {
		t.Errorf("a body of 100 events: %v allocations without pools and %v with them; a builder and its map for each event are 3 or more", count[false], count[true])
	}
}
