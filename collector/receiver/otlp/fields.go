package otlp

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rollway/rollway/internal/jsonwalk"
)

// kind is how a field is written in JSON.
type kind uint8

const (
	ofMessage  kind = iota
	ofString        // ids too, which are hexadecimal, and by mistake base64
	ofBytes         // base64
	ofBool          //
	ofInt           // a number, or one as a string; so are those that follow
	ofUint32        //
	ofUint64        //
	ofDouble        //
	ofSeverity      // or the name of one
)

// field is one of a message: its name in JSON, its number in protocol buffers, its
// kind.
type field struct {
	name    string
	num     protowire.Number
	kind    kind
	message *message // of ofMessage
}

type message struct {
	name   string
	fields []field
}

// The messages of opentelemetry/proto/collector/logs/v1 and what they are made of.
var (
	anyValueMsg = message{name: "AnyValue"} // see init: it holds itself
	keyValueMsg = message{"KeyValue", []field{
		{name: "key", num: 1, kind: ofString},
		{name: "value", num: 2, message: &anyValueMsg},
	}}
	arrayValueMsg   = message{"ArrayValue", []field{{name: "values", num: 1, message: &anyValueMsg}}}
	keyValueListMsg = message{"KeyValueList", []field{{name: "values", num: 1, message: &keyValueMsg}}}
	resourceMsg     = message{"Resource", []field{
		{name: "attributes", num: resourceAttributes, message: &keyValueMsg},
		{name: "droppedAttributesCount", num: 2, kind: ofUint32},
	}}
	scopeMsg = message{"InstrumentationScope", []field{
		{name: "name", num: 1, kind: ofString},
		{name: "version", num: 2, kind: ofString},
		{name: "attributes", num: scopeAttributes, message: &keyValueMsg},
		{name: "droppedAttributesCount", num: 4, kind: ofUint32},
	}}
	logRecordMsg = message{"LogRecord", []field{
		{name: "timeUnixNano", num: 1, kind: ofUint64},
		{name: "observedTimeUnixNano", num: 11, kind: ofUint64},
		{name: "severityNumber", num: 2, kind: ofSeverity},
		{name: "severityText", num: 3, kind: ofString},
		{name: "body", num: recordBody, message: &anyValueMsg},
		{name: "attributes", num: recordAttributes, message: &keyValueMsg},
		{name: "droppedAttributesCount", num: 7, kind: ofUint32},
		{name: "flags", num: 8, kind: ofUint32},
		{name: "traceId", num: 9, kind: ofString},
		{name: "spanId", num: 10, kind: ofString},
		{name: "eventName", num: 12, kind: ofString},
	}}
	scopeLogsMsg = message{"ScopeLogs", []field{
		{name: "scope", num: 1, message: &scopeMsg},
		{name: "logRecords", num: 2, message: &logRecordMsg},
		{name: "schemaUrl", num: 3, kind: ofString},
	}}
	resourceLogsMsg = message{"ResourceLogs", []field{
		{name: "resource", num: 1, message: &resourceMsg},
		{name: "scopeLogs", num: 2, message: &scopeLogsMsg},
		{name: "schemaUrl", num: 3, kind: ofString},
	}}
	requestMsg = message{"ExportLogsServiceRequest", []field{
		{name: "resourceLogs", num: 1, message: &resourceLogsMsg},
	}}
)

func init() {
	anyValueMsg.fields = []field{
		{name: "stringValue", num: 1, kind: ofString},
		{name: "boolValue", num: 2, kind: ofBool},
		{name: "intValue", num: 3, kind: ofInt},
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
		if m.fields[i].name == string(name) {
			return &m.fields[i]
		}
	}
	if bytes.IndexByte(name, '_') < 0 {
		return nil
	}
	for i := range m.fields {
		if isSnake(m.fields[i].name, name) {
			return &m.fields[i]
		}
	}
	return nil
}

// isSnake reports whether name is the name camel with underscores.
func isSnake(camel string, name []byte) bool {
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

// scalar reads the value at an offset, of a field that is no message: the bytes of a
// string with its quotes, or decoded from base64, or else a number.
func (r *reader) scalar(f *field, at int) (number uint64, bytes []byte, end int, err error) {
	if end, err = r.Skip(at); err != nil {
		return 0, nil, 0, err
	}
	raw := r.Body[at:end]
	switch first := raw[0]; {
	case first == '"' && f.kind == ofString:
		return 0, raw, end, nil
	case first == '"' && f.kind == ofBytes:
		r.fromText, err = appendBase64(r.fromText[:0], r.Text(raw))
		bytes = r.fromText
	case first == '"' && f.kind > ofBool:
		number, err = f.number(r.Text(raw))
	case (first == '-' || jsonwalk.IsDigit(first)) && f.kind > ofBool:
		number, err = f.number(raw)
	case (first == 't' || first == 'f') && f.kind == ofBool:
		number = protowire.EncodeBool(first == 't')
	default:
		err = errKind
	}
	if err != nil {
		err = r.Invalid(at, fmt.Errorf("%s cannot be %.50q", f.name, raw))
	}
	return number, bytes, end, err
}

// errKind is the error for a value that is of another kind than its field.
var errKind = errors.New("of another kind")

// number reads a field that is a number, as protocol buffers have it.
func (f *field) number(text []byte) (n uint64, err error) {
	switch f.kind {
	case ofUint32:
		return strconv.ParseUint(string(text), 10, 32)
	case ofUint64:
		return strconv.ParseUint(string(text), 10, 64)
	case ofDouble:
		d, err := strconv.ParseFloat(string(text), 64)
		return math.Float64bits(d), err
	case ofSeverity:
		i, err := strconv.ParseInt(string(text), 10, 32)
		if err != nil {
			i, err = severityByName(text)
		}
		return uint64(i), err
	}
	i, err := strconv.ParseInt(string(text), 10, 64)
	return uint64(i), err
}

// severities are the names of severities after SEVERITY_NUMBER_. Each has four numbers,
// from 1 on; the names of the last three end in 2, 3 and 4.
var severities = [...]string{"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"}

// severityByName reads SEVERITY_NUMBER_WARN3 and the like.
func severityByName(v []byte) (int64, error) {
	name, is := bytes.CutPrefix(v, []byte("SEVERITY_NUMBER_"))
	if !is {
		return 0, errKind
	}
	if string(name) == "UNSPECIFIED" {
		return 0, nil
	}
	step := 0
	if last := len(name) - 1; last > 0 && '2' <= name[last] && name[last] <= '4' {
		step = int(name[last] - '1')
		name = name[:last]
	}
	for i, s := range severities {
		if string(name) == s {
			return int64(1 + 4*i + step), nil
		}
	}
	return 0, errKind
}
