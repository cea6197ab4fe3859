package collector

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/rollway/rollway/collector/receiver/otlp"
)

// A token that has used up its rate is told so by each receiver in the protocol's own
// words, and when to come again; nothing of its requests is read or counted.
func TestRatesByReceiver(t *testing.T) {
	r := run(t, withTokens(t))
	// 10 a second are allowed: a quarter of an hour is owed.
	if code, _, got := r.ask(t, http.DefaultClient, "POST", "/api/logs", slowSecret, strings.Repeat("{}\n", 9000)); code != 200 {
		t.Fatal(code, got)
	}
	grpc := &http.Client{Transport: &http.Transport{Protocols: new(http.Protocols)}}
	grpc.Transport.(*http.Transport).Protocols.SetUnencryptedHTTP2(true)
	defer grpc.CloseIdleConnections()
	protobuf := func(t *testing.T, body []byte) {
		var s status.Status
		if err := proto.Unmarshal(body, &s); err != nil || s.Code != 8 || !strings.Contains(s.Message, "than this token may send") {
			t.Errorf("%v, %v", err, &s)
		}
	}
	for name, tc := range map[string]struct {
		path, kind, auth string
		code             int
		check            func(t *testing.T, h http.Header, body []byte, seconds int)
	}{
		"JSON": {"/api/logs", "application/json", "Bearer " + slowSecret, 429, func(t *testing.T, _ http.Header, body []byte, _ int) {
			wantJSON(t, body, map[string]any{"accepted": 0.0})
		}},
		"OTLP, protobuf": {"/v1/logs", "application/x-protobuf", "Bearer " + slowSecret, 429, func(t *testing.T, h http.Header, body []byte, _ int) {
			if h.Get("Content-Type") != "application/x-protobuf" {
				t.Error(h)
			}
			protobuf(t, body)
		}},
		"OTLP, JSON": {"/v1/logs", "application/json", "Bearer " + slowSecret, 429, func(t *testing.T, _ http.Header, body []byte, _ int) {
			wantJSON(t, body, map[string]any{"code": 8.0})
		}},
		"OTLP, gRPC": {otlp.GRPCPath, "application/grpc", "Bearer " + slowSecret, 200, func(t *testing.T, h http.Header, body []byte, seconds int) {
			if h.Get("Grpc-Status") != "8" || len(body) > 0 {
				t.Errorf("%v %q", h, body)
			}
			details, err := base64.RawStdEncoding.DecodeString(h.Get("Grpc-Status-Details-Bin"))
			if err != nil {
				t.Fatal(err)
			}
			protobuf(t, details)
			var s status.Status
			var info errdetails.RetryInfo
			if proto.Unmarshal(details, &s) != nil || len(s.Details) != 1 || s.Details[0].UnmarshalTo(&info) != nil || info.RetryDelay.AsDuration().Seconds() != float64(seconds) {
				t.Errorf("%v %v, want %d s", &s, &info, seconds)
			}
		}},
		"Loki": {"/loki/api/v1/push", "application/json", "Bearer " + slowSecret, 429, func(t *testing.T, h http.Header, body []byte, _ int) {
			if !strings.HasPrefix(h.Get("Content-Type"), "text/plain") || !strings.Contains(string(body), "than this token may send") {
				t.Errorf("%v %s", h, body)
			}
		}},
		"Elasticsearch": {"/_bulk", "application/x-ndjson", "ApiKey " + base64.StdEncoding.EncodeToString([]byte("id:"+slowSecret)), 429, func(t *testing.T, h http.Header, body []byte, _ int) {
			wantJSON(t, body, map[string]any{"status": 429.0})
			if h.Get("X-Elastic-Product") == "" || !strings.Contains(string(body), `"type":"es_rejected_execution_exception"`) {
				t.Errorf("%v %s", h, body)
			}
		}},
		"Splunk": {"/services/collector/event", "application/json", "Splunk " + slowSecret, 503, func(t *testing.T, _ http.Header, body []byte, _ int) {
			wantJSON(t, body, map[string]any{"code": 9.0, "text": "Server is busy"})
		}},
		"Sentry": {"/api/7/envelope/", "", "Sentry sentry_version=7, sentry_key=" + slowSecret, 429, func(t *testing.T, h http.Header, _ []byte, seconds int) {
			if got, want := h.Get("X-Sentry-Rate-Limits"), strconv.Itoa(seconds)+"::key:full"; got != want {
				t.Errorf("X-Sentry-Rate-Limits %q, want %q", got, want)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			client := http.DefaultClient
			if tc.kind == "application/grpc" {
				client = grpc
			}
			before := r.Stats().Receive
			req, err := http.NewRequest("POST", r.url+tc.path, strings.NewReader("\x00\x00\x00\x00\x00"))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", tc.auth)
			req.Header.Set("Content-Type", tc.kind)
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
			if err != nil || seconds < 1 || seconds > 900 || resp.StatusCode != tc.code {
				t.Errorf("%s, Retry-After %q: %s", resp.Status, resp.Header.Get("Retry-After"), body)
			}
			tc.check(t, resp.Header, body, seconds)
			if after := r.Stats().Receive; after.Received != before.Received || after.UnpackedBytes != before.UnpackedBytes {
				t.Errorf("received %d events of %d bytes", after.Received-before.Received, after.UnpackedBytes-before.UnpackedBytes)
			}
		})
	}
}

// wantJSON checks members of an object.
func wantJSON(t *testing.T, body []byte, want map[string]any) {
	t.Helper()
	var got map[string]any
	if err := json.Unmarshal(body, &got); err != nil {
		t.Errorf("%v: %s", err, body)
	}
	for key, v := range want {
		if got[key] != v {
			t.Errorf("%s is %v, want %v: %s", key, got[key], v, body)
		}
	}
}
