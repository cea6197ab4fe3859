package elastic

import (
	"encoding/binary"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/internal/jsonline"
)

// Header values, shared by all answers.
var (
	product     = []string{"Elasticsearch"}
	vendorTypes = [...][]string{
		7: {"application/vnd.elasticsearch+json;compatible-with=7"},
		8: {"application/vnd.elasticsearch+json;compatible-with=8"},
		9: {"application/vnd.elasticsearch+json;compatible-with=9"},
	}
)

// vendorVersion returns the version of Elasticsearch whose media type a client
// wants for the answer, 0 if it wants plain JSON.
func vendorVersion(h http.Header) int {
	for _, accept := range h["Accept"] {
		if !strings.Contains(accept, "application/vnd.elasticsearch+json") {
			continue
		}
		for version := 7; version < len(vendorTypes); version++ {
			if strings.Contains(accept, "compatible-with="+string(rune('0'+version))) {
				return version
			}
		}
	}
	return 0
}

// Answer tells of each item, or why none was taken.
func (bulk) Answer(a *receiver.Answer) {
	a.Header["X-Elastic-Product"] = product
	// 400 with a note: the request was read, but all its items are rejected.
	if len(a.Note) == 0 || a.Code != http.StatusOK && a.Code != http.StatusBadRequest {
		a.Body = appendFault(a.Body, a.Code, a.Text)
		return
	}
	a.Code = http.StatusOK
	note := a.Note
	if note[0] > 0 {
		a.Header["Content-Type"] = vendorTypes[note[0]]
	}
	received := time.Unix(0, int64(binary.LittleEndian.Uint64(note[1:])))
	index, note := cutNoted(note[9:])
	a.Body = append(a.Body, `{"took":`...)
	a.Body = strconv.AppendInt(a.Body, max(0, time.Since(received).Milliseconds()), 10)
	a.Body = append(a.Body, `,"errors":`...)
	a.Body = strconv.AppendBool(a.Body, a.Batch.RejectedTotal > 0)
	a.Body = append(a.Body, `,"items":[`...)
	items := items{a: a, index: index}
	most := math.MaxInt
	if a.ToFluentBit() { // which does not ask for which item an answer is
		most = 256 << 10
	}
	for first := true; len(note) > 0 && len(a.Body) < most; first = false {
		if !first {
			a.Body = append(a.Body, ',')
		}
		note = items.append(note)
	}
	a.Body = append(a.Body, "]}\n"...)
}

// items writes the answers of items in a row.
type items struct {
	a        *receiver.Answer
	index    []byte
	kept     uint64 // items so far that were stored
	rejected int    // and that were not
}

// append writes the answer of the first item of note and returns the rest.
func (it *items) append(note []byte) []byte {
	o, outcome := op(note[0]), note[1]
	index, note := cutNoted(note[2:])
	id, note := cutNoted(note)
	if len(index) == 0 {
		index = it.index
	}
	dst := append(it.a.Body, `{"`...)
	dst = append(dst, opNames[o]...)
	dst = append(dst, `":{"_index":`...)
	if len(index) == 0 {
		dst = append(dst, `""`...)
	}
	dst = append(dst, index...)
	switch outcome {
	case stored:
		it.a.Body = it.appendStored(dst, id)
	case dropped:
		it.a.Body = appendDropped(dst, id)
	default:
		it.a.Body = it.appendRejected(dst, id, outcome)
	}
	return note
}

func (it *items) appendStored(dst, id []byte) []byte {
	offset := it.a.First + it.kept
	it.kept++
	if len(id) == 0 {
		dst = append(dst, `,"_id":"`...)
		dst = strconv.AppendUint(dst, offset, 10)
		dst = append(dst, '"')
	} else {
		dst = appendID(dst, id)
	}
	dst = append(dst, `,"_version":1,"result":"created","_shards":{"total":1,"successful":1,"failed":0},"_seq_no":`...)
	dst = strconv.AppendUint(dst, offset, 10)
	return append(dst, `,"_primary_term":1,"status":201}}`...)
}

func (it *items) appendRejected(dst, id []byte, outcome byte) []byte {
	if len(id) > 0 {
		dst = appendID(dst, id)
	}
	status, kind, reason := ",\"status\":400", "document_parsing_exception", "the item cannot be stored as it is"
	if outcome == why429 {
		status, kind, reason = ",\"status\":429", "es_rejected_execution_exception", "too many items for one request, send this one again"
	}
	if list := it.a.Batch.Rejected; it.rejected < len(list) {
		reason = list[it.rejected].Detail
	}
	it.rejected++
	dst = append(dst, status...)
	dst = append(dst, `,"error":{"type":"`...)
	dst = append(dst, kind...)
	dst = append(dst, `","reason":`...)
	dst = jsonline.AppendString(dst, reason)
	return append(dst, "}}}"...)
}

// appendDropped answers as an ingest pipeline does that drops the document.
func appendDropped(dst, id []byte) []byte {
	if len(id) > 0 {
		dst = appendID(dst, id)
	}
	return append(dst, `,"result":"noop","status":200}}`...)
}

func appendID(dst, id []byte) []byte {
	dst = append(dst, `,"_id":`...)
	if id[0] == '"' {
		return append(dst, id...)
	}
	dst = append(dst, '"')
	dst = append(dst, id...)
	return append(dst, '"')
}

// appendFault appends the answer to a request when nothing was taken.
func appendFault(dst []byte, code int, text string) []byte {
	kind := "illegal_argument_exception"
	switch code {
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		kind = "es_rejected_execution_exception"
	case http.StatusRequestEntityTooLarge:
		kind = "content_too_long_exception"
	case http.StatusForbidden:
		kind = "security_exception"
	case http.StatusInternalServerError:
		kind = "exception"
	}
	cause := func(dst []byte) []byte {
		dst = append(dst, `"type":"`...)
		dst = append(dst, kind...)
		dst = append(dst, `","reason":`...)
		return jsonline.AppendString(dst, text)
	}
	dst = append(dst, `{"error":{"root_cause":[{`...)
	dst = append(cause(dst), `}],`...)
	dst = append(cause(dst), `},"status":`...)
	dst = strconv.AppendInt(dst, int64(code), 10)
	return append(dst, "}\n"...)
}
