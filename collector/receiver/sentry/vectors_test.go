package sentry_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/receiver/receivertest"
	"github.com/rollway/rollway/collector/receiver/sentry"
)

func TestJSONVectors(t *testing.T) {
	request := func(path string) func(string) *http.Request {
		return func(body string) *http.Request { return httptest.NewRequest("POST", path, strings.NewReader(body)) }
	}
	receivertest.Vectors(t, sentry.Store, request("/api/1/store/"),
		receivertest.Envelope{Before: `{"message":"m","x":`, Behind: `}`},
		receivertest.Envelope{Before: `{"logentry":{"message":"m","params":`, Behind: `}}`},
		receivertest.Envelope{Before: `{"contexts":{"trace":{"k":`, Behind: `}}}`},
		receivertest.Envelope{Before: `{"exception":{"values":[{"type":"T","x":`, Behind: `}]}}`},
	)
	receivertest.Vectors(t, sentry.Envelope, request("/api/1/envelope/"),
		receivertest.Envelope{Before: "{}\n{\"type\":\"event\"}\n{\"extra\":{\"k\":", Behind: "}}\n", Line: true},
		receivertest.Envelope{Before: "{}\n{\"type\":\"log\"}\n{\"items\":[{\"body\":\"m\",\"x\":", Behind: "}]}", Line: true},
		receivertest.Envelope{Before: "{}\n{\"type\":\"log\"}\n{\"items\":[{\"attributes\":{\"k\":{\"type\":\"t\",\"value\":", Behind: "}}}]}", Line: true},
		receivertest.Envelope{Before: "{\"x\":", Behind: "}\n{\"type\":\"event\"}\n{}", Line: true, Flat: true, Unsized: true},
		receivertest.Envelope{Before: "{}\n{\"type\":\"event\",\"x\":", Behind: "}\n{}", Line: true, Flat: true, Unsized: true},
	)
}
