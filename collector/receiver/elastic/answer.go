package elastic

import (
	"cmp"
	"encoding/binary"
	"fmt"
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
	received, index, note := head(a)
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

// head reads the head of the note, and says in the answer what it is written in. The rest of
// the note has the items.
func head(a *receiver.Answer) (received time.Time, index, rest []byte) {
	if a.Note[0] > 0 {
		a.Header["Content-Type"] = vendorTypes[a.Note[0]]
	}
	received = time.Unix(0, int64(binary.LittleEndian.Uint64(a.Note[1:])))
	index, rest = cutNoted(a.Note[9:])
	return received, index, rest
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
		// As an ingest pipeline answers that drops the document.
		it.a.Body = append(appendID(dst, id), `,"result":"noop","status":200}}`...)
	default:
		it.a.Body = it.appendRejected(dst, id, outcome)
	}
	return note
}

func (it *items) appendStored(dst, id []byte) []byte {
	offset := it.a.First + it.kept
	it.kept++
	if len(id) == 0 {
		var number [20]byte
		id = strconv.AppendUint(number[:0], offset, 10)
	}
	dst = appendID(dst, id)
	dst = append(dst, `,"_version":1,"result":"created","_shards":{"total":1,"successful":1,"failed":0},"_seq_no":`...)
	dst = strconv.AppendUint(dst, offset, 10)
	return append(dst, `,"_primary_term":1,"status":201}}`...)
}

func (it *items) appendRejected(dst, id []byte, outcome byte) []byte {
	status, kind, reason := http.StatusBadRequest, "document_parsing_exception", "the item cannot be stored as it is"
	if outcome == why429 {
		status, kind, reason = http.StatusTooManyRequests, "es_rejected_execution_exception", "too many items for one request, send this one again"
	}
	if list := it.a.Batch.Rejected; it.rejected < len(list) {
		reason = list[it.rejected].Detail
	}
	it.rejected++
	dst = fmt.Appendf(appendID(dst, id), `,"status":%d,"error":{"type":"%s","reason":`, status, kind)
	return append(jsonline.AppendString(dst, reason), "}}}"...)
}

// appendID appends an id, unless the item has none.
func appendID(dst, id []byte) []byte {
	if len(id) == 0 {
		return dst
	}
	dst = append(dst, `,"_id":`...)
	if id[0] == '"' {
		return append(dst, id...)
	}
	dst = append(dst, '"')
	dst = append(dst, id...)
	return append(dst, '"')
}

// faults are the types of errors by their status, besides illegal_argument_exception.
var faults = map[int]string{
	http.StatusServiceUnavailable:    "es_rejected_execution_exception",
	http.StatusTooManyRequests:       "es_rejected_execution_exception",
	http.StatusRequestEntityTooLarge: "content_too_long_exception",
	http.StatusForbidden:             "security_exception",
	http.StatusUnauthorized:          "security_exception",
	http.StatusInternalServerError:   "exception",
}

// appendFault appends the answer to a request when nothing was taken.
func appendFault(dst []byte, code int, text string) []byte {
	cause := fmt.Sprintf(`"type":"%s","reason":%s`, cmp.Or(faults[code], "illegal_argument_exception"), jsonline.AppendString(nil, text))
	return fmt.Appendf(dst, `{"error":{"root_cause":[{%s}],%s},"status":%d}`+"\n", cause, cause, code)
}
