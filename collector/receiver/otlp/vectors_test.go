package otlp_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/receiver/otlp"
	"github.com/rollway/rollway/collector/receiver/receivertest"
)

func TestJSONVectors(t *testing.T) {
	request := func(body string) *http.Request {
		req := httptest.NewRequest("POST", "/v1/logs", strings.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		return req
	}
	receivertest.Vectors(t, otlp.Protocol, request,
		receivertest.Envelope{Before: `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":`, Behind: `}}]}]}]}`, Only: `"`, Mends: true},
		receivertest.Envelope{Before: `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"attributes":[{"key":"k","value":{"arrayValue":{"values":[{"stringValue":`, Behind: `}]}}}]}]}]}]}`, Only: `"`, Mends: true},
		receivertest.Envelope{Before: `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"x":`, Behind: `}]}]}]}`, Mends: true, Flat: true, Unsized: true},
		receivertest.Envelope{Before: `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{}]}]}],"x":`, Behind: `}`, Mends: true, Flat: true, Unsized: true},
	)
}
