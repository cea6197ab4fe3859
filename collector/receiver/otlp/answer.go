package otlp

import (
	"fmt"
	"net/http"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/internal/jsonline"
)

// Contents of a header, shared by all answers.
var (
	protobufType = []string{inProtobuf}
	jsonType     = []string{inJSON}
	retryAfter   = []string{"1"}
)

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

// appendJSON appends the answer: an ExportLogsServiceResponse or a Status.
func appendJSON(dst []byte, a *receiver.Answer) []byte {
	if a.Code != http.StatusOK {
		return fmt.Appendf(dst, `{"code":%d,"message":%s}`, statusOf(a.Code), jsonline.AppendString(nil, a.Text))
	}
	if a.Batch.RejectedTotal == 0 {
		return append(dst, "{}"...)
	}
	return fmt.Appendf(dst, `{"partialSuccess":{"rejectedLogRecords":"%d","errorMessage":%s}}`,
		a.Batch.RejectedTotal, jsonline.AppendString(nil, rejections(a.Batch)))
}

// appendResponse appends an ExportLogsServiceResponse:
//
//	partial_success 1 { rejected_log_records 1 int64, error_message 2 string }
func appendResponse(dst []byte, b *normalize.Batch) []byte {
	if b.RejectedTotal == 0 {
		return dst
	}
	return appendField(dst, 1, appendField(appendNumber(nil, 1, uint64(b.RejectedTotal)), 2, []byte(rejections(b))))
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

// statuses are the codes for statuses of HTTP. Clients try again after UNAVAILABLE, and
// after RESOURCE_EXHAUSTED with a RetryInfo, when that says; RESOURCE_EXHAUSTED without it
// says that it is of no use.
var statuses = map[int]int{
	200: codeOK,
	400: codeInvalidArgument, 422: codeInvalidArgument,
	401: codeUnauthenticated,
	403: codePermissionDenied,
	405: codeUnimplemented, 415: codeUnimplemented,
	408: codeDeadlineExceeded,
	413: codeResourceExhausted, 429: codeResourceExhausted,
	500: codeInternal,
	503: codeUnavailable,
}

// statusOf returns the code for a status of HTTP.
func statusOf(http int) int {
	if code, known := statuses[http]; known {
		return code
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
	dst = appendField(appendNumber(dst, 1, uint64(code)), 2, []byte(strings.ToValidUTF8(message, "\uFFFD")))
	if seconds == 0 {
		return dst
	}
	delay := appendField(nil, 1, appendNumber(nil, 1, seconds))
	return appendField(dst, 3, appendField(appendField(nil, 1, []byte(retryInfo)), 2, delay))
}

// appendNumber appends a field that is a varint.
func appendNumber(dst []byte, num protowire.Number, n uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(dst, num, protowire.VarintType), n)
}
