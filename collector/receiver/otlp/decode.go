// Package otlp takes logs by the OpenTelemetry Protocol: over HTTP in protocol
// buffers or JSON, and over gRPC.
//
// A LogRecord becomes a line like this:
//
//	time_unix_nano, or else observed_time_unix_nano    time
//	severity_number, or else severity_text             level; number − 9 is slog's
//	body that is a string, number, boolean or bytes    msg; bytes in base64
//	resource's service.name, host.name                 service, attrs.host
//	name of the scope                                  logger
//	trace_id, span_id                                  trace_id, span_id, in hexadecimal
//
// All else is in attrs: the record's attributes as they are named, and what the
// protocol itself has besides:
//
//	body                              one that is an array
//	observed_time                     RFC 3339, unless it is the line's time
//	severity_text, severity_number    what the level does not tell
//	event_name, flags, dropped_attributes_count
//	resource                          an object of the resource's other attributes
//	scope.attributes                  an object of the scope's
//	scope.version, scope.schema_url, scope.dropped_attributes_count
//	resource.schema_url, resource.dropped_attributes_count
//
// so that os.type of a resource is resource.os.type in a query. Fields that
// are unset, zero or empty make no attribute. Entity references, which repeat
// names of attributes, are left out.
//
// A body that is a list of keys and values is read as package normalize reads the
// members of an event, since agents send whole records there: msg and level go to
// their slots unless the LogRecord has filled them, all else to attrs.
//
// Protocol buffers and JSON are the same messages, whose tables are in messages.go.
// fields.go walks through either form, read.go and value.go say what is where, and
// event.go makes events of it.
package otlp

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/pool"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/wire"
)

// Protocol is OTLP over HTTP. Content-Type tells protocol buffers from JSON; if
// it names neither the body's first byte does.
var Protocol receiver.Protocol = overHTTP{}

type overHTTP struct{}

// Forms of a request, and so of its answer.
const (
	inProtobuf = "application/x-protobuf"
	inJSON     = "application/json"
)

func (overHTTP) Decode(q *receiver.Request) error {
	form := formOf(q.HTTP.Header, q.Body)
	q.Note = append(q.Note, form...)
	r := readers.Get()
	defer r.release()
	return r.read(q, form == inJSON)
}

// formOf returns the form of a request. Without a body that could tell it is
// protobuf, as with most clients.
func formOf(h http.Header, body []byte) string {
	kind := ""
	if values := h["Content-Type"]; len(values) > 0 {
		kind, _, _ = strings.Cut(values[0], ";")
	}
	kind = strings.TrimSpace(kind)
	switch {
	case strings.EqualFold(kind, inProtobuf), strings.EqualFold(kind, "application/protobuf"), strings.EqualFold(kind, "application/octet-stream"):
		return inProtobuf
	case strings.EqualFold(kind, inJSON), len(kind) > 5 && strings.EqualFold(kind[len(kind)-5:], "+json"):
		return inJSON
	}
	// The first byte of a request with a record in it is 0A. JSON may begin with
	// that too, and then goes on with more white space or a brace.
	trimmed := bytes.TrimLeft(body, " \r\n\t")
	if len(trimmed) > 0 && trimmed[0] == '{' && !isRequest(body) {
		return inJSON
	}
	return inProtobuf
}

// isRequest reports whether a body is made of the one field that a request in
// protocol buffers has.
func isRequest(body []byte) bool {
	f := wire.Over(body)
	for f.Next() {
		if f.Num != 1 || !f.Is(protowire.BytesType) {
			return false
		}
	}
	return f.Err() == nil
}

// reader makes events of an ExportLogsServiceRequest. Nothing in it outlives the
// request.
type reader struct {
	q    *receiver.Request
	b    *normalize.Builder
	json bool   // the form; texts are strings of JSON then, with their quotes
	text []byte // scratch, of one value

	wire.JSON
	scopes   []scopeAt  // of the ResourceLogs being read
	severity []byte     // text of the record before
	byText   slog.Level // what it names, if it is known
	known    bool
	reread   int    // bytes that were passed over to be read again
	fromText []byte // scratch, of base64
}

var readers = pool.Pool[*reader]{New: func() *reader { return &reader{text: make([]byte, 0, 64)} }}

// From these sizes on memory does not go back to the pool.
const (
	keepScratch = 1 << 20
	keepScopes  = 1 << 10 // entries
)

func (r *reader) release() {
	r.q, r.b, r.severity, r.byText, r.known, r.reread = nil, nil, nil, 0, false, 0
	for _, scratch := range []*[]byte{&r.text, &r.fromText} {
		if cap(*scratch) > keepScratch {
			*scratch = nil
		}
	}
	if cap(r.scopes) > keepScopes {
		r.scopes = nil
	}
	r.JSON.Release(keepScratch)
	readers.Put(r)
}

// Memory is for the pool.
func (r *reader) Memory() pool.Memory { return pool.Memory{r.text, r.fromText, r.JSON.Memory()} }
