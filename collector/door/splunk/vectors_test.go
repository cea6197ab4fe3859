package splunk_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/door/doortest"
	"github.com/rollway/rollway/collector/door/splunk"
)

func TestJSONVectors(t *testing.T) {
	request := func(body string) *http.Request {
		return httptest.NewRequest("POST", "/services/collector/event", strings.NewReader(body))
	}
	doortest.Vectors(t, splunk.Event, request,
		doortest.Envelope{Before: `{"event":{"k":`, Behind: `}}`, Row: true},
		doortest.Envelope{Before: `{"event":{"message":{"k":`, Behind: `}}}`, Row: true},
		doortest.Envelope{Before: `{"event":[1,`, Behind: `]}`, Row: true},
		doortest.Envelope{Before: `{"event":"m","fields":{"k":`, Behind: `}}`, Row: true},
		doortest.Envelope{Before: `{"event":"m","x":`, Behind: `}`, Row: true},
	)
}
