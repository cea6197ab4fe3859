// Package otlp takes logs by the OpenTelemetry Protocol: over HTTP in protocol
// buffers or JSON, and over gRPC.
//
// A LogRecord becomes a line like this:
//
//	time_unix_nano, or else observed_time_unix_nano    time
//	severity_number, or else severity_text             level; number − 9 is slog's
//	body that is a string, number, boolean or bytes    msg; bytes in base64
//	resource's service.name                            service
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
// so that host.name of a resource is resource.host.name in a query. Fields that
// are unset, zero or empty make no attribute. Entity references, which repeat
// names of attributes, are left out.
//
// A body that is a list of keys and values is read as package normalize reads the
// members of an event, since agents send records whole there: msg and level go to
// their slots unless the LogRecord has filled them, all else to attrs.
package otlp

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/pool"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/wire"
	"github.com/rollway/rollway/internal/jsonline"
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

// Contents of a header, shared by all answers.
var (
	protobufType = []string{inProtobuf}
	jsonType     = []string{inJSON}
)

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
	// The first byte of a request with a record in it is 0A; JSON may begin
	// with that too, and then goes on with more white space or a brace.
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

func (overHTTP) Decode(q *receiver.Request) error {
	r := readers.Get()
	defer r.release()
	msg := q.Body
	if formOf(q.HTTP.Header, q.Body) == inJSON {
		q.Note = append(q.Note, inJSON...)
		var err error
		if msg, err = r.transcode(q); err != nil {
			return err
		}
	} else {
		q.Note = append(q.Note, inProtobuf...)
	}
	return r.read(q, msg, string(q.Note) == inJSON)
}

func (overHTTP) Answer(a *receiver.Answer) {
	form := string(a.Note)
	if form == "" {
		form = formOf(a.HTTP.Header, nil)
	}
	if a.Stored == 0 && (a.Code == http.StatusInternalServerError || a.Code == http.StatusRequestTimeout) {
		// Clients of this protocol give up at these, though the disk may work
		// again, or the network be faster.
		a.Code = http.StatusServiceUnavailable
		a.Header["Retry-After"] = retryAfter
	}
	if form == inJSON {
		a.Header["Content-Type"] = jsonType
		a.Body = appendJSON(a.Body, a)
		return
	}
	a.Header["Content-Type"] = protobufType
	if a.Code == http.StatusOK {
		a.Body = appendResponse(a.Body, a.Batch)
	} else {
		a.Body = appendStatus(a.Body, statusOf(a.Code), a.Text, 0)
	}
}

var retryAfter = []string{"1"}

// appendJSON appends the answer: an ExportLogsServiceResponse or a Status.
func appendJSON(dst []byte, a *receiver.Answer) []byte {
	if a.Code != http.StatusOK {
		dst = append(dst, `{"code":`...)
		dst = strconv.AppendInt(dst, int64(statusOf(a.Code)), 10)
		dst = append(dst, `,"message":`...)
		dst = jsonline.AppendString(dst, a.Text)
		return append(dst, '}')
	}
	if a.Batch.RejectedTotal == 0 {
		return append(dst, "{}"...)
	}
	dst = append(dst, `{"partialSuccess":{"rejectedLogRecords":"`...)
	dst = strconv.AppendInt(dst, int64(a.Batch.RejectedTotal), 10)
	dst = append(dst, `","errorMessage":`...)
	dst = jsonline.AppendString(dst, rejections(a.Batch))
	return append(dst, "}}"...)
}

// appendResponse appends an ExportLogsServiceResponse:
//
//	partial_success 1 { rejected_log_records 1 int64, error_message 2 string }
func appendResponse(dst []byte, b *normalize.Batch) []byte {
	if b.RejectedTotal == 0 {
		return dst
	}
	text := rejections(b)
	size := protowire.SizeTag(1) + protowire.SizeVarint(uint64(b.RejectedTotal)) + protowire.SizeTag(2) + protowire.SizeBytes(len(text))
	dst = protowire.AppendTag(dst, 1, protowire.BytesType)
	dst = protowire.AppendVarint(dst, uint64(size))
	dst = protowire.AppendTag(dst, 1, protowire.VarintType)
	dst = protowire.AppendVarint(dst, uint64(b.RejectedTotal))
	dst = protowire.AppendTag(dst, 2, protowire.BytesType)
	return protowire.AppendString(dst, text)
}

// rejections says what was wrong with the first records that were rejected.
func rejections(b *normalize.Batch) string {
	var s strings.Builder
	for i := range b.Rejected {
		if s.Len() > 1000 {
			fmt.Fprintf(&s, "; and %d more", b.RejectedTotal-i)
			break
		}
		if i > 0 {
			s.WriteString("; ")
		}
		s.WriteString(b.Rejected[i].Detail)
	}
	return s.String()
}

// Codes of google.rpc.Status.
const (
	codeOK                = 0
	codeUnknown           = 2
	codeInvalidArgument   = 3
	codeDeadlineExceeded  = 4
	codePermissionDenied  = 7
	codeResourceExhausted = 8
	codeUnimplemented     = 12
	codeInternal          = 13
	codeUnavailable       = 14
	codeUnauthenticated   = 16
)

// statusOf returns the code for a status of HTTP. Clients try again after
// UNAVAILABLE, and after RESOURCE_EXHAUSTED with a RetryInfo, when that says;
// RESOURCE_EXHAUSTED without it says that it is of no use.
func statusOf(http int) int {
	switch http {
	case 200:
		return codeOK
	case 400, 422:
		return codeInvalidArgument
	case 401:
		return codeUnauthenticated
	case 403:
		return codePermissionDenied
	case 405, 415:
		return codeUnimplemented
	case 408:
		return codeDeadlineExceeded
	case 413, 429:
		return codeResourceExhausted
	case 503:
		return codeUnavailable
	case 500:
		return codeInternal
	}
	return codeUnknown
}

const retryInfo = "type.googleapis.com/google.rpc.RetryInfo"

// appendStatus appends a google.rpc.Status:
//
//	code 1 int32, message 2 string,
//	details 3 Any { type_url 1, value 2: RetryInfo { retry_delay 1 Duration { seconds 1 } } }
//
// seconds is the delay after which to try again; 0: no details.
func appendStatus(dst []byte, code int, message string, seconds uint64) []byte {
	dst = protowire.AppendTag(dst, 1, protowire.VarintType)
	dst = protowire.AppendVarint(dst, uint64(code))
	dst = protowire.AppendTag(dst, 2, protowire.BytesType)
	dst = protowire.AppendString(dst, strings.ToValidUTF8(message, "\uFFFD"))
	if seconds == 0 {
		return dst
	}
	var duration, value, details []byte
	duration = protowire.AppendTag(duration, 1, protowire.VarintType)
	duration = protowire.AppendVarint(duration, seconds)
	value = protowire.AppendTag(value, 1, protowire.BytesType)
	value = protowire.AppendBytes(value, duration)
	details = protowire.AppendTag(details, 1, protowire.BytesType)
	details = protowire.AppendString(details, retryInfo)
	details = protowire.AppendTag(details, 2, protowire.BytesType)
	details = protowire.AppendBytes(details, value)
	dst = protowire.AppendTag(dst, 3, protowire.BytesType)
	return protowire.AppendBytes(dst, details)
}

var readers = pool.Pool[*reader]{New: newReader}

// Memory is for the pool.
func (r *reader) Memory() pool.Memory { return pool.Memory{r.text, r.Out, r.Raw} }
