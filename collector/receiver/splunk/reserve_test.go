package splunk

import (
	"net/http"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/decodetest"
)

// TestSharedMetadataCount: what the query says of each of many short lines does
// not get past the budget.
func TestSharedMetadataCount(t *testing.T) {
	r := decodetest.NewServer(t, func(o *receiver.Options) { o.MaxUnpacked, o.MaxBody, o.InFlight = 1<<20, 1<<20, 1 })
	path := "/raw?host=" + strings.Repeat("h", 20_000)
	body := strings.Repeat("x\n", 10_000)
	if rec := decodetest.Send(r.Handler(Raw), path, body); rec.Code != http.StatusRequestEntityTooLarge || !strings.Contains(rec.Body.String(), `"code":6`) {
		t.Errorf("%d %.200s", rec.Code, rec.Body)
	}
	if rec := decodetest.Send(r.Handler(Raw), path, body[:10]); rec.Code != http.StatusOK {
		t.Errorf("%d %.200s", rec.Code, rec.Body)
	}
	if n := r.Stats().InFlight; n != 0 {
		t.Errorf("%d bytes are kept", n)
	}
}
