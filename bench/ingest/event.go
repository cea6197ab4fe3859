package ingest

import (
	"bytes"
	"fmt"
	"strconv"
)

// event is the article's, with a number instead of its trace id.
const event = `{"service":"payment-api","level":"error","message":"failed to charge customer","timestamp":"2026-05-28T12:40:00Z","trace_id":"` + zeros + `","metadata":{"customer_id":"cus_123","region":"eu-west","retry_count":2}}`

const (
	zeros   = "000000000000" // as long as the article's trace id
	traceID = `"trace_id":"`
)

// A body is a JSON array of events whose numbers can be changed in place.
type body struct {
	data    []byte
	numbers []int // positions in data of each event's number
}

func newBody(events int) *body {
	b := &body{data: []byte{'['}}
	for i := range events {
		if i > 0 {
			b.data = append(b.data, ',')
		}
		at := len(b.data)
		b.data = append(b.data, event...)
		b.numbers = append(b.numbers, at+bytes.Index(b.data[at:], []byte(zeros)))
	}
	b.data = append(b.data, ']')
	return b
}

// number gives the events the numbers from first on.
func (b *body) number(first uint64) {
	const digits = "0123456789abcdef"
	for i, at := range b.numbers {
		n := first + uint64(i)
		for k := at + len(zeros) - 1; k >= at; k-- {
			b.data[k] = digits[n&15]
			n >>= 4
		}
	}
}

// numberOf returns the number of the event in a line.
func numberOf(line []byte) (uint64, error) {
	_, rest, ok := bytes.Cut(line, []byte(traceID))
	if !ok || len(rest) <= len(zeros) || rest[len(zeros)] != '"' {
		return 0, fmt.Errorf("a line without a number: %.300q", line)
	}
	return parseNumber(rest)
}

// parseNumber reads the number that b begins with.
func parseNumber(b []byte) (uint64, error) {
	if len(b) < len(zeros) {
		return 0, fmt.Errorf("not a number: %q", b)
	}
	n, err := strconv.ParseUint(string(b[:len(zeros)]), 16, 64)
	if err != nil {
		return 0, fmt.Errorf("not a number: %.300q", b)
	}
	return n, nil
}
