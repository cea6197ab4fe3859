package loki

import (
	"bytes"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rollway/rollway/collector/receiver/wire"
	"github.com/rollway/rollway/collector/textlog"
	"github.com/rollway/rollway/internal/jsonwalk"
)

// join appends to the line of an entry those of the entries after it that only continue it.
// ahead returns the line of the next entry, if it has the same metadata; take passes over it.
func (r *reader) join(e *entry, ahead func() ([]byte, bool), take func()) error {
	most := r.q.Norm.MostJoined()
	if most == 0 || len(e.line) == 0 {
		return nil
	}
	r.joiner = textlog.Joiner{}
	r.joiner.Next(e.line)
	for joined := 0; ; joined++ {
		line, is := ahead()
		if !is || joined == textlog.MaxJoined || len(e.line)+len(line) >= most || !r.joiner.Next(line) {
			return nil
		}
		if err := r.room(len(e.line) + 1 + len(line)); err != nil {
			return err
		}
		start := len(r.values)
		if joined > 0 { // it is the last of values
			start -= len(e.line)
		} else {
			r.values = append(r.values, e.line...)
		}
		e.line = r.joiner.Append(r.values[start:], line)
		r.values = r.values[:start+len(e.line)]
		e.line = e.line[:len(e.line):len(e.line)]
		take()
	}
}

// jsonLine returns the line of the value after an offset and where that value ends, if its
// structured metadata is the same text as that of an entry.
func (r *reader) jsonLine(e *entry, at int) (line []byte, end int, is bool) {
	at = jsonwalk.SkipSpace(r.Body, at)
	if r.Kind(at) != ',' {
		return nil, 0, false
	}
	at = jsonwalk.SkipSpace(r.Body, at+1)
	w := r.Elements(at)
	w.Next() // the time
	if !w.Next() || w.Kind() != '"' {
		return nil, 0, false
	}
	raw := w.RawValue()
	var metadata []byte
	if w.Next() {
		metadata = w.RawValue()
	}
	if !bytes.Equal(metadata, e.metadata) || w.Next() {
		return nil, 0, false
	}
	return r.Text(raw), w.End(), w.End() > 0
}

// protobufLine returns the line of the entry after the field of a stream, if its structured
// metadata is that of the entry before.
func (r *reader) protobufLine(stream *wire.Fields) (line []byte, is bool) {
	next := *stream
	if !next.Next() || next.Num != 2 || !next.Is(protowire.BytesType) {
		return nil, false
	}
	f, n := wire.Over(next.Bytes), 0
	for f.Next() {
		switch {
		case f.Num == 2 && f.Is(protowire.BytesType):
			line = f.Bytes
		case f.Num != 1:
			name, value, err := wire.Pair(f.Bytes)
			if !f.Is(protowire.BytesType) || err != nil || n == len(r.metadata) || !bytes.Equal(name, r.metadata[n].name) || !bytes.Equal(value, r.metadata[n].value) {
				return nil, false
			}
			n++
		}
	}
	return line, f.Err() == nil && n == len(r.metadata)
}
