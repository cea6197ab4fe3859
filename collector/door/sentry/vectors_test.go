package sentry_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/door/doortest"
	"github.com/rollway/rollway/collector/door/sentry"
)

func TestJSONVectors(t *testing.T) {
	request := func(path string) func(string) *http.Request {
		return func(body string) *http.Request { return httptest.NewRequest("POST", path, strings.NewReader(body)) }
	}
	doortest.Vectors(t, sentry.Store, request("/api/1/store/"),
		doortest.Envelope{Before: `{"message":"m","x":`, Behind: `}`},
		doortest.Envelope{Before: `{"logentry":{"message":"m","params":`, Behind: `}}`},
		doortest.Envelope{Before: `{"contexts":{"trace":{"k":`, Behind: `}}}`},
		doortest.Envelope{Before: `{"exception":{"values":[{"type":"T","x":`, Behind: `}]}}`},
	)
	doortest.Vectors(t, sentry.Envelope, request("/api/1/envelope/"),
		doortest.Envelope{Before: "{}\n{\"type\":\"event\"}\n{\"extra\":{\"k\":", Behind: "}}\n", Line: true},
		doortest.Envelope{Before: "{}\n{\"type\":\"log\"}\n{\"items\":[{\"body\":\"m\",\"x\":", Behind: "}]}", Line: true},
		doortest.Envelope{Before: "{}\n{\"type\":\"log\"}\n{\"items\":[{\"attributes\":{\"k\":{\"type\":\"t\",\"value\":", Behind: "}}}]}", Line: true},
		doortest.Envelope{Before: "{\"x\":", Behind: "}\n{\"type\":\"event\"}\n{}", Line: true, Flat: true, Unsized: true},
		doortest.Envelope{Before: "{}\n{\"type\":\"event\",\"x\":", Behind: "}\n{}", Line: true, Flat: true, Unsized: true},
	)
}
