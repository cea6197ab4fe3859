package main

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rollway/rollway/internal/testkit"
)

const (
	secretA    = "aaaaaaaaaaaaaaaaaaaa"
	secretB    = "bbbbbbbbbbbbbbbbbbbb"
	secretNone = "nnnnnnnnnnnnnnnnnnnn"
	secretAll  = "rrrrrrrrrrrrrrrrrrrr"
)

// withTenants is a target with tokens of tenants a and b, one without a tenant that may only
// write, and one without a tenant that may do everything, which is the target's.
func withTenants(t *testing.T, config string) *target {
	t.Helper()
	tokens := filepath.Join(t.TempDir(), "tokens.yaml")
	writeText(t, tokens, fmt.Sprintf("- {name: a, secret: %s, tenant: a, may: [read, write]}\n- {name: b, secret: %s, tenant: b, may: [read, write]}\n- {name: none, secret: %s}\n- {name: all, secret: %s, may: [read, write]}\n", secretA, secretB, secretNone, secretAll))
	a := newTarget(t, fmt.Sprintf("access: {tokens: %q}\n", tokens)+config)
	a.token = secretAll
	return a
}

// as returns the target with another token.
func (a *target) as(token string) *target {
	other := *a
	other.token = token
	return &other
}

// send posts a body with fields of a header, as names and values.
func (a *target) send(path string, body []byte, fields ...string) (*http.Response, string) {
	a.t.Helper()
	req, err := http.NewRequest("POST", a.addr+path, bytes.NewReader(body))
	testkit.OK(a.t, err)
	req.Header.Set("Authorization", "Bearer "+a.token)
	for i := 0; i+1 < len(fields); i += 2 {
		req.Header.Set(fields[i], fields[i+1])
	}
	resp, err := a.client.Do(req)
	if err != nil {
		a.t.Fatal(err)
	}
	_, text := received(a.t)(resp, nil)
	return resp, text
}

// forgeries are events of a sender that calls itself tenant b in every way that it may try.
var forgeries = []string{
	`"tenant":"b"`, `"\u0074enant":"b"`, `"tenant":"x","tenant":"b"`, `"attrs":{"tenant":"b"}`, `"attributes":{"tenant":"b"}`, `"fields":{"tenant":"b"}`, `"metadata":{"tenant":"b"}`, `"context":{"tenant":"b"}`,
	`"attrs.tenant":"b"`, `"Tenant":"b"`, `"tenant ":"b"`, `"tenant_2":"b"`, `"attrs":{"attrs":{"tenant":"b"}}`, `"msg":"\",\"attrs\":{\"tenant\":\"b\"}"`, `"tenant":["b"]`, `"tenant":{"tenant":"b"}`, `"attrs":"{\"tenant\":\"b\"}"`, `"tenant":"b\u0000"`, `"service":"b","attrs":{"tenant":"b"},"tenant":null`,
}

// TestRedteamTenants sends events that name another tenant, by every receiver, with a token
// that has a tenant, with one that has none, and without any where none is asked for. A
// reader of tenant b finds what tenant b has sent, and nothing else: lines, dead letters,
// counts or metrics.
func TestRedteamTenants(t *testing.T) {
	rounds := testkit.Rounds(t, testkit.Redteam, 1, 20)
	a := withTenants(t, "listen_tcp: \"127.0.0.1:0\"\nlisten_syslog: \"udp://127.0.0.1:0 tcp://127.0.0.1:0?tenant=a\"\nlisten_forward: \"tcp://127.0.0.1:0\"\n")
	a.ready()
	post := func(secret, path, body string) {
		a.as(secret).send(path, []byte(body), "X-Scope-OrgID", "b", "X-Tenant", "b")
	}
	sent := 0
	for range rounds {
		for _, f := range forgeries {
			event := `{"msg":"forged",` + f + `}`
			if strings.HasPrefix(f, `"msg"`) {
				event = `{` + f + `}`
			}
			for _, secret := range []string{secretA, secretNone} {
				for path, body := range map[string]string{
					"/api/logs": event, "/_bulk": "{\"index\":{\"_index\":\"b\",\"tenant\":\"b\"}}\n" + event + "\n", "/b/_bulk": "{\"index\":{}}\n" + event + "\n",
					"/services/collector/event": `{"event":` + event + `,"fields":{"tenant":"b"},"tenant":"b"}`, "/services/collector/raw?tenant=b&host=b": event,
					"/loki/api/v1/push": fmt.Sprintf(`{"streams":[{"stream":{"tenant":"b"},"values":[["1779972000000000000",%q,{"tenant":"b"}]]}]}`, event),
					"/v1/logs":          `{"resourceLogs":[{"resource":{"attributes":[{"key":"tenant","value":{"stringValue":"b"}}]},"scopeLogs":[{"scope":{"attributes":[{"key":"tenant","value":{"stringValue":"b"}}]},"logRecords":[{"body":{"stringValue":"forged"},"attributes":[{"key":"tenant","value":{"stringValue":"b"}}]}]}]}]}`,
					"/api/b/store/":     `{"message":"forged","tags":{"tenant":"b"},"extra":{"tenant":"b"},` + f + `}`,
				} {
					post(secret, path, body)
					post(secret, path, body+"{junk of "+secret[:1]) // rejected
					sent += 2
				}
			}
			for _, l := range []struct{ row, proto, form string }{
				{"TCP", "tcp", "%s\n"}, {"syslog", "udp", "<13>1 - h app - - [x tenant=\"b\"] %s"}, {"forward", "tcp", "\x93\xa1b\xce\x6a\x18\x39\xa0\x82\xa3log\xa6forged\xa6tenant\xa1b%.0s"},
			} {
				addr := a.listensAt(l.row, l.proto)
				c, err := net.Dial(l.proto, addr)
				testkit.OK(t, err)
				_, err = fmt.Fprintf(c, l.form, event)
				testkit.OK(t, err)
				c.Close()
				sent++
			}
		}
	}
	// Only now does tenant b send something.
	mine := 0
	for n := range 10 {
		post(secretB, "/api/logs", fmt.Sprintf(`{"msg":"true","n":%d}`, n))
		mine++
	}
	post(secretB, "/api/logs", "junk of b")
	left := a.unharmed()
	own := a.as(secretB)
	forged := 0
	for _, query := range []string{"", "forged", "tenant=b", "tenant=a", "tenant_2=b", "attrs~forged", "not true"} {
		for _, line := range own.lines(query) {
			if !strings.Contains(line, `"msg":"true"`) {
				forged++
				t.Errorf("tenant b finds by %q %.200s", query, line)
			}
		}
	}
	found := len(own.lines(""))
	_, ledger := own.request("GET", "/api/ledger", "")
	_, metrics := own.request("GET", "/metrics", "")
	_, letters := own.request("GET", "/api/rejected", "")
	_, clients := own.request("GET", "/api/clients", "")
	for what, text := range map[string]string{"ledger": ledger, "metrics": metrics, "rejected": letters, "clients": clients} {
		for _, not := range []string{"junk of a", "junk of n", `tenant="a"`, `"tenant":"a"`, `"a"`, "127.0.0.2"} {
			if strings.Contains(text, not) {
				t.Errorf("tenant b's %s has %q: %.500s", what, not, text)
			}
		}
	}
	testkit.Attack{
		Attack: "events that name another tenant, in every form by every receiver", Times: sent,
		Promised: "tenant b reads what it has sent, and nothing of others",
		Measured: fmt.Sprintf("%d forged lines found, %d of %d true ones; %s", forged, found, mine, left),
	}.Report(t)
	if found != mine {
		t.Errorf("tenant b finds %d of %d lines", found, mine)
	}
}

// TestRedteamDeadLetters fills the dead letters as one tenant, by small bombs of junk, each
// different: another tenant's stay.
func TestRedteamDeadLetters(t *testing.T) {
	rounds := testkit.Rounds(t, testkit.Redteam, 30, 600)
	a := withTenants(t, "rejected: {keep_size: 1MiB}\n").ready()
	own, other := a.as(secretB), a.as(secretA)
	own.send("/api/logs", []byte("a letter of b"))
	var sending sync.WaitGroup
	for sender := range 4 {
		sending.Go(func() {
			for n := sender; n < rounds; n += 4 {
				var junk strings.Builder
				for i := range 8192 {
					fmt.Fprintf(&junk, "%d.%d\n", n, i)
				}
				resp, text := other.send("/api/logs", []byte(gzipped(t, junk.String())), "Content-Encoding", "gzip")
				if resp.StatusCode != 400 && resp.StatusCode != 429 && resp.StatusCode != 503 {
					t.Errorf("%s: %.200s", resp.Status, text)
				}
			}
		})
	}
	sending.Wait()
	left := a.unharmed()
	for path, want := range map[string]int{"/api/rejected?tenant=b": 403, "/api/rejected?tenant=": 403, "/api/rejected?last=1000000000": 400, "/api/rejected?limit=-1": 400, "/api/rejected?text=" + strings.Repeat("x", 30000): 0} {
		if code, text := other.request("GET", path, ""); want != 0 && code != want || strings.Contains(text, "a letter of b") {
			t.Errorf("tenant a gets %s: %d %.200s", path[:25], code, text)
		}
	}
	code, letters := own.request("GET", "/api/rejected", "")
	kept := strings.Count(letters, "a letter of b")
	testkit.Attack{
		Attack: "one tenant's small bombs of junk against another's dead letter", Times: rounds,
		Promised: "the other's dead letter stays", Measured: fmt.Sprintf("%d of 1 found; %s", kept, left),
	}.Report(t)
	if code != 200 || kept != 1 || strings.Contains(letters, "0.1\n") {
		t.Errorf("tenant b's dead letters: %d %.500s", code, letters)
	}
}

// TestRedteamKeys uses more idempotency keys than are remembered, as one tenant: another's
// retry is still answered as before, and not stored twice.
func TestRedteamKeys(t *testing.T) {
	rounds := testkit.Rounds(t, testkit.Redteam, 300, 5000)
	a := withTenants(t, fmt.Sprintf("journal: {max_keys: %d}\n", rounds/2)).ready()
	own, other := a.as(secretB), a.as(secretA)
	_, first := own.send("/api/logs", []byte(`{"msg":"once"}`), "Idempotency-Key", "mine")
	for n := range rounds {
		if resp, text := other.send("/api/logs", []byte(`{"msg":"x"}`), "Idempotency-Key", fmt.Sprint(n)); resp.StatusCode != 200 {
			t.Fatalf("%s %s", resp.Status, text)
		}
	}
	resp, again := own.send("/api/logs", []byte(`{"msg":"once"}`), "Idempotency-Key", "mine")
	left := a.unharmed()
	stored := len(own.lines("msg=once"))
	testkit.Attack{
		Attack: "one tenant's idempotency keys against another's", Times: rounds, Promised: "the other's retry is stored once",
		Measured: fmt.Sprintf("stored %d times; %s", stored, left),
	}.Report(t)
	if stored != 1 || again != first || resp.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("stored %d times; answered %q, then %q %v", stored, first, again, resp.Header)
	}
}
