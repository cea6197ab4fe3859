package sentry

import (
	"net/http"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/decodetest"
)

// TestSharedProjectCounts: the project, which is in each of many small logs,
// does not get past the budget.
func TestSharedProjectCounts(t *testing.T) {
	r := decodetest.NewServer(t, func(o *receiver.Options) { o.MaxUnpacked, o.MaxBody, o.InFlight = 1<<20, 1<<20, 8<<20 })
	mux := http.NewServeMux()
	mux.Handle("/api/{project}/envelope/", r.Handler(Envelope))
	body := "{}\n{\"type\":\"log\"}\n{\"items\":[" + strings.Repeat("{},", 80_000) + "{}]}"
	for project, code := range map[string]int{
		strings.Repeat("p", maxProject):   http.StatusRequestEntityTooLarge,
		strings.Repeat("p", maxProject+1): http.StatusBadRequest,
		"1":                               http.StatusOK,
	} {
		if rec := decodetest.Send(mux, "/api/"+project+"/envelope/", body); rec.Code != code {
			t.Errorf("%s: %d %.200s", project, rec.Code, rec.Body)
		}
	}
	if n := r.Stats().InFlight; n != 0 {
		t.Errorf("%d bytes are kept", n)
	}
}
