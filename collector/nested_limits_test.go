package collector

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Keys and values that are too long reject their event at every depth, by each
// door: the event beside it is stored, the sender is told in the protocol's words,
// and reason and dead letter say which it was.
func TestNestedKeyAndValueLength(t *testing.T) {
	cfg := testConfig(t)
	cfg.Limits.MaxKey, cfg.Limits.MaxValue = 20, 100
	cfg.ListenTCP, cfg.ListenSyslog, cfg.ListenForward = "127.0.0.1:0", "udp://127.0.0.1:0 tcp://127.0.0.1:0", "tcp://127.0.0.1:0"
	r := run(t, cfg)
	key, value := strings.Repeat("k", 21), strings.Repeat("v", 101)
	fits := `{"` + key[1:] + `":["` + value[1:] + `"]}`
	badKey, badValue := `[{"`+key+`":1}]`, `{"a":["`+value+`"]}`
	total := uint64(0)
	check := func(name string) {
		t.Helper()
		total++
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for {
			s := r.Stats().Receive
			if s.Received == 3*total && s.Stored == total && s.Rejected["key_too_long"] == total && s.Rejected["value_too_long"] == total {
				break
			}
			if ctx.Err() != nil {
				t.Fatalf("%s: %d received, %d stored, %v rejected; want %d, %d and %d of each reason", name, s.Received, s.Stored, s.Rejected, 3*total, total, total)
			}
			time.Sleep(time.Millisecond)
		}
		if n := uint64(len(lettersOf(t, r))); n != 2*total {
			t.Fatalf("%s: %d letters, want %d", name, n, 2*total)
		}
	}
	otlpKey := `{"arrayValue":{"values":[{"kvlistValue":{"values":[{"key":"` + key + `","value":{"intValue":"1"}}]}}]}}`
	otlpValue := `{"kvlistValue":{"values":[{"key":"a","value":{"arrayValue":{"values":[{"stringValue":"` + value + `"}]}}}]}}`
	otlpFits := `{"kvlistValue":{"values":[{"key":"` + key[1:] + `","value":{"stringValue":"` + value[1:] + `"}}]}}`
	record := func(v string) string { return `{"attributes":[{"key":"x","value":` + v + `}]}` }
	for _, tc := range []struct {
		path, body string
		code       int
		want       string
	}{
		{"/api/logs", "{\"x\":" + fits + "}\n{\"x\":" + badKey + "}\n{\"metadata\":{\"x\":" + badValue + "}}\n", 200,
			`"reason":"key_too_long","detail":"event 1 has a key of 21 bytes, at most 20 are allowed"},{"index":2,"line":3,"offset":172,"reason":"value_too_long","detail":"event 2 has a value of 101 bytes, at most 100 are allowed"`},
		{"/v1/logs", `{"resourceLogs":[{"scopeLogs":[{"logRecords":[` + record(otlpFits) + "," + record(otlpKey) + "," + record(otlpValue) + `]}]}]}`, 200,
			`{"partialSuccess":{"rejectedLogRecords":"2","errorMessage":"event 1 has a key of 21 bytes, at most 20 are allowed; event 2 has a value of 101 bytes`},
		{"/loki/api/v1/push", `{"streams":[{"stream":{},"values":[["1779972000000000001",` + fmt.Sprintf("%q],", `{"x":`+fits+`}`) + `["1779972000000000002",` + fmt.Sprintf("%q],", `{"x":`+badKey+`}`) + `["1779972000000000003",` + fmt.Sprintf("%q]", `{"x":`+badValue+`}`) + `]}]}`, 400,
			"total ignored: 2 out of 3"},
		{"/_bulk", "{\"create\":{}}\n{\"x\":" + fits + "}\n{\"create\":{}}\n{\"x\":" + badKey + "}\n{\"create\":{}}\n{\"log\":{\"level\":\"warn\",\"x\":" + badValue + "}}\n", 200,
			`"status":201}},{"create":{"_index":"","status":400,"error":{"type":"document_parsing_exception","reason":"event 1 has a key of 21 bytes, at most 20 are allowed"}}},{"create":{"_index":"","status":400,"error":{"type":"document_parsing_exception","reason":"event 2 has a value of 101 bytes`},
		{"/services/collector/event", `{"event":{"x":` + fits + `}}{"event":{"x":` + badKey + `}}{"event":"m","fields":{"x":` + badValue + `}}`, 400,
			`"invalid-event-number":1`},
		{"/api/7/envelope/", "{}\n{\"type\":\"log\"}\n{\"items\":[{\"body\":\"a\",\"x\":" + fits + "},{\"body\":\"b\",\"x\":" + badKey + "},{\"body\":\"c\",\"attributes\":{\"x\":{\"value\":" + badValue + "}}}]}\n", 200, "{}"},
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
		check(tc.path)
	}
	send := func(name, network string, addr net.Addr, messages ...string) {
		t.Helper()
		conn, err := net.Dial(network, addr.String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		for _, m := range messages {
			if _, err := io.WriteString(conn, m); err != nil {
				t.Fatal(err)
			}
		}
		check(name)
	}
	send("lines", "tcp", r.TCPAddr(), "{\"x\":"+fits+"}\n", "{\"x\":"+badKey+"}\n", "{\"x\":"+badValue+"}\n")
	const head = "<14>1 2026-05-28T12:40:00Z h a - - "
	syslog := []string{head + `[x ` + key[1:] + `="` + value[1:] + `"] m` + "\n", head + `[x ` + key + `="1"] m` + "\n", head + `- {"x":` + badValue + "}\n"}
	for i, addr := range r.SyslogAddrs() {
		send(fmt.Sprint("syslog ", i), addr.Network(), addr, syslog...)
	}
	packed := func(x string) string { // ["t", 1779972000, {"x": x}]
		return "\x93\xa1t\xce\x6a\x18\x37\x60\x81\xa1x" + x
	}
	send("forward", "tcp", r.ForwardAddrs()[0],
		packed("\x81\xb4"+key[1:]+"\x91\xd9\x64"+value[1:]), packed("\x91\x81\xb5"+key+"\x01"), packed("\x81\xa1a\x91\xd9\x65"+value))
}
