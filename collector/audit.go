package collector

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/rollway/rollway/collector/query"
	"github.com/rollway/rollway/collector/receiver"
)

// audited stores a line about each query of a person: who asked what, when, and how many lines it
// found. What lasts, a tail, has one at its beginning too.
func (c *Collector) audited(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := callerOf(r)
		if who.user == "" {
			next.ServeHTTP(w, r)
			return
		}
		asked, values := map[string]any{"path": r.URL.Path}, r.URL.Query()
		for _, name := range []string{"q", "since", "until", "field", "offset", "text", "id"} {
			if values.Has(name) {
				asked[name] = values.Get(name)
			}
		}
		if r.URL.Path == tailPath {
			c.audit(r, who, "tail begins", asked)
		}
		var lines atomic.Uint64
		begun := time.Now()
		defer func() {
			asked["lines"], asked["took_ms"] = lines.Load(), time.Since(begun).Milliseconds()
			if answer, is := w.(*answerWriter); is {
				asked["status"] = answer.code
			}
			c.audit(r, who, "query", asked)
		}()
		next.ServeHTTP(w, query.Matched(r, &lines))
	})
}

// auditLogger is the logger of lines about what persons do.
const auditLogger = "audit"

// audit stores a line about what a person did. It belongs to no tenant: tokens of tenants do not
// find it. If it cannot be stored, the collector's log has it.
func (c *Collector) audit(r *http.Request, who caller, did string, more map[string]any) {
	attrs := map[string]any{"user": who.user, "remote": c.state.Load().client(r).String()}
	if who.token != nil {
		attrs["token"], attrs["of_tenant"] = who.token.Name, who.token.Tenant()
	}
	maps.Copy(attrs, more)
	line, err := json.Marshal(map[string]any{"level": "INFO", "msg": did, "service": "rollway", "logger": auditLogger, "attrs": attrs})
	if err == nil {
		answer := c.send(nil, "", line)
		if answer.code == http.StatusOK {
			return
		}
		line = append(append(line, ' '), answer.body.Bytes()...)
	}
	c.log.Warn("a person's query is not in the journal", "line", string(line), "error", err)
}

// ownKey is where send leaves an ownRequest in a request's context. No request from outside has it.
type ownKey struct{}

// ownRequest is a request of the collector itself for a sender; nil: nobody's.
type ownRequest struct{ sender receiver.Sender }

// ownAnswer is an answer in memory.
type ownAnswer struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (a *ownAnswer) Header() http.Header         { return a.header }
func (a *ownAnswer) WriteHeader(code int)        { a.code = code }
func (a *ownAnswer) Write(p []byte) (int, error) { return a.body.Write(p) }

// send has the receiver take events as those of a sender, or nobody's, once under a key.
func (c *Collector) send(from receiver.Sender, key string, body []byte) *ownAnswer {
	ctx := context.WithValue(context.Background(), ownKey{}, ownRequest{from})
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, logsPath, bytes.NewReader(body))
	if err != nil {
		panic(err) // the path is valid
	}
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set(receiver.KeyHeader, key)
	}
	answer := &ownAnswer{header: make(http.Header), code: http.StatusOK}
	c.receiver.ServeHTTP(answer, r)
	return answer
}

const logsPath = "/api/logs"
