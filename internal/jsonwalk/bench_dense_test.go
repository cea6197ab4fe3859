package jsonwalk

import (
	"encoding/json"
	"testing"
)

// BenchmarkAppendChecked reads an event that is in a string.
func BenchmarkAppendChecked(b *testing.B) {
	const event = `{"service":"payment-api","level":"error","message":"failed to charge customer","timestamp":"2026-05-28T12:40:00Z","trace_id":"6f9c9b9d7a1a","metadata":{"customer_id":"cus_123","region":"eu-west","retry_count":2}}`
	raw, _ := json.Marshal(event)
	line := append(raw, `,"stream":"stderr"}`...)
	var out []byte
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		var exact bool
		if out, _, exact = AppendChecked(out[:0], line, 0); !exact || len(out) != len(event) {
			b.Fatal(exact)
		}
	}
}
