package otlp

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/wire"
)

// transcoder turns OTLP's JSON into its protocol buffers, so that both are read
// by the same code. The result is at most about twice as long.
type transcoder struct{ wire.Transcoder }

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
func (t *transcoder) transcode(q *receiver.Request) ([]byte, error) {
	if err := q.Reserve(2 * int64(len(q.Body))); err != nil {
		return nil, err
	}
	t.Reset(q.Body)
	return t.Finish("ExportLogsServiceRequest", t.message(&requestMsg))
}

// message reads an object and appends its fields.
func (t *transcoder) message(m *message) error {
	if k := t.JSON.PeekKind(); k != jsontext.KindBeginObject && k != jsontext.KindInvalid {
		return fmt.Errorf("a %s is an object, but this is %s", m.name, k)
	}
	if _, err := t.JSON.ReadToken(); err != nil {
		return err
	}
	for {
		if k := t.JSON.PeekKind(); k == jsontext.KindEndObject {
			_, err := t.JSON.ReadToken()
			return err
		}
		name, err := t.string()
		if err != nil {
			return err
		}
		f := m.lookup(name)
		if f == nil || t.JSON.PeekKind() == jsontext.KindNull {
			if err := t.JSON.SkipValue(); err != nil {
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
	if k := t.JSON.PeekKind(); k != jsontext.KindBeginArray && k != jsontext.KindInvalid {
		return fmt.Errorf("%s is an array, but this is %s", f.name, k)
	}
	if _, err := t.JSON.ReadToken(); err != nil {
		return err
	}
	for t.JSON.PeekKind() != jsontext.KindEndArray {
		if err := t.field(f); err != nil {
			return err
		}
	}
	_, err := t.JSON.ReadToken()
	return err
}

// field reads a value and appends the field with it.
func (t *transcoder) field(f *field) error {
	if f.kind == ofMessage {
		start := t.Open(f.num)
		if err := t.message(f.message); err != nil {
			return err
		}
		t.Shut(start)
		return nil
	}
	v, err := t.value(f)
	if err != nil {
		return err
	}
	switch f.kind {
	case ofString:
		t.Append(f.num, v)
	case ofBytes:
		if t.Raw, err = appendBase64(t.Raw[:0], v); err != nil {
			return t.mismatch(f, v)
		}
		t.Append(f.num, t.Raw)
	case ofTraceID:
		t.id(f.num, fieldTraceText, 16, v)
	case ofSpanID:
		t.id(f.num, fieldSpanText, 8, v)
	default:
		return t.number(f, v)
	}
	return nil
}

// string reads a string, whose text is valid until the next call.
func (t *transcoder) string() ([]byte, error) {
	v, err := t.JSON.ReadValue()
	if err != nil {
		return nil, err
	}
	return t.Unquoted(v), nil
}

// value reads a value that is not an object or an array: the text of a string,
// or else what stands there.
func (t *transcoder) value(f *field) ([]byte, error) {
	k := t.JSON.PeekKind()
	v, err := t.JSON.ReadValue()
	if err != nil {
		return nil, err
	}
	textual := f.kind == ofString || f.kind == ofBytes || f.kind == ofTraceID || f.kind == ofSpanID
	switch {
	case k == jsontext.KindString && f.kind != ofBool:
		return t.Unquoted(v), nil
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
	t.Out = protowire.AppendTag(t.Out, f.num, typ)
	switch typ {
	case protowire.VarintType:
		t.Out = protowire.AppendVarint(t.Out, n)
	case protowire.Fixed32Type:
		t.Out = protowire.AppendFixed32(t.Out, uint32(n))
	default:
		t.Out = protowire.AppendFixed64(t.Out, n)
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
	start := len(t.Out)
	var err error
	if t.Out, err = hex.AppendDecode(t.Out, v); err != nil {
		t.Out, err = appendBase64(t.Out[:start], v)
	}
	n := len(t.Out) - start
	if err != nil || n != size {
		t.Out = t.Out[:start]
		t.Append(text, v)
		return
	}
	var id [16]byte
	copy(id[:], t.Out[start:])
	t.Out = t.Out[:start]
	t.Append(num, id[:n])
}

// appendBase64 decodes base64, of either alphabet and with or without padding.
func appendBase64(dst, v []byte) ([]byte, error) {
	e := base64.RawStdEncoding
	if bytes.ContainsAny(v, "-_") {
		e = base64.RawURLEncoding
	}
	return e.AppendDecode(dst, bytes.TrimRight(v, "="))
}
