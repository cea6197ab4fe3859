package forward

import (
	"errors"
	"fmt"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/wire"
	"github.com/rollway/rollway/internal/jsonline"
	"github.com/rollway/rollway/internal/jsonwalk"
)

// beginsJSON reports whether a message that begins with c is in JSON: no message in
// MessagePack begins so.
func beginsJSON(c byte) bool { return c == '[' || c == '{' || jsonwalk.IsSpace(c) }

// jsonEnd finds the end of an array or an object, and goes on from where it was when more
// bytes have come.
type jsonEnd struct {
	at       int
	depth    int
	inString bool
	escaped  bool
}

// value returns the length of the value at the beginning of b, which begins with what the
// call before was given. The error is errShort if more is needed. White space is a value,
// too.
func (w *jsonEnd) value(b []byte) (n int, err error) {
	if n = jsonwalk.SkipSpace(b, 0); n > 0 {
		return n, nil
	}
	for ; w.at < len(b); w.at++ {
		switch c := b[w.at]; {
		case w.escaped:
			w.escaped = false
		case w.inString:
			w.escaped, w.inString = c == '\\', c != '"'
		case c == '"':
			w.inString = true
		case c == '[' || c == '{':
			w.depth++
		case c == ']' || c == '}':
			if w.depth--; w.depth == 0 {
				n, *w = w.at+1, jsonEnd{}
				return n, nil
			}
		}
	}
	return 0, errShort
}

// readJSON is readDelivery for a message in JSON, which has the form of one in MessagePack.
func readJSON(data []byte) (m delivery, err error) {
	if jsonwalk.IsSpace(data[0]) {
		return m, nil
	}
	value, err := wire.Value(data)
	if err != nil {
		return m, fmt.Errorf("not a message of the forward protocol: %w", err)
	}
	var parts [5][]byte
	n := 0
	if wire.IsArray(value) {
		for w := wire.Elements(value); n < len(parts) && w.Next(); n++ {
			parts[n] = w.RawValue()
		}
	}
	if n < 2 || n > 4 || !wire.IsString(parts[0]) {
		return m, errors.New("not a message of the forward protocol: expected an array of a tag, entries or a time and a record, and an option")
	}
	m.tag, m.json = parts[0], value
	option := parts[2]
	if m.oneEvent = !wire.IsArray(parts[1]); m.oneEvent {
		if wire.IsString(parts[1]) || n < 3 {
			return m, errors.New("not a message of the forward protocol: it has a time and no record, or packed entries, which take MessagePack")
		}
		option = parts[3]
	}
	if wire.IsObject(option) {
		m.option.readJSON(option)
	}
	return m, nil
}

// readJSON is read for an object.
func (o *option) readJSON(object []byte) {
	fluentBit := false
	for w := wire.Members(object); w.Next(); {
		switch {
		case w.Is("chunk") && wire.IsString(w.RawValue()):
			o.chunk = w.RawValue()
			text, _ := jsonwalk.Text(o.chunk, nil)
			o.named = o.id.parse(text)
		case w.Is("fluent_signal"):
			fluentBit = true
		}
	}
	o.named = o.named && !fluentBit
}

// jsonEntries adds the events of a message.
func (s *session) jsonEntries(c *receiver.Chunk, m *delivery) error {
	e := &s.inJSON
	e.Builder = c.Norm.Build(c.Batch, c.Received)
	defer e.Done()
	w := wire.Elements(m.json)
	w.Next()
	tag := w.RawValue()
	if w.Next(); m.oneEvent {
		jsonEvent(e, tag, w.RawValue(), &w, m.json)
		return nil
	}
	for w := wire.Elements(w.RawValue()); w.Next(); {
		if c.Batch.Overflowed() {
			return receiver.ErrInflateMemory
		}
		jsonEntry(e, tag, w.RawValue())
	}
	return nil
}

// jsonEntry adds the event of one [time, record].
func jsonEntry(e *wire.Event, tag, entry []byte) {
	if wire.IsArray(entry) {
		if w := wire.Elements(entry); w.Next() {
			jsonEvent(e, tag, w.RawValue(), &w, entry)
			return
		}
	}
	e.Raw(entry)
	e.Reject(normalize.ReasonNotObject, "an entry is no array of a time and a record")
}

// jsonEvent adds the event of a time and the record that rest goes to next.
func jsonEvent(e *wire.Event, tag, at []byte, rest *jsonwalk.Walk, raw []byte) {
	if !e.Start(raw) {
		return
	}
	var record []byte
	if rest.Next() {
		record = rest.RawValue()
	}
	if !wire.IsObject(record) && !wire.IsString(record) {
		e.Reject(normalize.ReasonNotObject, "a record is no object")
		keepTag(e.Builder, e.Text(tag))
		return
	}
	if jsonwalk.IsDigit(at[0]) && at[0] != '0' {
		e.Slot(normalize.Time)
		e.JSON(at)
	}
	e.Attr(nameTag)
	e.String(e.Text(tag))
	if wire.IsString(record) {
		e.Slot(normalize.Message)
		e.JSON(record)
	} else {
		for w := wire.Members(record); w.Next() && !e.Failed(); {
			e.PutField(w.RawName(), w.RawValue())
		}
	}
	if !e.End() {
		keepTag(e.Builder, e.Text(tag))
	}
}

// rereadJSON is Reread for an event in JSON: a message with one, or an entry.
func rereadJSON(c *receiver.Chunk, tag []byte) error {
	s := new(session)
	if m, err := readJSON(c.Data); err == nil {
		return s.jsonEntries(c, &m)
	}
	entry, err := wire.Value(c.Data)
	if err != nil {
		return fmt.Errorf("not a time and a record: %w", err)
	}
	e := &s.inJSON
	e.Builder = c.Norm.Build(c.Batch, c.Received)
	defer e.Done()
	jsonEntry(e, jsonline.AppendStringBytes(nil, tag), entry)
	return nil
}

// keepTag keeps the tag with an event that was rejected.
func keepTag(b *normalize.Builder, tag []byte) {
	b.Context(len(tag), func(dst []byte) []byte { return append(dst, tag...) })
}
