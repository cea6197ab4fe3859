package otlp

import (
	"fmt"
	"net/http"
	"strconv"
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
