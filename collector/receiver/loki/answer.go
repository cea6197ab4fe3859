package loki

import (
	"fmt"
	"net/http"

	"github.com/rollway/rollway/collector/receiver"
)

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
