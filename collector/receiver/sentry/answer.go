package sentry

import (
	"net/http"
	"strconv"

	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/internal/jsonline"
)

// answerer answers both protocols.
type answerer struct{}

// Answer gives the id of the event, or says why nothing was taken.
func (answerer) Answer(a *receiver.Answer) {
	switch {
	case a.Code == http.StatusServiceUnavailable || a.Code == http.StatusTooManyRequests:
		a.Code = http.StatusTooManyRequests
		// Seconds, all categories, of whatever belongs to the key.
		a.Header["X-Sentry-Rate-Limits"] = []string{a.Header.Get("Retry-After") + "::key:full"}
	case a.Code == http.StatusOK:
		if n := a.Batch.RejectedTotal; n > 0 {
			a.Header["X-Sentry-Error"] = []string{strconv.Itoa(n) + " of the envelope's events cannot be stored as they are"}
		}
		id := ""
		if len(a.Note) > 1 {
			id = `"id":"` + string(a.Note[1:]) + `"`
		}
		a.Body = append(a.Body, "{"+id+"}\n"...)
		return
	}
	a.Header["X-Sentry-Error"] = []string{oneLine(a.Text)}
	a.Body = append(jsonline.AppendString(append(a.Body, `{"detail":`...), a.Text), "}\n"...)
}

// oneLine makes text fit for a header.
func oneLine(text string) string {
	b := []byte(text[:min(len(text), 200)])
	for i, c := range b {
		if c < ' ' || c > '~' {
			b[i] = '?'
		}
	}
	return string(b)
}
