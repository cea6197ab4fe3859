package splunk_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/receiver/receivertest"
	"github.com/rollway/rollway/collector/receiver/splunk"
)

func TestJSONVectors(t *testing.T) {
	request := func(body string) *http.Request {
		return httptest.NewRequest("POST", "/services/collector/event", strings.NewReader(body))
	}
	receivertest.Vectors(t, splunk.Event, request,
		receivertest.Envelope{Before: `{"event":{"k":`, Behind: `}}`, Row: true},
		receivertest.Envelope{Before: `{"event":{"message":{"k":`, Behind: `}}}`, Row: true},
		receivertest.Envelope{Before: `{"event":[1,`, Behind: `]}`, Row: true},
		receivertest.Envelope{Before: `{"event":"m","fields":{"k":`, Behind: `}}`, Row: true},
		receivertest.Envelope{Before: `{"event":"m","x":`, Behind: `}`, Row: true},
	)
}
