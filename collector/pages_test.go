package collector

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// A page whose name was made to point here after it was loaded is of the same
// origin as the collector, by the browser's reckoning. It may not send events
// either. Clients that are no browsers may call the collector what they like.
func TestPagesMayNotSendByAnotherName(t *testing.T) {
	cfg := testConfig(t)
	cfg.Hosts = "logs.internal"
	r := run(t, cfg)
	for _, c := range []struct {
		host, origin string
		want         int
	}{
		{"evil.example:4318", "http://evil.example:4318", 403},
		{"evil.example", "null", 403},
		{"logs.internal", "http://logs.internal", 200},
		{"127.0.0.1:4318", "http://127.0.0.1:4318", 200},
		{"127.0.0.1:4318", "http://evil.example", 403},
		{"collector.cluster.example:4318", "", 200},
	} {
		req, err := http.NewRequest("POST", r.url+"/api/logs", strings.NewReader(`{"msg":"from a page"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Host = c.host
		if c.origin != "" {
			req.Header.Set("Origin", c.origin)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != c.want {
			t.Errorf("POST at %s from the page %q: %d, want %d", c.host, c.origin, resp.StatusCode, c.want)
		}
	}
}

// What readers get is not for web pages either, whose host has another name. Prometheus
// comes by an address or a name of the configuration.
func TestReadersComeByKnownNames(t *testing.T) {
	cfg := testConfig(t)
	cfg.Hosts = "rollway logs.internal"
	r := run(t, cfg)
	for _, path := range []string{"/metrics", "/api/query", "/api/ledger"} {
		for host, want := range map[string]int{
			"evil.example:4318": 403, "rollway:4318": 200, "logs.internal": 200, "127.0.0.1:4318": 200, "192.0.2.7": 200, "[2001:db8::1]:4318": 200, "localhost": 200,
		} {
			req, err := http.NewRequest("GET", r.url+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Host = host
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode != want || want == 403 && !strings.Contains(string(text), "add the name to hosts") {
				t.Errorf("GET %s at %s: %d, want %d: %.200s", path, host, resp.StatusCode, want, text)
			}
		}
	}
}
