package main

import (
	"bytes"
	"encoding/json"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/textlog"
	"github.com/rollway/rollway/internal/jsonline"
)

type encoder struct {
	service string
	attrs   attrList
	file    string // for lines of text; empty: none
	apart   bool   // lines are not joined

	text []byte // of several lines
}

// appendEvent appends the event of line, without a line end. A JSON object stays as it
// is; -service and -attr are added at its end if it lacks them.
func (e *encoder) appendEvent(dst, line []byte) []byte {
	if object, ok := e.object(line); ok {
		if e.service == "" && len(e.attrs) == 0 {
			return append(dst, object...)
		}
		return e.appendObject(dst, object)
	}
	dst = append(dst, `{"msg":`...)
	dst = jsonline.AppendStringBytes(dst, line)
	if e.service != "" {
		dst = append(dst, `,"service":`...)
		dst = jsonline.AppendString(dst, e.service)
	}
	if e.file != "" || len(e.attrs) > 0 {
		dst = append(dst, `,"attrs":`...)
		dst = e.appendAttrs(dst, e.file)
	}
	return append(dst, '}')
}

func (e *encoder) appendAttrs(dst []byte, file string) []byte {
	attrs := e.attrs
	if file != "" {
		attrs = append(attrList{{"file", file}}, attrs...)
	}
	for i, a := range attrs {
		dst = append(dst, "{,"[min(i, 1)])
		dst = append(jsonline.AppendString(dst, a.key), ':')
		dst = jsonline.AppendString(dst, a.value)
	}
	return append(dst, '}')
}

// object returns line if it is a JSON object, with invalid UTF-8 replaced.
func (e *encoder) object(line []byte) ([]byte, bool) {
	trimmed := bytes.Trim(line, " \t\r")
	if len(trimmed) < 2 || trimmed[0] != '{' || trimmed[len(trimmed)-1] != '}' {
		return nil, false
	}
	if !utf8.Valid(trimmed) {
		trimmed = []byte(string([]rune(string(trimmed))))
	}
	return trimmed, json.Valid(trimmed)
}

// appendObject appends a JSON object with -service and -attr at its end.
func (e *encoder) appendObject(dst, object []byte) []byte {
	names, err := topNames(object)
	if err != nil {
		return append(dst, object...) // the collector reports the error
	}
	dst = append(dst, bytes.TrimRight(object[:len(object)-1], " \t\r")...)
	add := func(name string) {
		if dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
		dst = append(jsonline.AppendString(dst, name), ':')
	}
	saysService := func(name string) bool {
		slot, _ := (*normalize.Keys)(nil).ReadAs(name)
		return slot == "service"
	}
	if e.service != "" && !slices.ContainsFunc(names, saysService) {
		add("service")
		dst = jsonline.AppendString(dst, e.service)
	}
	if len(e.attrs) > 0 {
		// The collector merges objects with these names.
		free := slices.DeleteFunc([]string{"attrs", "attributes", "metadata", "fields", "context"}, func(name string) bool { return slices.Contains(names, name) })
		if len(free) > 0 {
			add(free[0])
			dst = e.appendAttrs(dst, "")
		}
	}
	return append(dst, '}')
}

func topNames(object []byte) (names []string, err error) {
	d := jsontext.NewDecoder(bytes.NewReader(object), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	err = members(d, func(name string) error {
		names = append(names, name)
		return d.SkipValue()
	})
	return names, err
}

// wouldWait reports whether reading the next line of a stream would block.
func (in *input) wouldWait() bool {
	if !in.stream {
		return false
	}
	have, _ := in.text.Peek(in.text.Buffered())
	return bytes.IndexByte(have, '\n') < 0
}

// join returns a line with those after it that only continue it, as far as they can be read
// without waiting for a stream.
func (in *input) join(b *batch, enc *encoder, line []byte, limit int, t *tally) []byte {
	if _, is := enc.object(line); is || enc.apart {
		return line
	}
	enc.text = append(enc.text[:0], line...)
	var joiner textlog.Joiner
	joiner.Next(enc.text[:len(line):len(line)])
	for n := 1; n < textlog.MaxJoined; n++ {
		more := in.peekLine()
		if _, is := enc.object(more); is || more == nil || len(enc.text)+len(more) >= min(limit, mostJoined) || !joiner.Next(more) {
			break
		}
		before := in.offset
		next, err := in.next(limit)
		if err != nil || next.tooLong > 0 { // it was there
			break
		}
		t.read++
		t.joined++
		b.read += in.offset - before
		enc.text = joiner.Append(enc.text, next.text)
	}
	return enc.text
}

// mostJoined is how many bytes joined lines may have.
const mostJoined = 128 << 10

// peekLine returns the next line, if it is whole; nil: it is not known.
func (in *input) peekLine() []byte {
	if in.text.Buffered() == 0 && in.stream {
		return nil
	}
	have, _ := in.text.Peek(in.text.Buffered())
	end := bytes.IndexByte(have, '\n')
	if end < 0 && !in.stream { // there may be more in the file
		have, _ = in.text.Peek(readBuffer)
		end = bytes.IndexByte(have, '\n')
	}
	if end < 0 {
		return nil
	}
	return bytes.TrimSuffix(have[:end], []byte("\r"))
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
	*b = batch{body: b.body[:0], ends: b.ends[:0], numbers: b.numbers[:0]}
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
		number := in.lines
		b.body = append(enc.appendEvent(b.body, in.join(b, enc, line.text, limit, t)), '\n')
		b.ends = append(b.ends, len(b.body))
		b.numbers = append(b.numbers, number)
	}
	return nil
}
