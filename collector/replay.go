package collector

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/rollway/rollway/collector/access"
	"github.com/rollway/rollway/collector/admission"
	"github.com/rollway/rollway/collector/deadletter"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/reread"
)

const (
	replayPath = rejectedPath + "/replay"
	maxReplay  = 100 // dead letters
)

// replayed is the answer to a request to send dead letters again.
type replayed struct {
	Stored int            `json:"stored"` // events
	Before int            `json:"before"` // events that had been stored under the dead letter's key
	Marked int            `json:"marked"` // dead letters
	Failed []replayFailed `json:"failed"` // dead letters
}

type replayFailed struct {
	ID    string `json:"id"`
	Error string `json:"error"`
}

// serveReplay sends the dead letters that the body names again, as {"ids":["ID",…]}, and marks what
// is stored. An event keeps the tenant of its first sender.
func (c *Collector) serveReplay(w http.ResponseWriter, r *http.Request) {
	who, err := c.caller(r, access.Write|access.Operate)
	switch {
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", "POST")
		writeJSON(w, http.StatusMethodNotAllowed, map[string]any{"error": fmt.Sprintf("method %.20q is not allowed here; use POST", r.Method)})
		return
	case err != nil:
		writeRefusal(w, err)
		return
	case c.rejected == nil:
		writeJSON(w, http.StatusNotFound, map[string]any{"error": "rejected events are not kept here: rejected.keep_size is 0"})
		return
	}
	var ask struct{ IDs []string }
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxAsk))
	if err == nil {
		err = json.Unmarshal(text, &ask)
	}
	if err != nil || len(ask.IDs) == 0 || len(ask.IDs) > maxReplay {
		writeJSON(w, http.StatusBadRequest, map[string]any{"error": fmt.Sprintf(`expected {"ids":["ID",…]} with at most %d ids of dead letters`, maxReplay)})
		return
	}
	done, ok := c.asQuery(w, r)
	if !ok {
		return
	}
	defer done()
	answer, err := c.replay(r, ask.IDs)
	if err != nil {
		writeJSON(w, http.StatusInternalServerError, map[string]any{"error": err.Error()})
		return
	}
	if who.user != "" {
		c.audit(r, who, "dead letters sent again", map[string]any{"path": replayPath, "asked": len(ask.IDs), "stored": answer.Stored, "failed": len(answer.Failed)})
	}
	writeJSON(w, http.StatusOK, answer)
}

// maxAsk bounds the body of a request that names things.
const maxAsk = 64 << 10

// asQuery takes the place of one query. If it returns false, the request is answered.
func (c *Collector) asQuery(w http.ResponseWriter, r *http.Request) (done func(), ok bool) {
	p, queries := c.payer(r), c.admission.Resource(admission.Queries)
	if !queries.Acquire(p, 1) {
		w.Header().Set("Retry-After", "1")
		writeJSON(w, http.StatusTooManyRequests, map[string]any{"error": "too many queries are running; try again later"})
		return nil, false
	}
	return func() { queries.Release(p, 1) }, true
}

// replay sends dead letters again that the caller may know.
func (c *Collector) replay(r *http.Request, ids []string) (*replayed, error) {
	asked, tenant := make(map[string]bool), tenantOf(r)
	for _, id := range ids {
		asked[id] = true
	}
	filter := deadletter.Filter{}
	if tenant != "" {
		filter.Tenant = &tenant
	}
	answer, stored := &replayed{Failed: []replayFailed{}}, []string{}
	err := c.rejected.Find(r.Context(), filter, 0, func(e *deadletter.Entry) error {
		if !asked[e.ID] {
			return r.Context().Err()
		}
		delete(asked, e.ID)
		if err := c.replayOne(r, e, answer); err != nil {
			answer.Failed = append(answer.Failed, replayFailed{e.ID, err.Error()})
		} else {
			stored = append(stored, e.ID)
		}
		return r.Context().Err()
	})
	for id := range asked {
		answer.Failed = append(answer.Failed, replayFailed{id, "there is no such dead letter"})
	}
	if len(stored) > 0 {
		n, markErr := c.rejected.Mark(filter, stored)
		answer.Marked, err = n, errors.Join(err, markErr)
	}
	return answer, err
}

// replayOne sends one dead letter.
func (c *Collector) replayOne(r *http.Request, e *deadletter.Entry, total *replayed) error {
	switch {
	case e.Withheld:
		return errors.New("its text was not kept, as rules redact events")
	case e.Replayed:
		return errors.New("it is marked as sent again")
	}
	limits := c.receiveOptions().Limits
	limits.MaxPast, limits.MaxFuture = -1, -1 // the line is looked at again
	var turn admission.Turn
	turn.Use(c.admission.CPU, c.payer(r))
	turn.Begin()
	line, _, err := reread.Line(e, limits)
	turn.End()
	if err != nil {
		return err
	}
	answer := c.send(c.ofTenant(e.Tenant), reread.Key(e), bytes.ToValidUTF8(line, []byte("\uFFFD")))
	var told struct {
		Error         string
		Accepted      int
		RejectedTotal int `json:"rejected_total"`
		Rejected      []struct{ Reason, Detail string }
	}
	if err := json.Unmarshal(answer.body.Bytes(), &told); err != nil {
		return fmt.Errorf("read the answer of the receiver: %w", err)
	}
	if answer.header.Get(receiver.ReplayedHeader) != "" {
		total.Before += told.Accepted
	} else {
		total.Stored += told.Accepted
	}
	switch {
	case len(told.Rejected) > 0:
		return fmt.Errorf("rejected again: %s: %s", told.Rejected[0].Reason, told.Rejected[0].Detail)
	case answer.code != http.StatusOK:
		return errors.New(told.Error)
	}
	return nil
}

// payer is who pays for a request.
func (c *Collector) payer(r *http.Request) *admission.Principal {
	if p := admission.FromContext(r.Context()); p != nil {
		return p
	}
	return c.admission.Named("", 1)
}
