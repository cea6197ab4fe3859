package main

import (
	"bytes"
	"unicode/utf8"
)

// wouldWait reports whether reading the next line of a stream would block.
func (in *input) wouldWait() bool {
	if !in.stream {
		return false
	}
	have, _ := in.text.Peek(in.text.Buffered())
	return bytes.IndexByte(have, '\n') < 0
}

// Sizes of a batch.
const (
	batchLines = 1000
	batchBytes = 1 << 20
)

// A batch is the content of one request.
type batch struct {
	body    []byte // NDJSON
	ends    []int  // where each event ends in body
	numbers []int  // the line each event came from
	read    int64  // bytes of the lines read for it
}

// fill reads lines into b until it is full, the input ends (io.EOF), or reading a stream
// would block.
func (in *input) fill(b *batch, enc *encoder, limit int, t *tally, shown string) error {
	b.body, b.ends, b.numbers = b.body[:0], b.ends[:0], b.numbers[:0]
	b.read = 0
	for len(b.ends) < batchLines && len(b.body) < batchBytes {
		if len(b.ends) > 0 && in.wouldWait() {
			return nil
		}
		before := in.offset
		line, err := in.next(limit)
		if err != nil {
			return err
		}
		t.read++
		b.read += in.offset - before
		switch {
		case line.tooLong > 0:
			t.tooLong++
			t.reason(1, "%s:%d: the line has %s, more than -max-line", shown, in.lines, byteCount(line.tooLong))
			continue
		case len(line.text) == 0:
			t.empty++
			continue
		case !utf8.Valid(line.text):
			t.repaired++
		}
		b.body = append(enc.appendEvent(b.body, line.text), '\n')
		b.ends = append(b.ends, len(b.body))
		b.numbers = append(b.numbers, in.lines)
	}
	return nil
}
