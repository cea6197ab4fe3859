// Package splunk takes what clients of Splunk's HTTP Event Collector send.
//
// A body of events is objects in a row. "event" is a string, which becomes the message,
// or an object, whose members are read as package normalize reads those of an event, and
// so are those of an object under "message" in it. "time" is the line's time; the members
// of "fields" go to attrs, and so do host, source, sourcetype and index: source is not
// where in a program the line was made. In a raw body each line that is not blank is a
// message, and the query has host and the like. What only continues the line before belongs
// to its event: a line of a raw body, and an event that differs in nothing but its text and
// time.
//
// What cannot be stored is left out, and the answer is 400 with the code and number of
// the first event that was left out; after text that is not JSON nothing more is read. As
// an answer is sent only when its events are stored, every ackId that a client with a
// channel gets is acknowledged when asked for.
package splunk

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/http"
	"net/url"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/pool"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/wire"
	"github.com/rollway/rollway/internal/jsonline"
	"github.com/rollway/rollway/internal/jsonwalk"
)

// Event is the protocol of /services/collector/event, Raw that of
// /services/collector/raw.
var (
	Event receiver.Protocol = event{}
	Raw   receiver.Protocol = raw{}
)

type event struct{ answerer }

// decoder is the memory of one Decode.
type decoder struct {
	wire.Event
	lines  wire.Joiner
	code   byte // of the first event that was left out
	first  int  // its number
	number int  // of the event
	seen   int  // events so far, and that one
}

// messageNames are those of a text that an agent has read as a line: the event itself, or in
// it those of Docker's driver, Fluent Bit and Splunk's own collectors.
var messageNames = wire.Names("event", "line", "log", "message")

var decoders = pool.Pool[*decoder]{New: func() *decoder { return new(decoder) }}

// Memory is for the pool.
func (d *decoder) Memory() pool.Memory { return d.lines.Memory(d.Scratch()) }

// errNoData is Splunk's answer to a body without an event.
var errNoData = &receiver.Refusal{Code: http.StatusBadRequest, Text: codes[noData].text, Empty: true}

// Decode reads events in a row.
func (event) Decode(q *receiver.Request) error {
	d := decoders.Get()
	defer decoders.Put(d)
	d.begin(q)
	d.events(q.Body)
	return d.end(q)
}

func (d *decoder) begin(q *receiver.Request) {
	d.code, d.first, d.number, d.seen = success, 0, 0, 0
	d.lines.Names, d.lines.Most = messageNames, q.Norm.MostJoined()
	d.Builder = q.Norm.Build(q.Batch, q.Received)
}

// end leaves a note for Answer: the code, 1 if there is a channel, and the
// number of the first event that was left out, as uvarint.
func (d *decoder) end(q *receiver.Request) error {
	d.Done()
	if d.seen == 0 {
		return errNoData
	}
	channel := byte(0)
	if q.HTTP.Header.Get("X-Splunk-Request-Channel") != "" || q.HTTP.URL.RawQuery != "" && q.HTTP.URL.Query().Get("channel") != "" {
		channel = 1
	}
	q.Note = append(q.Note[:0], d.code, channel)
	q.Note = binary.AppendUvarint(q.Note, uint64(d.first))
	return nil
}

// note notes the first event that is left out; it is the one last seen.
func (d *decoder) note(code byte) {
	if d.code == success {
		d.code, d.first = code, d.number
	}
}

func (d *decoder) reject(code byte, reason, detail string) {
	d.Reject(reason, detail)
	d.note(code)
}

func (d *decoder) events(body []byte) {
	for value, err := range d.lines.Each(body) { // some clients send one array
		d.number, d.seen = d.seen, d.seen+d.lines.Count
		if err == nil {
			d.event(value)
			continue
		}
		d.Raw(value)
		d.reject(invalidData, normalize.ReasonSyntax, fmt.Sprintf("event %d: %v", d.number, err))
	}
}

func (d *decoder) event(value []byte) {
	if !d.Start(value) {
		d.note(busy)
		return
	}
	if !wire.IsObject(value) {
		d.reject(invalidData, normalize.ReasonNotObject, "an event is not an object")
		return
	}
	content := wire.Get(value, "event")
	switch {
	case content == nil || wire.IsNull(content):
		d.reject(eventMissing, normalize.ReasonUnsupported, codes[eventMissing].text)
		return
	case jsonwalk.Equal(content, ""):
		d.reject(eventBlank, normalize.ReasonUnsupported, codes[eventBlank].text)
		return
	}
	if fields := wire.Get(value, "fields"); fields != nil && !wire.IsObject(fields) && !wire.IsNull(fields) {
		d.reject(fieldsBroken, normalize.ReasonUnsupported, codes[fieldsBroken].text)
		return
	}
	d.line(value, content)
	if !d.End() {
		d.note(invalidData)
	}
}

// line gives an event to the Builder: its time first, which counts before one
// within, then the content, then the rest.
func (d *decoder) line(value, content []byte) {
	if time := wire.Get(value, "time"); time != nil && !wire.IsNull(time) {
		d.Slot(normalize.Time)
		d.JSON(time)
	}
	switch {
	case wire.IsObject(content):
		d.members(content, true)
	case wire.IsArray(content):
		d.Attr([]byte("event"))
		d.JSON(content)
	default:
		d.SlotNamed(normalize.Message, []byte("event"))
		d.JSON(content)
	}
	var time, event bool
	for w := wire.Members(value); w.Next() && !d.Failed(); {
		switch {
		case !time && w.Is("time"):
			time = true
		case !event && w.Is("event"):
			event = true
		case w.Is("fields") && wire.IsObject(w.RawValue()):
			for f := wire.Members(w.RawValue()); f.Next() && !d.Failed(); {
				d.PutAttr(f.RawName(), f.RawValue())
			}
		default:
			d.PutAttr(w.RawName(), w.RawValue())
		}
	}
}

// members gives the members of an event's object. Splunk's own libraries put
// what was logged into "message", Docker into "line": if that is an object, its
// members are the event's, and so are those of "meta" beside its "msg", of a transport of
// winston, which says the message again there.
func (d *decoder) members(object []byte, top bool) {
	for w := wire.Members(object); w.Next() && !d.Failed(); {
		name, value := w.RawName(), w.RawValue()
		switch {
		case top && (w.Is("message") || w.Is("line")) && wire.IsObject(value):
			d.members(value, false)
		case !top && w.Is("meta") && wire.IsObject(value):
			said := wire.Get(object, "msg")
			for m := wire.Members(value); m.Next() && !d.Failed(); {
				if !m.Is("message") || !bytes.Equal(m.RawValue(), said) {
					d.PutField(m.RawName(), m.RawValue())
				}
			}
		default:
			d.PutField(name, value)
		}
	}
}

type raw struct{ answerer }

// metadata are the parameters that say where raw lines are from.
var metadata = [...]string{"host", "source", "sourcetype", "index"}

// Decode reads lines of text.
func (raw) Decode(q *receiver.Request) error {
	var values, texts [len(metadata)][]byte // texts are JSON, made once: a host may have 60 KiB
	shared := 0
	if q.HTTP.URL.RawQuery != "" {
		query := q.HTTP.URL.Query()
		for i, name := range metadata {
			if v := query.Get(name); v != "" {
				values[i], texts[i] = []byte(v), jsonline.AppendString(nil, v)
				shared += len(name) + len(v)
			}
		}
	}
	d := decoders.Get()
	defer decoders.Put(d)
	d.begin(q)
	wire.Lines(d.Builder, q.Body, func() {
		d.number, d.seen = d.seen, d.seen+1
		for i, text := range texts {
			if text != nil && !d.Failed() {
				d.Attr([]byte(metadata[i]))
				d.JSON(text)
			}
		}
		if !d.End() {
			d.Context(shared+len(values), func(dst []byte) []byte { return appendQuery(dst, &values) })
			d.note(invalidData)
		}
	})
	return d.end(q)
}

// appendQuery appends metadata as the query that it came in; what else was there,
// a token perhaps, is not kept.
func appendQuery(dst []byte, values *[len(metadata)][]byte) []byte {
	for i, v := range values {
		if v != nil {
			dst = append(append(dst, metadata[i]...), '=')
			dst = append(append(dst, url.QueryEscape(string(v))...), '&')
		}
	}
	return bytes.TrimSuffix(dst, []byte("&"))
}

// Reread implements receiver.Rereader: the context of a line is what appendQuery
// has made.
func (r raw) Reread(q *receiver.Request, context []byte) error {
	q.HTTP.URL.RawQuery = string(context)
	return r.Decode(q)
}
