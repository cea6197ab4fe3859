package loki_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/receiver/loki"
	"github.com/rollway/rollway/collector/receiver/receivertest"
)

func TestJSONVectors(t *testing.T) {
	request := func(body string) *http.Request {
		req := httptest.NewRequest("POST", "/loki/api/v1/push", strings.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		return req
	}
	receivertest.Vectors(t, loki.Protocol, request,
		receivertest.Envelope{Before: `{"streams":[{"stream":{},"values":[["1",`, Behind: `]]}]}`, Only: `"`, Mends: true},
		receivertest.Envelope{Before: `{"streams":[{"stream":{"a":`, Behind: `},"values":[["1","m"]]}]}`, Mends: true, Flat: true},
		receivertest.Envelope{Before: `{"streams":[{"stream":{},"values":[["1","m",{"k":`, Behind: `}]]}]}`, Mends: true, Flat: true},
		receivertest.Envelope{Before: `{"streams":[{"stream":{},"values":[["1","m"]],"x":`, Behind: `}]}`, Mends: true, Flat: true, Unsized: true},
	)
}
