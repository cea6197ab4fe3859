package otlp

import (
	"encoding/hex"
	"fmt"
	"log/slog"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rollway/rollway/collector/door/wire"
	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receive"
	"github.com/rollway/rollway/internal/jsonline"
)

// reader turns an ExportLogsServiceRequest into events. Nothing in it outlives
// the request.
type reader struct {
	q      *receive.Request
	b      *normalize.Builder
	spread int64 // bytes read for events, what they share counted for each
	json   bool  // the message is transcoded from JSON
	text   []byte

	transcoder
}

// keepScratch is the size from which memory does not go back to the pool.
const keepScratch = 1 << 20

func newReader() *reader {
	r := &reader{text: make([]byte, 0, 64)}
	r.transcoder.init()
	return r
}

func (r *reader) release() {
	r.q, r.b, r.spread, r.json = nil, nil, 0, false
	r.transcoder.release()
	readers.Put(r)
}

// Field numbers of LogRecord that this package gives to ids which are text, in
// what it transcodes from JSON.
const (
	fieldTraceText = 1001
	fieldSpanText  = 1002
)

// The parts of a request that are read once and needed for each record.
type (
	resource struct {
		msg       []byte // the message
		service   []byte // the value of service.name, if it is a string
		others    bool   // it has other attributes
		dropped   uint64
		schemaURL []byte
	}
	scope struct {
		msg        []byte
		name       []byte
		version    []byte
		attributes bool
		dropped    uint64
		schemaURL  []byte
	}
)

// read makes events of the records of msg.
//
//	ExportLogsServiceRequest { resource_logs 1 }
func (r *reader) read(q *receive.Request, msg []byte, json bool) error {
	r.q, r.json = q, json
	if json {
		r.spread = 2 * int64(len(q.Body)) // what transcode took
	}
	r.b = q.Norm.Build(q.Batch, q.Received)
	defer r.b.Done()
	f := wire.Over(msg)
	for f.Next() {
		if f.Num == 1 && f.Is(protowire.BytesType) {
			if err := r.resourceLogs(f.Bytes); err != nil {
				return err
			}
		}
	}
	return broken("ExportLogsServiceRequest", f.Err())
}

// broken names the message that an error of the wire format is in.
func broken(message string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the body is not a valid ExportLogsServiceRequest: %s: %w; nothing was stored", message, err)
}

// resourceLogs reads
//
//	ResourceLogs { resource 1, scope_logs 2, schema_url 3 }
//
// whose fields may come in any order.
func (r *reader) resourceLogs(msg []byte) error {
	var res resource
	f := wire.Over(msg)
	for f.Next() {
		if !f.Is(protowire.BytesType) {
			continue
		}
		switch f.Num {
		case 1:
			res.msg = f.Bytes
		case 3:
			res.schemaURL = f.Bytes
		}
	}
	if err := broken("ResourceLogs", f.Err()); err != nil {
		return err
	}
	if err := res.read(); err != nil {
		return err
	}
	f = wire.Over(msg)
	for f.Next() {
		if f.Num == 2 && f.Is(protowire.BytesType) {
			if err := r.scopeLogs(&res, f.Bytes); err != nil {
				return err
			}
		}
	}
	return nil
}

// read reads
//
//	Resource { attributes 1, dropped_attributes_count 2 }
func (res *resource) read() error {
	f := wire.Over(res.msg)
	for f.Next() {
		switch {
		case f.Num == 1 && f.Is(protowire.BytesType):
			kv, err := readKeyValue(f.Bytes)
			if err != nil {
				return err
			}
			if text, is := kv.service(); is && res.service == nil {
				res.service = text
			} else {
				res.others = true
			}
		case f.Num == 2 && f.Is(protowire.VarintType):
			res.dropped = f.Value
		}
	}
	return broken("Resource", f.Err())
}

// scopeLogs reads
//
//	ScopeLogs { scope 1, log_records 2, schema_url 3 }
func (r *reader) scopeLogs(res *resource, msg []byte) error {
	var sc scope
	f := wire.Over(msg)
	for f.Next() {
		if !f.Is(protowire.BytesType) {
			continue
		}
		switch f.Num {
		case 1:
			sc.msg = f.Bytes
		case 3:
			sc.schemaURL = f.Bytes
		}
	}
	if err := broken("ScopeLogs", f.Err()); err != nil {
		return err
	}
	if err := sc.read(); err != nil {
		return err
	}
	f = wire.Over(msg)
	for f.Next() {
		if f.Num == 2 && f.Is(protowire.BytesType) {
			r.spread += int64(len(res.msg)+len(res.schemaURL)+len(sc.msg)+len(sc.schemaURL)) + int64(len(f.Bytes))
			if err := r.q.Reserve(r.spread); err != nil {
				return err
			}
			if err := r.record(res, &sc, f.Bytes); err != nil {
				return err
			}
		}
	}
	return nil
}

// read reads
//
//	InstrumentationScope { name 1, version 2, attributes 3, dropped_attributes_count 4 }
func (sc *scope) read() error {
	f := wire.Over(sc.msg)
	for f.Next() {
		switch {
		case f.Num == 1 && f.Is(protowire.BytesType):
			sc.name = f.Bytes
		case f.Num == 2 && f.Is(protowire.BytesType):
			sc.version = f.Bytes
		case f.Num == 3 && f.Is(protowire.BytesType):
			sc.attributes = true
		case f.Num == 4 && f.Is(protowire.VarintType):
			sc.dropped = f.Value
		}
	}
	return broken("InstrumentationScope", f.Err())
}

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
	if err := r.message(rec.body); err != nil {
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

// message puts the body where it belongs.
func (r *reader) message(body []byte) error {
	v, err := readAny(body)
	switch {
	case err != nil:
		return err
	case v.kind == anyEmpty:
		return nil
	case v.kind == anyArray || v.kind == anyList:
		r.b.Attr(nameBody)
	default:
		r.b.Slot(normalize.Message)
	}
	if v.kind == anyDouble && (math.IsNaN(v.double()) || math.IsInf(v.double(), 0)) {
		r.b.Float(v.double()) // a string
		return nil
	}
	return r.put(&v)
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

func (r *reader) scope(sc *scope) error {
	if len(sc.name) > 0 {
		r.b.Slot(normalize.Logger)
		r.b.String(sc.name)
	}
	r.textAttr(nameScopeVersion, sc.version)
	r.textAttr(nameScopeURL, sc.schemaURL)
	r.countAttr(nameScopeLost, sc.dropped)
	if !sc.attributes {
		return nil
	}
	r.b.Attr(nameScope)
	return r.members(sc.msg, 3, false)
}

func (r *reader) resource(res *resource) error {
	if len(res.service) > 0 {
		r.b.Slot(normalize.Service)
		r.b.String(res.service)
	}
	r.textAttr(nameResourceURL, res.schemaURL)
	r.countAttr(nameResourceLost, res.dropped)
	if !res.others {
		return nil
	}
	r.b.Attr(nameResource)
	return r.members(res.msg, 1, true)
}

// Names of attributes that are this package's.
var (
	nameBody           = []byte("body")
	nameObserved       = []byte("observed_time")
	nameSeverityText   = []byte("severity_text")
	nameSeverityNumber = []byte("severity_number")
	nameFlags          = []byte("flags")
	nameDropped        = []byte("dropped_attributes_count")
	nameEvent          = []byte("event_name")
	nameResource       = []byte("resource")
	nameResourceURL    = []byte("resource.schema_url")
	nameResourceLost   = []byte("resource.dropped_attributes_count")
	nameScope          = []byte("scope.attributes")
	nameScopeVersion   = []byte("scope.version")
	nameScopeURL       = []byte("scope.schema_url")
	nameScopeLost      = []byte("scope.dropped_attributes_count")
)
