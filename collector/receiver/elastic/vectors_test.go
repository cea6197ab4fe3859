package elastic_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/receiver/elastic"
	"github.com/rollway/rollway/collector/receiver/receivertest"
)

func TestJSONVectors(t *testing.T) {
	request := func(body string) *http.Request {
		return httptest.NewRequest("POST", "/_bulk", strings.NewReader(body))
	}
	receivertest.Vectors(t, elastic.Bulk, request,
		receivertest.Envelope{Before: "{\"index\":{}}\n{\"k\":", Behind: "}\n", Line: true},
		receivertest.Envelope{Before: "{\"create\":{}}\n{\"log\":{\"k\":", Behind: "}}", Line: true},
		receivertest.Envelope{Before: "{\"create\":{}}\n{\"error.k\":", Behind: "}", Line: true},
		receivertest.Envelope{Before: "{\"index\":{\"x\":", Behind: "}}\n{}\n", Line: true},
	)
}
