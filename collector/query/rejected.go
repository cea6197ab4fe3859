package query

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/rollway/rollway/collector/deadletter"
)

// maxMarks and maxMarkBody bound a request that marks dead letters.
const (
	maxMarks    = 1000
	maxMarkBody = 64 << 10
)

// ServeRejected answers GET /api/rejected with the dead letters of s that match, as NDJSON,
// and marks those that a POST of {"replayed":["ID",…]} names as replayed. Unless tenant is
// "", it has to do with that tenant's alone. docs/INGEST.md has the parameters.
//
// An answer that failed after its first bytes ends in an aborted connection.
func (a *API) ServeRejected(w http.ResponseWriter, r *http.Request, s *deadletter.Store, tenant string) {
	if r.Method != http.MethodPost && !onlyGet(w, r) {
		return
	}
	filter, limit, last, err := a.parseRejected(r.URL.RawQuery)
	if err != nil {
		writeError(w, http.StatusBadRequest, err)
		return
	}
	switch {
	case s == nil:
		writeError(w, http.StatusNotFound, errors.New("rejected events are not kept here: rejected.keep_size is 0"))
		return
	case tenant != "" && filter.Tenant != nil && *filter.Tenant != tenant:
		writeError(w, http.StatusForbidden, errors.New("the token is of another tenant"))
		return
	case tenant != "":
		filter.Tenant = &tenant
	}
	ctx, done, ok := a.begin(w, r, a.queries, "queries")
	if !ok {
		return
	}
	defer done()
	if r.Method == http.MethodPost {
		markRejected(w, r, s, filter)
		return
	}
	leaveBody(r)
	setHeader(w, "application/x-ndjson")
	out := &stream{w: w, control: http.NewResponseController(w), timeout: a.o.WriteTimeout}
	err = s.Find(ctx, filter, last, func(e *deadletter.Entry) error {
		matched(r, 1)
		line, err := json.Marshal(e)
		out.buf = append(append(out.buf, line...), '\n')
		if limit--; limit == 0 {
			return cmp.Or(err, io.EOF)
		}
		if len(out.buf) >= streamBuffer {
			err = cmp.Or(err, out.flush())
		}
		return err
	})
	if err == nil || errors.Is(err, io.EOF) {
		err = out.flush()
	}
	switch {
	case err == nil:
	case out.started:
		panic(http.ErrAbortHandler) // the client must not take what it has for all
	default:
		writeError(w, http.StatusInternalServerError, fmt.Errorf("read dead letters: %w", err))
	}
}

// parseRejected reads the parameters of a request.
func (a *API) parseRejected(raw string) (f deadletter.Filter, limit, last int, err error) {
	values, err := parameters(raw, "reason", "receiver", "tenant", "text", "id", "since", "until", "limit", "last")
	if err != nil {
		return f, 0, 0, err
	}
	f = deadletter.Filter{Reason: values.Get("reason"), Receiver: values.Get("receiver"), Text: values.Get("text"), ID: values.Get("id")}
	if values.Has("tenant") {
		tenant := values.Get("tenant")
		f.Tenant = &tenant
	}
	now := time.Now()
	for name, to := range map[string]*time.Time{"since": &f.Since, "until": &f.Until} {
		switch t, err := parseTime(values, name, now); {
		case err != nil:
			return f, 0, 0, err
		case t != nil:
			*to = *t
		}
	}
	limit, last, err = a.parseCounts(values)
	return f, limit, last, err
}

// markRejected marks the dead letters that the body names.
func markRejected(w http.ResponseWriter, r *http.Request, s *deadletter.Store, filter deadletter.Filter) {
	var ask struct{ Replayed []string }
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxMarkBody))
	if err == nil {
		err = json.Unmarshal(text, &ask)
	}
	if err != nil || len(ask.Replayed) == 0 || len(ask.Replayed) > maxMarks {
		writeError(w, http.StatusBadRequest, fmt.Errorf(`expected {"replayed":["ID",…]} with at most %d ids of dead letters`, maxMarks))
		return
	}
	n, err := s.Mark(filter, ask.Replayed)
	if err != nil {
		writeError(w, http.StatusInternalServerError, err)
		return
	}
	setHeader(w, "application/json")
	json.NewEncoder(w).Encode(map[string]int{"marked": n}) // a client that is gone needs no answer
}
