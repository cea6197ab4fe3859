package splunk

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/decodetest"
)

// TestSharedMetadataCount: what the query says of each of many short lines does
// not get past the budget.
func TestSharedMetadataCount(t *testing.T) {
	r := receiver.New(receiver.Options{MaxUnpacked: 1 << 20, MaxBody: 1 << 20, InFlight: 1,
		Store: func(context.Context, *normalize.Batch) error { return nil }})
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
