package otlp_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/door/doortest"
	"github.com/rollway/rollway/collector/door/otlp"
)

func TestJSONVectors(t *testing.T) {
	request := func(body string) *http.Request {
		req := httptest.NewRequest("POST", "/v1/logs", strings.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		return req
	}
	doortest.Vectors(t, otlp.Protocol, request,
		doortest.Envelope{Before: `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":`, Behind: `}}]}]}]}`, Only: `"`, Mends: true},
		doortest.Envelope{Before: `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"attributes":[{"key":"k","value":{"arrayValue":{"values":[{"stringValue":`, Behind: `}]}}}]}]}]}]}`, Only: `"`, Mends: true},
		doortest.Envelope{Before: `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"x":`, Behind: `}]}]}]}`, Mends: true, Flat: true, Unsized: true},
		doortest.Envelope{Before: `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{}]}]}],"x":`, Behind: `}`, Mends: true, Flat: true, Unsized: true},
	)
}
