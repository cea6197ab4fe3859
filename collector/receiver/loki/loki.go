// Package loki takes logs as Grafana Loki does: JSON, or protocol buffers
// packed by snappy, also without a Content-Encoding that says so.
//
// An entry whose line is a JSON object becomes the event that the object is, by
// the table of known keys of package normalize: so canonical lines pass. Any
// other line is msg. The entry's timestamp is the event's time, unless the
// object has one; if they differ it is kept in attrs as entry_time. Labels and
// structured metadata come after that, by the same table; service_name is a
// service, too, and a label that says of the level what the object says already
// is left out. What finds its slot taken is in attrs.
//
// Answers are Loki's: 204; 400 if entries were rejected, with those that were
// not stored all the same, and their number in the text, so that nobody sends
// them again; 429 and 503 to be sent again.
package loki

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/rollway/rollway/collector/pool"
	"github.com/rollway/rollway/collector/receiver"
)

// Protocol is Loki's push.
var Protocol receiver.Protocol = push{}

type push struct{}

// isJSON reports whether a request is in JSON. All else is protocol buffers,
// as it is for Loki.
func isJSON(h http.Header) bool {
	kind, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	return strings.EqualFold(strings.TrimSpace(kind), "application/json")
}

// Packing makes the Protocol a receiver.Packer.
func (push) Packing(h http.Header) string {
	if isJSON(h) {
		return ""
	}
	return "snappy"
}

func (push) Decode(q *receiver.Request) error {
	r := readers.Get()
	defer r.release()
	msg := q.Body
	if isJSON(q.HTTP.Header) {
		var err error
		if msg, err = r.transcode(q); err != nil {
			return err
		}
	}
	return r.read(q, msg)
}

var (
	plainText  = []string{"text/plain; charset=utf-8"}
	retryAfter = []string{"1"}
)

func (push) Answer(a *receiver.Answer) {
	rejected := 0
	if a.Batch != nil {
		rejected = a.Batch.RejectedTotal
	}
	if a.Code == http.StatusOK && rejected == 0 {
		a.Code = http.StatusNoContent
		delete(a.Header, "Content-Type")
		return
	}
	if a.Code == http.StatusRequestTimeout { // at which clients of Loki give up
		a.Code = http.StatusServiceUnavailable
		a.Header["Retry-After"] = retryAfter
	}
	a.Header["Content-Type"] = plainText
	if a.Code == http.StatusOK || a.Code == http.StatusBadRequest && rejected > 0 && len(a.Batch.Rejected) > 0 && a.Batch.Rejected[0].Detail != "" {
		a.Code = http.StatusBadRequest
		for i := range a.Batch.Rejected {
			if i == maxListed {
				break
			}
			a.Body = fmt.Appendf(a.Body, "entry %d ignored, reason: '%s',\n", a.Batch.Rejected[i].Index, a.Batch.Rejected[i].Detail)
		}
		a.Body = fmt.Appendf(a.Body, "total ignored: %d out of %d\n", rejected, rejected+a.Stored+a.Dropped)
		return
	}
	a.Body = append(a.Body, a.Text...)
	a.Body = append(a.Body, '\n')
}

// maxListed is how many rejected entries an answer names.
const maxListed = 10

var readers = pool.Pool[*reader]{New: newReader}

// Memory is for the pool.
func (r *reader) Memory() pool.Memory { return pool.Memory{r.values, r.time, r.Out, r.Raw} }
