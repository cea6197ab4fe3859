package collector

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/config"
)

// numbered writes files and returns a configuration that all say n: the tenant of
// the writer's token, and a field; and from 1 on who is a trusted proxy.
func numbered(t *testing.T, cfg config.Config, n int) config.Config {
	t.Helper()
	writeFile(t, cfg.Access.Tokens, fmt.Sprintf("- {name: w, secret: %q, tenant: t%d}\n- {name: r, secret: %q, may: read}\n", writerSecret, n, readerSecret))
	next := withEnrichment(t, fmt.Sprintf("enrich: {fields: {n: %d}, client: true}", n))
	cfg.Enrich, cfg.Rules = next.Enrich, next.Rules
	cfg.Proxies.Trusted = ""
	if n%2 == 1 {
		cfg.Proxies.Trusted = "127.0.0.1"
	}
	return cfg
}

// checkNumbered fails if a line uses more than one state, or another than
// those of from to to.
func checkNumbered(t *testing.T, line string, from, to int) {
	t.Helper()
	_, attrs, _ := strings.Cut(line, `"attrs":`)
	var tenant, n int
	var client string
	if _, err := fmt.Sscanf(strings.NewReplacer(`"`, " ", ",", " ").Replace(attrs), "{ tenant : t%d n :%d client_ip : %s", &tenant, &n, &client); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	want := "127.0.0.1"
	if n%2 == 1 {
		want = "203.0.113.9"
	}
	if tenant != n || client != want || n < from || n > to {
		t.Fatalf("tenant %d, field %d, client %s; want %d to %d alike, and %s: %s", tenant, n, client, from, to, want, line)
	}
}

// A request uses the tokens, proxies and rules that were in force when it
// began, all of them or none, also if others come into force while its body is on
// the way.
func TestRequestKeepsItsState(t *testing.T) {
	cfg := withTokens(t)
	r := run(t, numbered(t, cfg, 0))
	for n := 1; n <= 5; n++ {
		conn, err := net.Dial("tcp", r.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		eventually(t, func() bool { return r.Stats().Receive.InFlight == 0 }) // the requests before have ended
		fmt.Fprintf(conn, "POST /api/logs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nX-Forwarded-For: 203.0.113.9\r\nTransfer-Encoding: chunked\r\n\r\n7\r\n{\"k\":%d,\r\n", writerSecret, n)
		eventually(t, func() bool { return r.Stats().Receive.InFlight > 0 })
		if err := r.Reload(numbered(t, cfg, n)); err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(conn, "8\r\n\"msg\":1}\r\n0\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 200 {
			t.Fatal(resp.Status)
		}
		code, _, line := r.ask(t, http.DefaultClient, "GET", fmt.Sprintf("/api/query?q=k=%d", n), readerSecret, "")
		if code != 200 {
			t.Fatal(code, line)
		}
		checkNumbered(t, line, n-1, n-1)
	}
}

// Under load no request uses a mixture of two states, and one that begins when
// Reload has returned uses the new.
func TestReloadUnderLoad(t *testing.T) {
	cfg := withTokens(t)
	r := run(t, numbered(t, cfg, 0))
	post := func(body string) error {
		req, err := http.NewRequest("POST", r.url+"/api/logs", strings.NewReader(body))
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+writerSecret)
		req.Header.Set("X-Forwarded-For", "203.0.113.9")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.StatusCode != 200 {
			return errors.New(resp.Status)
		}
		return nil
	}
	var stop atomic.Bool
	var load sync.WaitGroup
	defer func() { stop.Store(true); load.Wait() }()
	for range 2 {
		load.Go(func() {
			for !stop.Load() {
				if err := post(`[{"msg":"a"},{"msg":"b"}]`); err != nil {
					t.Error(err)
					return
				}
				time.Sleep(time.Millisecond) // a pause, not a proof
			}
		})
	}
	const reloads = 20
	for n := 1; n <= reloads; n++ {
		if err := r.Reload(numbered(t, cfg, n)); err != nil {
			t.Fatal(err)
		}
		if err := post(fmt.Sprintf(`{"after":%d}`, n)); err != nil {
			t.Fatal(err)
		}
		_, _, after := r.ask(t, http.DefaultClient, "GET", fmt.Sprintf("/api/query?q=after=%d", n), readerSecret, "")
		checkNumbered(t, after, n, n)
	}
	stop.Store(true)
	load.Wait()
	stored := 0
	_, _, lines := r.ask(t, http.DefaultClient, "GET", "/api/query?limit=1000000", readerSecret, "")
	for line := range strings.Lines(lines) {
		checkNumbered(t, line, 0, reloads)
		stored++
	}
	s := r.Stats().Receive
	if uint64(stored) != s.Stored || s.Received != s.Stored || stored < reloads {
		t.Errorf("%d lines, %+v", stored, s)
	}
}

// Whatever cannot be used, all stays as it was, and the error names the file, the
// line and the key.
func TestReloadSaysWhy(t *testing.T) {
	dir := t.TempDir()
	cfg := withTokens(t)
	networks := filepath.Join(dir, "networks.csv")
	writeFile(t, networks, "network,site\n127.0.0.0/8,here\n")
	good := numbered(t, cfg, 1)
	good.Enrich = withEnrichment(t, fmt.Sprintf("enrich: {fields: {n: 1}, client: true, networks: {file: %q}}", networks)).Enrich
	r := run(t, good)
	for _, tc := range []struct {
		name  string
		spoil func(*config.Config)
		want  []string
	}{
		{"a token's key", func(*config.Config) {
			writeFile(t, cfg.Access.Tokens, "- name: a\n  secret: \"0123456789abcdef\"\n  tenat: x\n")
		}, []string{cfg.Access.Tokens + ":3:3:", `unknown key "tenat"`}},
		{"a token's value", func(*config.Config) {
			writeFile(t, cfg.Access.Tokens, "- name: a\n  secret: \"0123456789abcdef\"\n  events_per_second: many\n")
		}, []string{cfg.Access.Tokens + ":3:", "events_per_second: a number above 0"}},
		{"no tokens", func(c *config.Config) { c.Access.Tokens = filepath.Join(dir, "none") }, []string{"read tokens", filepath.Join(dir, "none")}},
		{"a rule", func(c *config.Config) {
			c.Rules = withEnrichment(t, "rules:\n- redact: {key: a}\n- redact: {match: '('}\n").Rules
		}, []string{"f.yaml:3:", "rules.redact.match"}},
		{"a field", func(c *config.Config) {
			c.Enrich = withEnrichment(t, "enrich:\n  fields: {n: 2}\n  hots: true\n").Enrich
		}, []string{"f.yaml:3:3:", "unknown key enrich.hots"}},
		{"a network", func(*config.Config) { writeFile(t, networks, "network,site\n127.0.0.0/8,here\n10.0.0.1/8,there\n") }, []string{networks + ":3:", "10.0.0.0/8"}},
		{"a proxy", func(c *config.Config) { c.Proxies.Trusted = "10.0.0.1/8" }, []string{"proxies", "10.0.0.0/8"}},
	} {
		next := good
		tc.spoil(&next)
		err := r.Reload(next)
		for _, want := range append(tc.want, "nothing was changed") {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q is not in %v", tc.name, want, err)
			}
		}
		writeFile(t, cfg.Access.Tokens, "spoilt")
		writeFile(t, networks, "spoilt")
		code, _, body := r.ask(t, http.DefaultClient, "POST", "/api/logs", writerSecret, fmt.Sprintf(`{"what":%q}`, tc.name))
		_, _, line := r.ask(t, http.DefaultClient, "GET", "/api/query?last=1", readerSecret, "")
		if code != 200 || !strings.Contains(line, `"attrs":{"tenant":"t1","n":1,"client_ip":"127.0.0.1","site":"here","what":`) {
			t.Errorf("%s: %d %s %s", tc.name, code, body, line)
		}
		numbered(t, cfg, 1)
		writeFile(t, networks, "network,site\n127.0.0.0/8,here\n")
	}
}
