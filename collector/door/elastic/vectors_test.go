package elastic_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/door/doortest"
	"github.com/rollway/rollway/collector/door/elastic"
)

func TestJSONVectors(t *testing.T) {
	request := func(body string) *http.Request {
		return httptest.NewRequest("POST", "/_bulk", strings.NewReader(body))
	}
	doortest.Vectors(t, elastic.Bulk, request,
		doortest.Envelope{Before: "{\"index\":{}}\n{\"k\":", Behind: "}\n", Line: true},
		doortest.Envelope{Before: "{\"create\":{}}\n{\"log\":{\"k\":", Behind: "}}", Line: true},
		doortest.Envelope{Before: "{\"create\":{}}\n{\"error.k\":", Behind: "}", Line: true},
		doortest.Envelope{Before: "{\"index\":{\"x\":", Behind: "}}\n{}\n", Line: true},
	)
}
