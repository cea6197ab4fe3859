package otlp

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/internal/jsonline"
	"github.com/rollway/rollway/internal/levels"
)

// The parts of a request that are read once and needed for each record.
type (
	resource struct {
		msg       part           // the message
		own       [numOwn][]byte // texts of ownNames, if they are strings
		others    bool           // it has other attributes
		dropped   uint64
		schemaURL []byte // text
	}
	scope struct {
		msg        part
		name       []byte // text
		version    []byte // text
		attributes bool
		dropped    uint64
		schemaURL  []byte // text
	}
)

// record is what a LogRecord holds besides its attributes.
type record struct {
	time, observed uint64
	severity       uint64
	severityText   []byte // text
	body           anyValue
	dropped        uint64
	flags          uint64
	trace, span    []byte // bytes, or a string in JSON
	event          []byte // text
}

// Numbers of fields of a LogRecord.
const (
	recordBody       = 5
	recordAttributes = 6
)

// set takes a field: a number, or what has a length.
func (rec *record) set(num protowire.Number, number uint64, bytes []byte) {
	switch num {
	case 1:
		rec.time = number
	case 2:
		rec.severity = number
	case 3:
		rec.severityText = bytes
	case 7:
		rec.dropped = number
	case 8:
		rec.flags = number
	case 9:
		rec.trace = bytes
	case 10:
		rec.span = bytes
	case 11:
		rec.observed = number
	case 12:
		rec.event = bytes
	}
}

// finish adds to an event that has the attributes of its record all else, in the
// order in which names get suffixes. In JSON it returns the end of a body that is an
// array or a list.
func (r *reader) finish(rec *record, sc *scope, res *resource) (end int, err error) {
	r.times(rec)
	r.level(rec)
	if end, err = r.message(rec.body); err != nil {
		return 0, err
	}
	r.id(normalize.TraceID, rec.trace, 16)
	r.id(normalize.SpanID, rec.span, 8)
	r.textAttr(nameEvent, rec.event)
	r.countAttr(nameFlags, rec.flags)
	r.countAttr(nameDropped, rec.dropped)
	if err := r.scope(sc); err != nil {
		return 0, err
	}
	if err := r.resource(res); err != nil {
		return 0, err
	}
	if rec.body.kind == anyList { // what the protocol itself says comes first
		return r.pairs(&keyValueListMsg, rec.body.part, asField)
	}
	return end, nil
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

// level sets the event's level.
func (r *reader) level(rec *record) {
	if !bytes.Equal(r.severity, rec.severityText) {
		r.severity = rec.severityText
		r.byText, r.known = levels.ParseAny(r.textOf(r.severity))
	}
	byText, known := r.byText, r.known
	level, numbered := levels.OTel(int64(rec.severity))
	if !numbered {
		level = byText // INFO if it is not known
		if rec.severity != 0 {
			r.b.Attr(nameSeverityNumber)
			r.b.Int(int64(int32(rec.severity)))
		}
	}
	if rec.severity != 0 || known {
		r.b.SetLevel(level)
	}
	if !known || byText != level {
		r.textAttr(nameSeverityText, rec.severityText)
	}
}

// message puts the body where it belongs, unless it is a list, whose members are
// fields.
func (r *reader) message(v anyValue) (end int, err error) {
	switch v.kind {
	case anyEmpty, anyList:
		return 0, nil
	case anyArray:
		r.b.Attr(nameBody)
	default:
		r.b.Slot(normalize.Message)
	}
	if v.kind == anyDouble && (math.IsNaN(v.double()) || math.IsInf(v.double(), 0)) {
		r.b.Float(v.double()) // a string
		return 0, nil
	}
	return r.put(v)
}

// id puts an id into its slot: bytes of the length that it has as hexadecimal
// digits, others as the text that they are, or else as hexadecimal digits too.
func (r *reader) id(slot normalize.Slot, id []byte, size int) {
	if len(id) == 0 {
		return
	}
	text := []byte(nil)
	if r.json {
		id, text = r.idOf(id, size)
	}
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
}

// idOf returns the id of size bytes that a string of JSON holds as hexadecimal
// digits, or by mistake in base64. If there is none it returns the string's text.
func (r *reader) idOf(raw []byte, size int) (id, text []byte) {
	text = r.textOf(raw)
	var err error
	if r.fromText, err = hex.AppendDecode(r.fromText[:0], text); err != nil {
		r.fromText, err = appendBase64(r.fromText[:0], text)
	}
	if err != nil || len(r.fromText) != size {
		return nil, text
	}
	return r.fromText, nil
}

func isZero(id []byte) bool { return len(bytes.TrimLeft(id, "\x00")) == 0 }

func isGraphic(id []byte) bool {
	return !slices.ContainsFunc(id, func(c byte) bool { return c < '!' || c > '~' })
}

func (r *reader) scope(sc *scope) error {
	if name := r.textOf(sc.name); len(name) > 0 {
		r.b.Slot(normalize.Logger)
		r.b.String(name)
	}
	r.textAttr(nameScopeVersion, sc.version)
	r.textAttr(nameScopeURL, sc.schemaURL)
	r.countAttr(nameScopeLost, sc.dropped)
	if !sc.attributes {
		return nil
	}
	r.b.Attr(nameScope)
	_, err := r.object(&scopeMsg, sc.msg, asMember)
	return err
}

func (r *reader) resource(res *resource) error {
	if service := r.textOf(res.own[ofService]); len(service) > 0 {
		r.b.Slot(normalize.Service)
		r.b.String(service)
	}
	if host := r.textOf(res.own[ofHost]); len(host) > 0 {
		r.b.Member(nameHost)
		r.b.String(host)
	}
	r.textAttr(nameResourceURL, res.schemaURL)
	r.countAttr(nameResourceLost, res.dropped)
	if !res.others {
		return nil
	}
	r.b.Attr(nameResource)
	_, err := r.object(&resourceMsg, res.msg, asOther)
	return err
}

// textOf returns a text as it is: that of a string of JSON is valid until the next
// call.
func (r *reader) textOf(v []byte) (text []byte) {
	if !r.json || len(v) == 0 {
		return v
	}
	return r.Text(v)
}

// textAttr is an attribute if it is not empty.
func (r *reader) textAttr(name, v []byte) {
	if text := r.textOf(v); len(text) > 0 {
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

// Names of attributes that are this package's.
var (
	nameBody           = []byte("body")
	nameObserved       = []byte("observed_time")
	nameSeverityText   = []byte("severity_text")
	nameSeverityNumber = []byte("severity_number")
	nameFlags          = []byte("flags")
	nameDropped        = []byte("dropped_attributes_count")
	nameEvent          = []byte("event_name")
	nameHost           = []byte("host.name")
	nameResource       = []byte("resource")
	nameResourceURL    = []byte("resource.schema_url")
	nameResourceLost   = []byte("resource.dropped_attributes_count")
	nameScope          = []byte("scope.attributes")
	nameScopeVersion   = []byte("scope.version")
	nameScopeURL       = []byte("scope.schema_url")
	nameScopeLost      = []byte("scope.dropped_attributes_count")
)

// appendBase64 decodes base64, of either alphabet and with or without padding.
func appendBase64(dst, v []byte) ([]byte, error) {
	e := base64.RawStdEncoding
	if bytes.ContainsAny(v, "-_") {
		e = base64.RawURLEncoding
	}
	return e.AppendDecode(dst, bytes.TrimRight(v, "="))
}
