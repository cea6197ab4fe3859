package splunk

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/normalize"
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

// What each line gets of the query counts as work: others get their turn, whether the
// lines are stored or rejected.
func TestRawPauses(t *testing.T) {
	const lines, host = 1000, 20_000
	for _, most := range []int{host - 1, host + 1000} {
		norm, pauses := normalize.New(normalize.Limits{MaxEventBytes: most}), 0
		norm.Pause(func() { pauses++ })
		req := httptest.NewRequest("POST", "/?host="+strings.Repeat("x", host), nil)
		if _, err := decodetest.Decode(Raw, norm, new(normalize.Batch), req, []byte(strings.Repeat("a\n", lines)), nil); err != nil {
			t.Fatal(err)
		}
		if pauses < lines/2 {
			t.Errorf("events of %d bytes at most: %d pauses while %d bytes were made", most, pauses, lines*host)
		}
	}
}
