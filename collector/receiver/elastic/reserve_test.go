package elastic

import (
	"net/http"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/decodetest"
)

// TestSharedIndexCounts: an index of the path, which is in each of many small
// documents, does not get past the budget.
func TestSharedIndexCounts(t *testing.T) {
	r := decodetest.NewServer(t, func(o *receiver.Options) { o.MaxUnpacked, o.MaxBody, o.InFlight = 1<<20, 1<<20, 1 })
	mux := http.NewServeMux()
	mux.Handle("/{index}/_bulk", r.Handler(Bulk))
	body := strings.Repeat("{\"create\":{}}\n{}\n", 50_000)
	if rec := decodetest.Send(mux, "/"+strings.Repeat("i", 200)+"/_bulk", body); rec.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("%d %.200s", rec.Code, rec.Body)
	}
	if rec := decodetest.Send(mux, "/"+strings.Repeat("i", 200)+"/_bulk", body[:170]); rec.Code != http.StatusOK {
		t.Errorf("%d %.200s", rec.Code, rec.Body)
	}
	if n := r.Stats().InFlight; n != 0 {
		t.Errorf("%d bytes are kept", n)
	}
}
