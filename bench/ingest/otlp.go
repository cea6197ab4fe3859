package ingest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"time"
)

// A protocol is how a load comes in.
type protocol string

// The protocols: the article's JSON array, and OTLP over HTTP in protocol buffers.
const (
	pathJSON protocol = "JSON"
	pathOTLP protocol = "OTLP"
)

// head is what comes before a body of size bytes.
func (p protocol) head(addr string, size int) []byte {
	path, kind := "/api/logs", "application/json"
	if p == pathOTLP {
		path, kind = "/v1/logs", "application/x-protobuf"
	}
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n", path, addr, kind, size)
}

// takes reports whether the body of a good answer says that all events were
// taken. One without a body does.
func (p protocol) takes(body, accepted []byte) bool {
	if p == pathOTLP { // a partial_success that is not empty has rejected some
		return len(body) <= 2 || string(body) == `{"partialSuccess":{}}`
	}
	return len(body) == 0 || bytes.Contains(body, accepted)
}

func (p protocol) body(events int) *body {
	if p == pathOTLP {
		return newOTLPBody(events)
	}
	return newBody(events)
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
