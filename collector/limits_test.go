package collector

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// Keys and values that are too long reject their event alone, by each way in which
// events are read; senders are told in their protocol's words, the reason is
// counted, and the event is kept to be sent again.
func TestKeyAndValueLength(t *testing.T) {
	cfg := testConfig(t)
	cfg.Limits.MaxKey, cfg.Limits.MaxValue = 20, 100
	r := run(t, cfg)
	key, value := strings.Repeat("k", 21), strings.Repeat("v", 101)
	fits := fmt.Sprintf(`"%s":"%s"`, key[1:], value[1:])
	const tooLong = "has a value of 101 bytes, at most 100 are allowed"
	stored, keys, values := uint64(0), uint64(0), uint64(0)
	for _, tc := range []struct {
		path, body           string
		stored, keys, values uint64
		code                 int
		want                 string
	}{
		{"/api/logs", "{" + fits + "}\n{\"msg\":\"" + value + "\"}\n{\"" + key + "\":1}\n", 1, 1, 1, 200, `"reason":"value_too_long","detail":"event 1 ` + tooLong},
		{"/api/logs", " {\"n\":1" + strings.Repeat("0", 100) + "}", 0, 0, 1, 400, "101 bytes"},
		{"/api/logs", "{\"n\":\"\xff" + value + "\"}\n{\"a\":{" + fits + "}}", 1, 0, 1, 200, "102 bytes"}, // read by the decoder
		{"/v1/logs", `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"` + value + `"}},{"attributes":[{"key":"a","value":{"stringValue":"` + value + `"}},{"key":"` + key + `","value":{"intValue":"1"}}]},{"body":{"stringValue":"` + value[1:] + `"}}]}]}]}`, 1, 0, 2, 200, tooLong},
		{"/loki/api/v1/push", `{"streams":[{"stream":{},"values":[["1779972000000000001","` + value + `"],["1779972000000000001","x"]]}]}`, 1, 0, 1, 400, "total ignored: 1 out of 2"},
		{"/_bulk", "{\"create\":{}}\n{\"message\":\"" + value + "\"}\n{\"create\":{}}\n{\"message\":\"x\"}\n", 1, 0, 1, 200, `"status":400,"error":{"type":"document_parsing_exception","reason":"event 0 ` + tooLong},
		{"/services/collector/event", `{"event":"x"}{"event":"` + value + `"}`, 1, 0, 1, 400, `"invalid-event-number":1`},
		{"/api/7/store/", `{"message":"` + value + `"}`, 0, 0, 1, 400, tooLong},
	} {
		resp, err := http.Post(r.url+tc.path, "application/json", strings.NewReader(tc.body))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != tc.code || !strings.Contains(string(body), tc.want) {
			t.Errorf("%s: %s %s, want %d and %q", tc.path, resp.Status, body, tc.code, tc.want)
		}
		stored, keys, values = stored+tc.stored, keys+tc.keys, values+tc.values
		s := r.Stats().Receive
		if s.Stored != stored || s.Rejected["key_too_long"] != keys || s.Rejected["value_too_long"] != values || s.Received != stored+keys+values {
			t.Fatalf("%s %s: %d stored, %v rejected of %d; want %d, %d and %d", tc.path, tc.body, s.Stored, s.Rejected, s.Received, stored, keys, values)
		}
	}
	if n := uint64(len(lettersOf(t, r))); n != keys+values {
		t.Errorf("%d letters, want %d", n, keys+values)
	}
	if _, _, page := r.do(t, "GET", "/metrics", ""); !strings.Contains(page, fmt.Sprintf("rollway_events_rejected_total{reason=\"value_too_long\"} %d\n", values)) {
		t.Error("the reason is not in the metrics")
	}
}
