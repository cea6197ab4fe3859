package ingest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A protocol is how a load comes in.
type protocol string

// The protocols: the article's JSON array, and OTLP over HTTP, in protocol buffers and
// in JSON.
const (
	pathJSON     protocol = ""
	pathOTLP     protocol = "OTLP"
	pathOTLPJSON protocol = "OTLP/JSON"
)

// head is what comes before a body of size bytes.
func (p protocol) head(addr string, size int) []byte {
	path, kind := "/api/logs", "application/json"
	switch p {
	case pathOTLP:
		path, kind = "/v1/logs", "application/x-protobuf"
	case pathOTLPJSON:
		path = "/v1/logs"
	}
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n", path, addr, kind, size)
}

// takes reports whether the body of a good answer says that all events were
// taken. One without a body does.
func (p protocol) takes(body, accepted []byte) bool {
	if p != pathJSON { // a partial_success that is not empty has rejected some
		return len(body) <= 2 || string(body) == `{"partialSuccess":{}}` || string(body) == `{"partialSuccess":null}`
	}
	return len(body) == 0 || bytes.Contains(body, accepted)
}

func (p protocol) body(events int) *body {
	switch p {
	case pathOTLP:
		return newOTLPBody(events)
	case pathOTLPJSON:
		return newOTLPJSONBody(events)
	}
	return newBody(events)
}

// otlpJSONRecord is otlpRecord in JSON.
const otlpJSONRecord = `{"timeUnixNano":"1779972000000000000","severityNumber":17,"severityText":"error","body":{"stringValue":"failed to charge customer"},"attributes":[` +
	`{"key":"trace_id","value":{"stringValue":"` + zeros + `"}},{"key":"customer_id","value":{"stringValue":"cus_123"}},` +
	`{"key":"region","value":{"stringValue":"eu-west"}},{"key":"retry_count","value":{"intValue":"2"}}]}`

// newOTLPJSONBody is newOTLPBody in JSON.
func newOTLPJSONBody(events int) *body {
	b := &body{data: []byte(`{"resourceLogs":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"payment-api"}}]},"scopeLogs":[{"logRecords":[`)}
	for i := range events {
		if i > 0 {
			b.data = append(b.data, ',')
		}
		b.numbers = append(b.numbers, len(b.data)+strings.Index(otlpJSONRecord, `"`+zeros)+1)
		b.data = append(b.data, otlpJSONRecord...)
	}
	b.data = append(b.data, `]}]}]}`...)
	return b
}

// newOTLPBody is an ExportLogsServiceRequest with the article's event as each
// record: message, level and time are the record's own, the service is the
// resource's, all else attributes.
func newOTLPBody(events int) *body {
	var records []byte
	for range events {
		records = appendBytes(records, 2, otlpRecord()) // ScopeLogs.log_records
	}
	resource := appendBytes(nil, 1, keyValue("service.name", textField("payment-api"))) // Resource.attributes
	logs := appendBytes(nil, 1, resource)                                               // ResourceLogs.resource
	logs = appendBytes(logs, 2, records)                                                // ResourceLogs.scope_logs
	b := &body{data: appendBytes(nil, 1, logs)}                                         // resource_logs
	number := slices.Concat(otlpKey, otlpValue)
	for at := 0; ; {
		next := bytes.Index(b.data[at:], number)
		if next < 0 {
			return b
		}
		at += next + len(number)
		b.numbers = append(b.numbers, at)
	}
}

// The attribute with the number of an event: its key, and what is before the
// number in its value.
var (
	otlpKey   = []byte("\x0a\x08trace_id")
	otlpValue = []byte("\x12\x0e\x0a\x0c")
)

func otlpRecord() []byte {
	at := time.Date(2026, 5, 28, 12, 40, 0, 0, time.UTC).UnixNano()
	r := binary.LittleEndian.AppendUint64([]byte{1<<3 | 1}, uint64(at)) // time_unix_nano
	r = append(r, 2<<3, 17)                                             // severity_number: ERROR
	r = appendBytes(r, 3, []byte("error"))                              // severity_text
	r = appendBytes(r, 5, textField("failed to charge customer"))       // body
	for _, a := range [][]byte{
		keyValue("trace_id", textField(zeros)),
		keyValue("customer_id", textField("cus_123")),
		keyValue("region", textField("eu-west")),
		keyValue("retry_count", []byte{3 << 3, 2}), // AnyValue.int_value
	} {
		r = appendBytes(r, 6, a) // attributes
	}
	return r
}

// textField is a message whose field 1 is a text.
func textField(s string) []byte { return appendBytes(nil, 1, []byte(s)) }

func keyValue(key string, value []byte) []byte {
	return appendBytes(textField(key), 2, value)
}

// appendBytes appends a field that has a length.
func appendBytes(dst []byte, field byte, v []byte) []byte {
	dst = append(dst, field<<3|2)
	dst = binary.AppendUvarint(dst, uint64(len(v)))
	return append(dst, v...)
}
