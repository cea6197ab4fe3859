package otlp

import (
	"encoding/hex"
	"log/slog"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver/wire"
	"github.com/rollway/rollway/internal/jsonline"
)

// record is what a LogRecord holds besides its attributes.
type record struct {
	time, observed uint64
	severity       uint64
	severityText   []byte
	body           []byte
	dropped        uint64
	flags          uint64
	trace, span    []byte
	traceText      []byte
	spanText       []byte
	event          []byte
}

// record makes the event of a
//
//	LogRecord {
//		time_unix_nano 1 fixed64, observed_time_unix_nano 11 fixed64,
//		severity_number 2, severity_text 3, body 5 AnyValue, attributes 6,
//		dropped_attributes_count 7, flags 8 fixed32, trace_id 9, span_id 10,
//		event_name 12
//	}
func (r *reader) record(res *resource, sc *scope, msg []byte) error {
	var rec record
	b := r.b
	b.Begin()
	b.Raw(msg)
	if b.Failed() {
		r.end(res, sc)
		return nil
	}
	f := wire.Over(msg)
	for f.Next() {
		if f.Num == 6 && f.Is(protowire.BytesType) {
			kv, err := readKeyValue(f.Bytes)
			if err != nil {
				return err
			}
			b.Attr(kv.key)
			if err := r.value(kv.value); err != nil {
				return err
			}
			continue
		}
		rec.set(&f, r.json)
	}
	if err := broken("LogRecord", f.Err()); err != nil {
		return err
	}
	r.times(&rec)
	r.level(&rec)
	body, err := readAny(rec.body)
	if err != nil {
		return err
	}
	if err := r.message(&body); err != nil {
		return err
	}
	r.id(normalize.TraceID, rec.trace, rec.traceText, 16)
	r.id(normalize.SpanID, rec.span, rec.spanText, 8)
	r.textAttr(nameEvent, rec.event)
	r.countAttr(nameFlags, rec.flags)
	r.countAttr(nameDropped, rec.dropped)
	if err := r.scope(sc); err != nil {
		return err
	}
	if err := r.resource(res); err != nil {
		return err
	}
	if body.kind == anyList { // what the protocol itself says comes first
		if err := r.fields(body.bytes); err != nil {
			return err
		}
	}
	r.end(res, sc)
	return nil
}

// set takes a field other than an attribute.
func (rec *record) set(f *wire.Fields, json bool) {
	switch {
	case f.Is(protowire.Fixed64Type):
		switch f.Num {
		case 1:
			rec.time = f.Value
		case 11:
			rec.observed = f.Value
		}
	case f.Is(protowire.VarintType):
		switch f.Num {
		case 2:
			rec.severity = f.Value
		case 7:
			rec.dropped = f.Value
		}
	case f.Is(protowire.Fixed32Type):
		if f.Num == 8 {
			rec.flags = f.Value
		}
	case f.Is(protowire.BytesType):
		switch f.Num {
		case 3:
			rec.severityText = f.Bytes
		case 5:
			rec.body = f.Bytes
		case 9:
			rec.trace = f.Bytes
		case 10:
			rec.span = f.Bytes
		case 12:
			rec.event = f.Bytes
		case fieldTraceText:
			if json {
				rec.traceText = f.Bytes
			}
		case fieldSpanText:
			if json {
				rec.spanText = f.Bytes
			}
		}
	}
}

// times sets the event's time, and tells when it was observed if that is
// another.
func (r *reader) times(rec *record) {
	t := rec.time
	if t == 0 {
		t = rec.observed
	}
	if t == 0 {
		return
	}
	r.b.SetTime(int64(t/1e9), int(t%1e9))
	if rec.observed != 0 && rec.observed != t {
		r.text = jsonline.AppendUnix(r.text[:0], int64(rec.observed/1e9), int(rec.observed%1e9))
		r.b.Attr(nameObserved)
		r.b.String(r.text)
	}
}

// level sets the event's level. Numbers from 1 to 24 are slog's levels from -8
// to 15.
func (r *reader) level(rec *record) {
	var byText slog.Level
	known := false
	if len(rec.severityText) <= 24 { // no name is longer
		byText, known = normalize.ParseLevel(string(rec.severityText))
	}
	level := slog.LevelInfo
	switch {
	case rec.severity >= 1 && rec.severity <= 24:
		level = slog.Level(rec.severity) - 9
	case rec.severity != 0:
		r.b.Attr(nameSeverityNumber)
		r.b.Int(int64(int32(rec.severity)))
		fallthrough
	default:
		if known {
			level = byText
		}
	}
	if rec.severity != 0 || known {
		r.b.SetLevel(level)
	}
	if len(rec.severityText) > 0 && (!known || byText != level) {
		r.textAttr(nameSeverityText, rec.severityText)
	}
}

// message puts the body where it belongs, unless it is for fields.
func (r *reader) message(v *anyValue) error {
	switch v.kind {
	case anyEmpty, anyList:
		return nil
	case anyArray:
		r.b.Attr(nameBody)
	default:
		r.b.Slot(normalize.Message)
	}
	if v.kind == anyDouble && (math.IsNaN(v.double()) || math.IsInf(v.double(), 0)) {
		r.b.Float(v.double()) // a string
		return nil
	}
	return r.put(v)
}

// fields reads the KeyValues of a body as the members of an event, as agents send
// records whole there.
func (r *reader) fields(msg []byte) error {
	f := wire.Over(msg)
	for !r.b.Failed() && f.Next() {
		if f.Num != 1 || !f.Is(protowire.BytesType) {
			continue
		}
		kv, err := readKeyValue(f.Bytes)
		if err != nil {
			return err
		}
		r.b.Field(kv.key)
		if err := r.value(kv.value); err != nil {
			return err
		}
	}
	return broken("KeyValueList", f.Err())
}

// id puts an id into its slot: bytes of the length that it has as hexadecimal
// digits, others as the text that they are, or else as hexadecimal digits too.
func (r *reader) id(slot normalize.Slot, id, text []byte, size int) {
	switch {
	case len(text) > 0:
	case len(id) == 0 || len(id) == size && isZero(id):
		return
	case len(id) != size && isGraphic(id):
		text = id
	default:
		r.text = hex.AppendEncode(r.text[:0], id)
		text = r.text
	}
	r.b.Slot(slot)
	r.b.String(text)
	if cap(r.text) > keepScratch {
		r.text = nil
	}
}

func isZero(id []byte) bool {
	for _, c := range id {
		if c != 0 {
			return false
		}
	}
	return true
}

func isGraphic(id []byte) bool {
	for _, c := range id {
		if c < '!' || c > '~' {
			return false
		}
	}
	return true
}

// textAttr is an attribute if it is not empty.
func (r *reader) textAttr(name, text []byte) {
	if len(text) > 0 {
		r.b.Attr(name)
		r.b.String(text)
	}
}

// countAttr is an attribute if it is not zero.
func (r *reader) countAttr(name []byte, n uint64) {
	if n != 0 {
		r.b.Attr(name)
		r.b.Uint(uint64(uint32(n)))
	}
}
