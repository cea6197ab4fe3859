package otlp

import (
	"bytes"
	"errors"
	"math"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// kind is how a field is written.
type kind uint8

const (
	ofMessage  kind = iota
	ofMessages      // an array of them
	ofString        // ids too, which are hexadecimal, and by mistake base64
	ofBytes         // base64
	ofBool          //
	ofInt           // a number, or one as a string; so are those that follow
	ofUint32        //
	ofFixed32       //
	ofUint64        //
	ofDouble        //
	ofSeverity      // or the name of one
)

// wireTypes are the types of the kinds in protocol buffers.
var wireTypes = [...]protowire.Type{
	ofMessage: protowire.BytesType, ofMessages: protowire.BytesType, ofString: protowire.BytesType, ofBytes: protowire.BytesType,
	ofBool: protowire.VarintType, ofInt: protowire.VarintType, ofUint32: protowire.VarintType, ofSeverity: protowire.VarintType,
	ofFixed32: protowire.Fixed32Type, ofUint64: protowire.Fixed64Type, ofDouble: protowire.Fixed64Type,
}

// field is one of a message: its name in JSON, its number in protocol buffers, its
// kind.
type field struct {
	name    string
	num     protowire.Number
	kind    kind
	message *message // of ofMessage and ofMessages
}

type message struct {
	name    string
	fields  []field
	survey  bool // it is read again, which checks what is passed over
	numbers [13]struct {
		field *field // nil: there is none
		typ   protowire.Type
	} // of fields, by number
}

// byNumber returns the field of a number and a type, or nil.
func (m *message) byNumber(num protowire.Number, typ protowire.Type) *field {
	if int(num) >= len(m.numbers) || m.numbers[num].typ != typ {
		return nil
	}
	return m.numbers[num].field
}

// lookup returns the field of a name, in the protocol's lowerCamelCase
// or with underscores as some write it, or nil.
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

// The messages of opentelemetry/proto/collector/logs/v1 and what they are made of.
var (
	anyValueMsg = message{name: "AnyValue"} // see init: it holds itself
	keyValueMsg = message{name: "KeyValue", fields: []field{
		{name: "key", num: 1, kind: ofString},
		{name: "value", num: 2, kind: ofMessage, message: &anyValueMsg},
	}}
	arrayValueMsg   = message{name: "ArrayValue", fields: []field{{name: "values", num: 1, kind: ofMessages, message: &anyValueMsg}}}
	keyValueListMsg = message{name: "KeyValueList", fields: []field{{name: "values", num: 1, kind: ofMessages, message: &keyValueMsg}}}
	resourceMsg     = message{name: "Resource", fields: []field{
		{name: "attributes", num: resourceAttributes, kind: ofMessages, message: &keyValueMsg},
		{name: "droppedAttributesCount", num: 2, kind: ofUint32},
	}}
	scopeMsg = message{name: "InstrumentationScope", fields: []field{
		{name: "name", num: 1, kind: ofString},
		{name: "version", num: 2, kind: ofString},
		{name: "attributes", num: scopeAttributes, kind: ofMessages, message: &keyValueMsg},
		{name: "droppedAttributesCount", num: 4, kind: ofUint32},
	}}
	logRecordMsg = message{name: "LogRecord", fields: []field{
		{name: "timeUnixNano", num: 1, kind: ofUint64},
		{name: "observedTimeUnixNano", num: 11, kind: ofUint64},
		{name: "severityNumber", num: 2, kind: ofSeverity},
		{name: "severityText", num: 3, kind: ofString},
		{name: "body", num: recordBody, kind: ofMessage, message: &anyValueMsg},
		{name: "attributes", num: recordAttributes, kind: ofMessages, message: &keyValueMsg},
		{name: "droppedAttributesCount", num: 7, kind: ofUint32},
		{name: "flags", num: 8, kind: ofFixed32},
		{name: "traceId", num: 9, kind: ofString},
		{name: "spanId", num: 10, kind: ofString},
		{name: "eventName", num: 12, kind: ofString},
	}}
	// A ScopeLogs is read twice: first what its records share, which may come after
	// them, and then the records. The second time checks what the first passes over.
	scopeHeadMsg = message{name: "ScopeLogs", survey: true, fields: []field{
		{name: "scope", num: 1, kind: ofMessage, message: &scopeMsg},
		{name: "schemaUrl", num: 3, kind: ofString},
	}}
	scopeLogsMsg    = message{name: "ScopeLogs", fields: []field{{name: "logRecords", num: 2, kind: ofMessages, message: &logRecordMsg}}}
	resourceLogsMsg = message{name: "ResourceLogs", fields: []field{
		{name: "resource", num: 1, kind: ofMessage, message: &resourceMsg},
		{name: "scopeLogs", num: 2, kind: ofMessages, message: &scopeLogsMsg},
		{name: "schemaUrl", num: 3, kind: ofString},
	}}
	requestMsg = message{name: "ExportLogsServiceRequest", fields: []field{
		{name: "resourceLogs", num: 1, kind: ofMessages, message: &resourceLogsMsg},
	}}
)

func init() {
	anyValueMsg.fields = []field{
		{name: "stringValue", num: 1, kind: ofString},
		{name: "boolValue", num: 2, kind: ofBool},
		{name: "intValue", num: 3, kind: ofInt},
		{name: "doubleValue", num: 4, kind: ofDouble},
		{name: "arrayValue", num: 5, kind: ofMessage, message: &arrayValueMsg},
		{name: "kvlistValue", num: 6, kind: ofMessage, message: &keyValueListMsg},
		{name: "bytesValue", num: 7, kind: ofBytes},
	}
	for _, m := range []*message{&anyValueMsg, &keyValueMsg, &arrayValueMsg, &keyValueListMsg, &resourceMsg, &scopeMsg,
		&logRecordMsg, &scopeHeadMsg, &scopeLogsMsg, &resourceLogsMsg, &requestMsg} {
		for i := range m.fields {
			n := &m.numbers[m.fields[i].num]
			n.field, n.typ = &m.fields[i], wireTypes[m.fields[i].kind]
		}
	}
}

// errKind is the error for a value that is of another kind than its field.
var errKind = errors.New("of another kind")

// number reads a field that is a number, as protocol buffers have it.
func (f *field) number(text []byte) (n uint64, err error) {
	switch f.kind {
	case ofUint32, ofFixed32:
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
