package otlp

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rollway/rollway/collector/receive"
)

// transcoder turns OTLP's JSON into its protocol buffers, so that both are read
// by the same code. The result is at most about twice as long.
type transcoder struct {
	dec  *jsontext.Decoder
	src  bytes.Buffer
	used bool // dec reads src
	out  []byte
	raw  []byte // an unquoted string
}

func (t *transcoder) init() { t.dec = jsontext.NewDecoder(&t.src, jsonOptions...) }

// Bad UTF-8 becomes U+FFFD in lines, as in protocol buffers.
var jsonOptions = []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}

func (t *transcoder) release() {
	if t.used {
		t.src = bytes.Buffer{}
		t.dec.Reset(&t.src, jsonOptions...)
		t.used = false
	}
	if cap(t.out) > keepScratch {
		t.out = nil
	}
	if cap(t.raw) > keepScratch {
		t.raw = nil
	}
	t.out, t.raw = t.out[:0], t.raw[:0]
}

// kind is how a field is written in JSON and on the wire.
type kind uint8

const (
	ofMessage kind = iota
	ofString
	ofBytes    // base64
	ofTraceID  // hexadecimal, and by mistake base64
	ofSpanID   // likewise
	ofBool     // varint
	ofInt64    // varint; a number, or as a string
	ofUint32   // likewise
	ofFixed64  // a number, or as a string
	ofFixed32  // likewise
	ofDouble   // a number, or as a string
	ofSeverity // varint; a number, or the name of one
)

// field is one of a message: its name in JSON, its number, its kind.
type field struct {
	name     string
	num      protowire.Number
	kind     kind
	repeated bool
	message  *message // of ofMessage
}

type message struct {
	name   string
	fields []field
}

// The messages of opentelemetry/proto/collector/logs/v1 and what they are made
// of.
var (
	anyValueMsg = message{name: "AnyValue"} // see init: it holds itself
	keyValueMsg = message{"KeyValue", []field{
		{name: "key", num: 1, kind: ofString},
		{name: "value", num: 2, message: &anyValueMsg},
	}}
	arrayValueMsg   = message{"ArrayValue", []field{{name: "values", num: 1, repeated: true, message: &anyValueMsg}}}
	keyValueListMsg = message{"KeyValueList", []field{{name: "values", num: 1, repeated: true, message: &keyValueMsg}}}
	resourceMsg     = message{"Resource", []field{
		{name: "attributes", num: 1, repeated: true, message: &keyValueMsg},
		{name: "droppedAttributesCount", num: 2, kind: ofUint32},
	}}
	scopeMsg = message{"InstrumentationScope", []field{
		{name: "name", num: 1, kind: ofString},
		{name: "version", num: 2, kind: ofString},
		{name: "attributes", num: 3, repeated: true, message: &keyValueMsg},
		{name: "droppedAttributesCount", num: 4, kind: ofUint32},
	}}
	logRecordMsg = message{"LogRecord", []field{
		{name: "timeUnixNano", num: 1, kind: ofFixed64},
		{name: "observedTimeUnixNano", num: 11, kind: ofFixed64},
		{name: "severityNumber", num: 2, kind: ofSeverity},
		{name: "severityText", num: 3, kind: ofString},
		{name: "body", num: 5, message: &anyValueMsg},
		{name: "attributes", num: 6, repeated: true, message: &keyValueMsg},
		{name: "droppedAttributesCount", num: 7, kind: ofUint32},
		{name: "flags", num: 8, kind: ofFixed32},
		{name: "traceId", num: 9, kind: ofTraceID},
		{name: "spanId", num: 10, kind: ofSpanID},
		{name: "eventName", num: 12, kind: ofString},
	}}
	scopeLogsMsg = message{"ScopeLogs", []field{
		{name: "scope", num: 1, message: &scopeMsg},
		{name: "logRecords", num: 2, repeated: true, message: &logRecordMsg},
		{name: "schemaUrl", num: 3, kind: ofString},
	}}
	resourceLogsMsg = message{"ResourceLogs", []field{
		{name: "resource", num: 1, message: &resourceMsg},
		{name: "scopeLogs", num: 2, repeated: true, message: &scopeLogsMsg},
		{name: "schemaUrl", num: 3, kind: ofString},
	}}
	requestMsg = message{"ExportLogsServiceRequest", []field{
		{name: "resourceLogs", num: 1, repeated: true, message: &resourceLogsMsg},
	}}
)

func init() {
	anyValueMsg.fields = []field{
		{name: "stringValue", num: 1, kind: ofString},
		{name: "boolValue", num: 2, kind: ofBool},
		{name: "intValue", num: 3, kind: ofInt64},
		{name: "doubleValue", num: 4, kind: ofDouble},
		{name: "arrayValue", num: 5, message: &arrayValueMsg},
		{name: "kvlistValue", num: 6, message: &keyValueListMsg},
		{name: "bytesValue", num: 7, kind: ofBytes},
	}
}

// lookup returns the field of a name, in lowerCamelCase as the protocol has it
// or with underscores as some write it; nil if there is none.
func (m *message) lookup(name []byte) *field {
	for i := range m.fields {
		if isName(m.fields[i].name, name) {
			return &m.fields[i]
		}
	}
	return nil
}

func isName(camel string, name []byte) bool {
	if string(name) == camel {
		return true
	}
	for _, c := range []byte(camel) {
		if 'A' <= c && c <= 'Z' {
			if len(name) == 0 || name[0] != '_' {
				return false
			}
			name, c = name[1:], c+'a'-'A'
		}
		if len(name) == 0 || name[0] != c {
			return false
		}
		name = name[1:]
	}
	return len(name) == 0
}

// transcode returns the request in q.Body as protocol buffers, valid until the
// reader is released.
func (t *transcoder) transcode(q *receive.Request) ([]byte, error) {
	if err := q.Reserve(2 * int64(len(q.Body))); err != nil {
		return nil, err
	}
	t.used = true
	t.src = *bytes.NewBuffer(q.Body)
	t.dec.Reset(&t.src, jsonOptions...)
	t.out = t.out[:0]
	err := t.message(&requestMsg)
	if err == nil {
		if _, err = t.dec.ReadToken(); err == io.EOF {
			return t.out, nil
		}
		if err == nil {
			err = errors.New("there is more behind its end")
		}
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return nil, fmt.Errorf("the body is not a valid ExportLogsServiceRequest in JSON at offset %d: %w; nothing was stored", t.dec.InputOffset(), err)
}

// message reads an object and appends its fields.
func (t *transcoder) message(m *message) error {
	if k := t.dec.PeekKind(); k != jsontext.KindBeginObject && k != jsontext.KindInvalid {
		return fmt.Errorf("a %s is an object, but this is %s", m.name, k)
	}
	if _, err := t.dec.ReadToken(); err != nil {
		return err
	}
	for {
		if k := t.dec.PeekKind(); k == jsontext.KindEndObject {
			_, err := t.dec.ReadToken()
			return err
		}
		name, err := t.string()
		if err != nil {
			return err
		}
		f := m.lookup(name)
		if f == nil || t.dec.PeekKind() == jsontext.KindNull {
			if err := t.dec.SkipValue(); err != nil {
				return err
			}
			continue
		}
		if !f.repeated {
			err = t.field(f)
		} else {
			err = t.list(f)
		}
		if err != nil {
			return err
		}
	}
}

// list reads an array and appends its elements.
func (t *transcoder) list(f *field) error {
	if k := t.dec.PeekKind(); k != jsontext.KindBeginArray && k != jsontext.KindInvalid {
		return fmt.Errorf("%s is an array, but this is %s", f.name, k)
	}
	if _, err := t.dec.ReadToken(); err != nil {
		return err
	}
	for t.dec.PeekKind() != jsontext.KindEndArray {
		if err := t.field(f); err != nil {
			return err
		}
	}
	_, err := t.dec.ReadToken()
	return err
}

// field reads a value and appends the field with it.
func (t *transcoder) field(f *field) error {
	if f.kind == ofMessage {
		t.out = protowire.AppendTag(t.out, f.num, protowire.BytesType)
		start := len(t.out) + lengthBytes
		t.out = append(t.out, 0, 0, 0, 0, 0)
		if err := t.message(f.message); err != nil {
			return err
		}
		putLength(t.out[start-lengthBytes:start], len(t.out)-start)
		return nil
	}
	v, err := t.value(f)
	if err != nil {
		return err
	}
	switch f.kind {
	case ofString:
		t.bytes(f.num, v)
	case ofBytes:
		if t.raw, err = appendBase64(t.raw[:0], v); err != nil {
			return t.mismatch(f, v)
		}
		t.bytes(f.num, t.raw)
	case ofTraceID:
		t.id(f.num, fieldTraceText, 16, v)
	case ofSpanID:
		t.id(f.num, fieldSpanText, 8, v)
	default:
		return t.number(f, v)
	}
	return nil
}

// lengthBytes is how many bytes the length of a message takes up, which is not
// known before it is written: a varint may be longer than it needs to be.
const lengthBytes = 5

func putLength(b []byte, n int) {
	for i := range lengthBytes - 1 {
		b[i] = byte(n>>(7*i)) | 0x80
	}
	b[lengthBytes-1] = byte(n >> (7 * (lengthBytes - 1)))
}

func (t *transcoder) bytes(num protowire.Number, v []byte) {
	t.out = protowire.AppendTag(t.out, num, protowire.BytesType)
	t.out = protowire.AppendBytes(t.out, v)
}

// string reads a string, whose text is valid until the next call.
func (t *transcoder) string() ([]byte, error) {
	v, err := t.dec.ReadValue()
	if err != nil {
		return nil, err
	}
	return t.unquoted(v), nil
}

func (t *transcoder) unquoted(v []byte) []byte {
	if bytes.IndexByte(v, '\\') < 0 {
		return v[1 : len(v)-1]
	}
	// The error is about lone surrogates, which become U+FFFD.
	t.raw, _ = jsontext.AppendUnquote(t.raw[:0], v)
	return t.raw
}

// value reads a value that is not an object or an array: the text of a string,
// or else what stands there.
func (t *transcoder) value(f *field) ([]byte, error) {
	k := t.dec.PeekKind()
	v, err := t.dec.ReadValue()
	if err != nil {
		return nil, err
	}
	textual := f.kind == ofString || f.kind == ofBytes || f.kind == ofTraceID || f.kind == ofSpanID
	switch {
	case k == jsontext.KindString && f.kind != ofBool:
		return t.unquoted(v), nil
	case k == jsontext.KindNumber && !textual && f.kind != ofBool, (k == jsontext.KindTrue || k == jsontext.KindFalse) && f.kind == ofBool:
		return v, nil
	}
	return nil, t.mismatch(f, v)
}

func (t *transcoder) mismatch(f *field, v []byte) error {
	return fmt.Errorf("%s cannot be %.50q", f.name, v)
}

// number appends a field that is a number or a boolean.
func (t *transcoder) number(f *field, v []byte) error {
	var n uint64
	typ := protowire.VarintType
	var err error
	switch f.kind {
	case ofBool:
		n = protowire.EncodeBool(v[0] == 't')
	case ofInt64:
		var i int64
		i, err = strconv.ParseInt(string(v), 10, 64)
		n = uint64(i)
	case ofUint32:
		n, err = strconv.ParseUint(string(v), 10, 32)
	case ofSeverity:
		var i int64
		if i, err = strconv.ParseInt(string(v), 10, 32); err != nil {
			i, err = severityByName(v)
		}
		n = uint64(i)
	case ofFixed64:
		typ = protowire.Fixed64Type
		n, err = strconv.ParseUint(string(v), 10, 64)
	case ofFixed32:
		typ = protowire.Fixed32Type
		n, err = strconv.ParseUint(string(v), 10, 32)
	case ofDouble:
		typ = protowire.Fixed64Type
		var d float64
		d, err = strconv.ParseFloat(string(v), 64)
		n = math.Float64bits(d)
	}
	if err != nil {
		return t.mismatch(f, v)
	}
	t.out = protowire.AppendTag(t.out, f.num, typ)
	switch typ {
	case protowire.VarintType:
		t.out = protowire.AppendVarint(t.out, n)
	case protowire.Fixed32Type:
		t.out = protowire.AppendFixed32(t.out, uint32(n))
	default:
		t.out = protowire.AppendFixed64(t.out, n)
	}
	return nil
}

// severityByName reads SEVERITY_NUMBER_WARN3 and the like.
func severityByName(v []byte) (int64, error) {
	name, is := bytes.CutPrefix(v, []byte("SEVERITY_NUMBER_"))
	if !is {
		return 0, errors.New("no severity")
	}
	step := int64(0)
	if last := len(name) - 1; last > 0 && '2' <= name[last] && name[last] <= '4' {
		step = int64(name[last] - '1')
		name = name[:last]
	}
	switch string(name) {
	case "UNSPECIFIED":
		return 0, nil
	case "TRACE":
		return 1 + step, nil
	case "DEBUG":
		return 5 + step, nil
	case "INFO":
		return 9 + step, nil
	case "WARN":
		return 13 + step, nil
	case "ERROR":
		return 17 + step, nil
	case "FATAL":
		return 21 + step, nil
	}
	return 0, errors.New("no severity")
}

// id appends an id of size bytes as num, or, if v is not one, v as text.
func (t *transcoder) id(num, text protowire.Number, size int, v []byte) {
	start := len(t.out)
	var err error
	if t.out, err = hex.AppendDecode(t.out, v); err != nil {
		t.out, err = appendBase64(t.out[:start], v)
	}
	n := len(t.out) - start
	if err != nil || n != size {
		t.out = t.out[:start]
		t.bytes(text, v)
		return
	}
	var id [16]byte
	copy(id[:], t.out[start:])
	t.out = t.out[:start]
	t.bytes(num, id[:n])
}

// appendBase64 decodes base64, of either alphabet and with or without padding.
func appendBase64(dst, v []byte) ([]byte, error) {
	e := base64.RawStdEncoding
	if bytes.ContainsAny(v, "-_") {
		e = base64.RawURLEncoding
	}
	return e.AppendDecode(dst, bytes.TrimRight(v, "="))
}
