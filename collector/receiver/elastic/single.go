package elastic

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"

	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/internal/jsonline"
)

// Document is the protocol of a request with one document, as to /INDEX/_doc/ID.
var Document receiver.Protocol = document{}

type document struct{ bulk }

// maxID is Elasticsearch's, in bytes.
const maxID = 512

// Decode reads the document.
func (document) Decode(q *receiver.Request) error {
	return decode(q, func(d *decoder) error {
		if len(bytes.TrimSpace(q.Body)) == 0 {
			return errNoBody
		}
		d.line, d.act = 1, action{op: opIndex, meta: []byte("{}")}
		if id := q.HTTP.PathValue("id"); len(id) > maxID {
			return fmt.Errorf("the id of %d bytes is longer than %d", len(id), maxID)
		} else if id != "" {
			d.act.id = jsonline.AppendString(nil, id)
			d.act.meta = append(append([]byte(`{"_id":`), d.act.id...), '}')
		}
		d.Begin()
		d.Raw(q.Body)
		d.item(q.Body)
		return nil
	})
}

// Answer tells what became of the document, as of an item of a bulk request.
func (document) Answer(a *receiver.Answer) {
	a.Header["X-Elastic-Product"] = product
	if len(a.Note) == 0 || a.Code != http.StatusOK && a.Code != http.StatusBadRequest {
		a.Body = appendFault(a.Body, a.Code, a.Text)
		return
	}
	_, index, note := head(a)
	if a.Code = http.StatusBadRequest; note[1] == stored || note[1] == dropped {
		a.Code = map[byte]int{stored: http.StatusCreated, dropped: http.StatusOK}[note[1]]
	}
	start := len(a.Body)
	items := items{a: a, index: index}
	items.append(note)
	item := a.Body[start+len(`{"index":`) : len(a.Body)-1]
	a.Body = append(append(a.Body[:start], item...), '\n')
}

// Documents has the paths of documents with an id begin with Prefix: as a pattern of
// http.ServeMux, /INDEX/_doc/ID would conflict with paths such as /api/PROJECT/store.
func Documents(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path := r.URL.Path; (r.Method == http.MethodPost || r.Method == http.MethodPut) && (strings.Contains(path, "/_doc/") || strings.Contains(path, "/_create/")) {
			names := strings.SplitN(path, "/", 5)
			if len(names) == 4 && names[0] == "" && names[1] != "api" && (names[2] == "_doc" || names[2] == "_create") {
				r.URL.Path, r.URL.RawPath = Prefix+path, ""
			}
		}
		next.ServeHTTP(w, r)
	})
}
