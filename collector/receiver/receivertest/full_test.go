package receivertest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/elastic"
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// fullAnswer is what a receiver whose store is full answers.
func fullAnswer(t *testing.T, r *http.Request) (*http.Response, error) {
	full := func(context.Context, *normalize.Batch, receiver.StoreOptions) (receiver.Stored, error) {
		return receiver.Stored{}, receiver.ErrFull
	}
	receiver := receiver.New(receiver.StoreFunc(full), receiver.Options{})
	rec := httptest.NewRecorder()
	receiver.Handler(elastic.Bulk).ServeHTTP(rec, r)
	if rec.Code != http.StatusServiceUnavailable || rec.Header().Get("Retry-After") != "1" {
		t.Errorf("%d %v", rec.Code, rec.Header())
	}
	return rec.Result(), nil
}
