package loki_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/door/doortest"
	"github.com/rollway/rollway/collector/door/loki"
)

func TestJSONVectors(t *testing.T) {
	request := func(body string) *http.Request {
		req := httptest.NewRequest("POST", "/loki/api/v1/push", strings.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		return req
	}
	doortest.Vectors(t, loki.Protocol, request,
		doortest.Envelope{Before: `{"streams":[{"stream":{},"values":[["1",`, Behind: `]]}]}`, Only: `"`, Mends: true},
		doortest.Envelope{Before: `{"streams":[{"stream":{"a":`, Behind: `},"values":[["1","m"]]}]}`, Mends: true, Flat: true},
		doortest.Envelope{Before: `{"streams":[{"stream":{},"values":[["1","m",{"k":`, Behind: `}]]}]}`, Mends: true, Flat: true},
		doortest.Envelope{Before: `{"streams":[{"stream":{},"values":[["1","m"]],"x":`, Behind: `}]}`, Mends: true, Flat: true, Unsized: true},
	)
}
