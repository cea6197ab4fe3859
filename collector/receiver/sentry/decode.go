// Package sentry takes what the SDKs of Sentry send: envelopes, and the single
// events of older ones.
//
// An envelope is a line with its header, then items: a line with the item's header
// and a payload, as long as the header's length says, or else up to the end of
// the line. Items of the types event and log become lines. Items of other types, such as
// transactions and sessions, are no logs: they are acknowledged, counted by type, and not
// kept.
//
//	event                                              log
//	time      timestamp, a string or seconds           timestamp
//	level     level; without one ERROR                 level
//	msg       logentry or message: the formatted       body
//	          text, or else the message, or else
//	          "TYPE: VALUE" of the exception
//	logger    logger                                   attributes' logger.name
//	service                                            attributes' service.name
//	trace_id  contexts.trace.trace_id, likewise        trace_id, span_id
//	          span_id
//	error     the last of exception.values, its value
//	          called message, with its stack trace;
//	          those that caused it in causes
//
// All else is in attrs under its name, a log's attributes by their values alone, and the
// project of the path as project. The envelope's header, with the public key, is not kept.
//
// The answer has the event's id. A request with one event is remembered by that id, see
// receiver.Request.SetKey. A full collector answers 429 for all categories: clients drop
// events until then, as they do with any answer but 200.
package sentry

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"

	"github.com/rollway/rollway/collector/pool"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/wire"
	"github.com/rollway/rollway/internal/jsonwalk"
)

// Envelope is the protocol of /api/PROJECT/envelope/, Store that of
// /api/PROJECT/store/.
var (
	Envelope receiver.Protocol = envelope{}
	Store    receiver.Protocol = store{}
)

type envelope struct{ answerer }

// decoder is the memory of one Decode.
type decoder struct {
	wire.Event
	project []byte
	message []byte   // put together
	id      []byte   // of the event, without quotes
	causes  [][]byte // of an exception, while they are turned round
	events  int      // stored
}

var decoders = pool.Pool[*decoder]{New: func() *decoder { return new(decoder) }}

// Memory is for the pool.
func (d *decoder) Memory() pool.Memory { return pool.Memory{d.project, d.message, d.Scratch(), d.id} }

// Decode reads an envelope.
func (envelope) Decode(q *receiver.Request) error { return decode(q, (*decoder).envelope) }

// maxProject is longer than any project's name, in bytes.
const maxProject = 64

func decode(q *receiver.Request, read func(*decoder, []byte) error) error {
	project := q.HTTP.PathValue("project")
	if len(project) > maxProject {
		return fmt.Errorf("the project's name of %d bytes is longer than %d", len(project), maxProject)
	}
	d := decoders.Get()
	defer decoders.Put(d)
	d.Builder = q.Norm.Build(q.Batch, q.Received)
	d.project = append(d.project[:0], project...)
	d.id, d.events = d.id[:0], 0
	err := read(d, q.Body)
	d.Done()
	q.Note = q.Note[:0]
	if err == nil {
		d.setKey(q)
		q.Note = append(append(q.Note, '+'), d.id...) // never empty
	}
	return err
}

// errEmpty refuses a body without anything.
var errEmpty = &receiver.Refusal{Code: http.StatusBadRequest, Text: "the body is empty; expected an envelope", Empty: true}

// envelope reads an envelope. The error is that of the request.
func (d *decoder) envelope(rest []byte) error {
	if len(bytes.TrimSpace(rest)) == 0 {
		return errEmpty
	}
	line, rest, _ := bytes.Cut(rest, newline)
	header, _, err := wire.Object(line, "it")
	if err != nil {
		return fmt.Errorf("invalid envelope header: %w", err)
	}
	d.setID(wire.Get(header, "event_id"))
	for n := 0; ; n++ {
		rest = bytes.TrimLeft(rest, "\r\n")
		if len(rest) == 0 {
			return nil
		}
		line, rest, _ = bytes.Cut(rest, newline)
		if header, _, err = wire.Object(line, "it"); err != nil {
			return fmt.Errorf("invalid header of item %d: %w", n, err)
		}
		var payload []byte
		if payload, rest, err = cutPayload(header, rest); err != nil {
			return fmt.Errorf("item %d: %w", n, err)
		}
		d.item(wire.Get(header, "type"), payload)
	}
}

var newline = []byte("\n")

// cutPayload cuts the payload of an item off.
func cutPayload(header, b []byte) (payload, rest []byte, err error) {
	length := wire.Get(header, "length")
	if length == nil || wire.IsNull(length) {
		payload, rest, _ = bytes.Cut(b, newline)
		return payload, rest, nil
	}
	n := 0
	for _, c := range length {
		if c < '0' || c > '9' || n > len(b) {
			n = -1
			break
		}
		n = n*10 + int(c-'0')
	}
	if n < 0 || n > len(b) {
		return nil, nil, fmt.Errorf("its length is %.20s, but %d bytes follow", length, len(b))
	}
	rest = b[n:]
	if len(rest) > 0 && rest[0] != '\n' && rest[0] != '\r' {
		return nil, nil, fmt.Errorf("the line does not end after its length of %d bytes", n)
	}
	return b[:n], rest, nil
}

// setKey names the request by its event, if it has one alone: so an event that
// is sent again is stored once. The number of events is part of the name, as an
// envelope may have others beside the one.
func (d *decoder) setKey(q *receiver.Request) {
	if d.events != 1 {
		return
	}
	var id [32]byte
	n := 0
	for _, c := range d.id {
		if c == '-' {
			continue
		}
		if n == len(id) {
			return
		}
		id[n] = c | ' ' // lower case; digits stay
		n++
	}
	if n < len(id) || bytes.Count(id[:], zero) == n {
		return
	}
	b := q.Batch
	q.SetKey("sentry/" + string(d.project) + "/" + string(id[:]) + "/" + strconv.Itoa(b.Events()))
}

var zero = []byte("0")

// setID notes the id of an event unless there is one: hexadecimal digits and
// dashes alone, as it is sent back.
func (d *decoder) setID(raw []byte) {
	if len(d.id) > 0 || !wire.IsString(raw) || len(raw) > 64 {
		return
	}
	for _, c := range raw[1 : len(raw)-1] {
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' || c == '-') {
			return
		}
	}
	d.id = append(d.id, raw[1:len(raw)-1]...)
}

func (d *decoder) item(kind, payload []byte) {
	switch {
	case kind != nil && jsonwalk.Equal(kind, "event"):
		if value := d.payload(payload); value != nil {
			d.event(value)
		}
	case kind != nil && jsonwalk.Equal(kind, "log"):
		if value := d.payload(payload); value != nil {
			d.logs(value)
		}
	default:
		d.Ignore(typeOf(kind))
	}
}

// otherTypes are the types of items that SDKs and Sentry's Relay send besides event and
// log, for the label of a metric.
var otherTypes = []string{
	"transaction", "span", "attachment", "client_report", "session", "sessions", "check_in", "feedback", "user_report",
	"profile", "profile_chunk", "replay_event", "replay_recording", "replay_video", "trace_metric", "statsd",
	"metric_buckets", "metric_meta", "security", "raw_security", "nel", "form_data", "unreal_report",
}

// typeOf returns the type of an item, "other" if otherTypes does not list it.
func typeOf(kind []byte) string {
	for _, t := range otherTypes {
		if kind != nil && jsonwalk.Equal(kind, t) {
			return t
		}
	}
	return "other"
}

// payload returns the object in a payload. Otherwise it counts as one rejected
// event.
func (d *decoder) payload(text []byte) []byte {
	value, reason, err := wire.Object(text, "the payload")
	if err != nil && d.Start(text) {
		detail := ""
		if d.Describes() {
			detail = err.Error()
		}
		d.Reject(reason, detail)
	}
	return value
}

// end ends an event with the project that it is of; false if it is rejected.
func (d *decoder) end() bool {
	if len(d.project) > 0 {
		d.Attr(nameProject)
		d.String(d.project)
	}
	return d.End()
}

var nameProject = []byte("project")

type store struct{ answerer }

// Decode reads one event.
func (store) Decode(q *receiver.Request) error { return decode(q, (*decoder).single) }

func (d *decoder) single(body []byte) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return errEmpty
	}
	value, _, err := wire.Object(body, "it")
	if err != nil {
		return fmt.Errorf("invalid event: %w", err)
	}
	d.event(value)
	return nil
}

// The context of an event that is rejected is its kind. The project is
// in the name of the receiver.
const (
	kindEvent = "event"
	kindLog   = "log"
)

func (d *decoder) keepKind(kind string) {
	d.Context(len(kind), func(dst []byte) []byte { return append(dst, kind...) })
}

// Reread implements receiver.Rereader.
func (answerer) Reread(q *receiver.Request, context []byte) error {
	if string(context) != kindLog {
		return decode(q, (*decoder).single)
	}
	return decode(q, func(d *decoder, body []byte) error {
		value, _, err := wire.Object(body, "it")
		if err != nil {
			return fmt.Errorf("invalid log: %w", err)
		}
		if d.Start(value) {
			d.log(value)
		}
		return nil
	})
}
