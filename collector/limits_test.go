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

	"github.com/rollway/rollway/collector/config"
)

// A key and a value that are too long, and what is of them as members within others.
var (
	longKey, longValue = strings.Repeat("k", 21), strings.Repeat("v", 101)
	badKey, badValue   = `[{"` + longKey + `":1}]`, `{"a":["` + longValue + `"]}`
	nested             = `{"` + longKey[1:] + `":["` + longValue[1:] + `"]}` // which fits
)

func withShortKeysAndValues(t *testing.T) config.Config {
	cfg := testConfig(t)
	cfg.Limits.MaxKey, cfg.Limits.MaxValue = 20, 100
	return cfg
}

// Keys and values that are too long, at any depth, reject their event alone, by each
// way in which events are read; senders are told in their protocol's words, the
// reason is counted, and the event is kept to be sent again.
func TestKeyAndValueLength(t *testing.T) {
	r := run(t, withShortKeysAndValues(t))
	key, value := longKey, longValue
	fits := fmt.Sprintf(`"%s":"%s"`, key[1:], value[1:])
	const tooLong = "has a value of 101 bytes, at most 100 are allowed"
	otlpKey := `{"arrayValue":{"values":[{"kvlistValue":{"values":[{"key":"` + key + `","value":{"intValue":"1"}}]}}]}}`
	otlpValue := `{"kvlistValue":{"values":[{"key":"a","value":{"arrayValue":{"values":[{"stringValue":"` + value + `"}]}}}]}}`
	otlpFits := `{"kvlistValue":{"values":[{"key":"` + key[1:] + `","value":{"stringValue":"` + value[1:] + `"}}]}}`
	record := func(v string) string { return `{"attributes":[{"key":"x","value":` + v + `}]}` }
	stored, keys, values := uint64(0), uint64(0), uint64(0)
	for _, tc := range []struct {
		path, body           string
		stored, keys, values uint64
		code                 int
		want                 string
	}{
		{"/api/logs", "{" + fits + "}\n{\"msg\":\"" + value + "\"}\n{\"" + key + "\":1}\n", 1, 1, 1, 200, `"reason":"value_too_long","detail":"event 1 ` + tooLong},
		{"/api/logs", " {\"n\":1" + strings.Repeat("0", 100) + "}", 0, 0, 1, 400, "101 bytes"},
		{"/api/logs", "{\"n\":\"\xff" + value + "\"}\n{\"a\":{" + fits + "}}", 1, 0, 1, 200, "104 bytes"}, // as it would be stored
		{"/v1/logs", `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"` + value + `"}},{"attributes":[{"key":"a","value":{"stringValue":"` + value + `"}},{"key":"` + key + `","value":{"intValue":"1"}}]},{"body":{"stringValue":"` + value[1:] + `"}}]}]}]}`, 1, 0, 2, 200, tooLong},
		{"/loki/api/v1/push", `{"streams":[{"stream":{},"values":[["1779972000000000001","` + value + `"],["1779972000000000001","x"]]}]}`, 1, 0, 1, 400, "total ignored: 1 out of 2"},
		{"/_bulk", "{\"create\":{}}\n{\"message\":\"" + value + "\"}\n{\"create\":{}}\n{\"message\":\"x\"}\n", 1, 0, 1, 200, `"status":400,"error":{"type":"document_parsing_exception","reason":"event 0 ` + tooLong},
		{"/services/collector/event", `{"event":"x"}{"event":"` + value + `"}`, 1, 0, 1, 400, `"invalid-event-number":1`},
		{"/api/7/store/", `{"message":"` + value + `"}`, 0, 0, 1, 400, tooLong},

		{"/api/logs", "{\"x\":" + nested + "}\n{\"x\":" + badKey + "}\n{\"metadata\":{\"x\":" + badValue + "}}\n", 1, 1, 1, 200,
			`"reason":"key_too_long","detail":"event 1 has a key of 21 bytes, at most 20 are allowed"},{"index":2,"line":3,"offset":172,"reason":"value_too_long","detail":"event 2 has a value of 101 bytes, at most 100 are allowed"`},
		{"/v1/logs", `{"resourceLogs":[{"scopeLogs":[{"logRecords":[` + record(otlpFits) + "," + record(otlpKey) + "," + record(otlpValue) + `]}]}]}`, 1, 1, 1, 200,
			`{"partialSuccess":{"rejectedLogRecords":"2","errorMessage":"event 1 has a key of 21 bytes, at most 20 are allowed; event 2 has a value of 101 bytes`},
		{"/loki/api/v1/push", `{"streams":[{"stream":{},"values":[["1779972000000000001",` + fmt.Sprintf("%q],", `{"x":`+nested+`}`) + `["1779972000000000002",` + fmt.Sprintf("%q],", `{"x":`+badKey+`}`) + `["1779972000000000003",` + fmt.Sprintf("%q]", `{"x":`+badValue+`}`) + `]}]}`, 2, 0, 1, 400, // what cannot be opened stays text
			"total ignored: 1 out of 3"},
		{"/_bulk", "{\"create\":{}}\n{\"x\":" + nested + "}\n{\"create\":{}}\n{\"x\":" + badKey + "}\n{\"create\":{}}\n{\"log\":{\"level\":\"warn\",\"x\":" + badValue + "}}\n", 1, 1, 1, 200,
			`"status":201}},{"create":{"_index":"","status":400,"error":{"type":"document_parsing_exception","reason":"event 1 has a key of 21 bytes, at most 20 are allowed"}}},{"create":{"_index":"","status":400,"error":{"type":"document_parsing_exception","reason":"event 2 has a value of 101 bytes`},
		{"/services/collector/event", `{"event":{"x":` + nested + `}}{"event":{"x":` + badKey + `}}{"event":"m","fields":{"x":` + badValue + `}}`, 1, 1, 1, 400,
			`"invalid-event-number":1`},
		{"/api/7/envelope/", "{}\n{\"type\":\"log\"}\n{\"items\":[{\"body\":\"a\",\"x\":" + nested + "},{\"body\":\"b\",\"x\":" + badKey + "},{\"body\":\"c\",\"attributes\":{\"x\":{\"value\":" + badValue + "}}}]}\n", 1, 1, 1, 200, "{}"},
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
	if n := uint64(len(deadLettersOf(t, r))); n != keys+values {
		t.Errorf("%d dead letters, want %d", n, keys+values)
	}
	if _, _, page := r.do(t, "GET", "/metrics", ""); !strings.Contains(page, fmt.Sprintf("rollway_events_rejected_total{reason=\"value_too_long\"} %d\n", values)) {
		t.Error("the reason is not in the metrics")
	}
}

// The same over connections and datagrams, where nobody is told.
func TestKeyAndValueLengthOfStreams(t *testing.T) {
	cfg := withShortKeysAndValues(t)
	cfg.ListenTCP, cfg.ListenSyslog, cfg.ListenForward = "127.0.0.1:0", "udp://127.0.0.1:0 tcp://127.0.0.1:0", "tcp://127.0.0.1:0"
	r := run(t, cfg)
	key, value := longKey, longValue
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
		if n := uint64(len(deadLettersOf(t, r))); n != 2*total {
			t.Fatalf("%s: %d dead letters, want %d", name, n, 2*total)
		}
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
	send("lines", "tcp", r.TCPAddr(), "{\"x\":"+nested+"}\n", "{\"x\":"+badKey+"}\n", "{\"x\":"+badValue+"}\n")
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
