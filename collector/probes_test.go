package collector

import (
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/endpoints"
)

// Clients ask before they send. What they are answered lets them start.
func TestProbes(t *testing.T) {
	r := run(t, testConfig(t))
	eventually(t, func() bool { return r.health.Ready() == nil })
	for _, path := range ingestPaths() {
		if resp, body := r.send(t, "OPTIONS", path, ""); resp.StatusCode != 200 || body != "" || !strings.HasPrefix(resp.Header.Get("Allow"), "POST") || allowedOrigin(resp) != "" {
			t.Errorf("OPTIONS %s: %d %v %s", path, resp.StatusCode, resp.Header, body)
		}
		if path == "/services/collector/ack" {
			continue
		}
		for _, method := range []string{"GET", "HEAD", "DELETE"} {
			if resp, _ := r.send(t, method, path, ""); resp.StatusCode != 405 || !strings.HasPrefix(resp.Header.Get("Allow"), "POST") {
				t.Errorf("%s %s: %d %v", method, path, resp.StatusCode, resp.Header)
			}
		}
	}
	for _, p := range endpoints.Probes {
		path := strings.ReplaceAll(p.Path, "{$}", "")
		resp, body := r.send(t, "GET", path, "")
		if resp.StatusCode != 200 || body != p.Body || p.Type == "" && resp.Header.Get("Content-Type") != "application/json" {
			t.Errorf("GET %s: %d %v %s", path, resp.StatusCode, resp.Header, body)
		}
		if resp, body := r.send(t, "HEAD", path, ""); resp.StatusCode != 200 || body != "" {
			t.Errorf("HEAD %s: %d %s", path, resp.StatusCode, body)
		}
		if resp, _ := r.send(t, "POST", path, "{}"); resp.StatusCode != 405 {
			t.Errorf("POST %s: %d", path, resp.StatusCode)
		}
	}
}

// While nothing can be stored, probes say so. A key that may not send is refused.
func TestProbesRefuse(t *testing.T) {
	r := withPages(t)
	for key, want := range map[string]int{secretOfServer: 200, secretOfReader: 403, "": 403} {
		if resp, body := r.send(t, "GET", "/api/v1/validate", "", "DD-API-KEY", key); resp.StatusCode != want || (want == 200) != (body == `{"valid":true}`) {
			t.Errorf("with the key %q: %d %s", key, resp.StatusCode, body)
		}
	}
	eventually(t, func() bool { return r.health.Ready() == nil })
	r.health.Stop()
	for _, p := range endpoints.Probes {
		resp, body := r.send(t, "GET", strings.ReplaceAll(p.Path, "{$}", ""), "", "DD-API-KEY", secretOfServer)
		if want := p.Unready; want == "" && resp.StatusCode != 200 || want != "" && (resp.StatusCode != 503 || body != want || resp.Header.Get("Retry-After") == "") {
			t.Errorf("%s: %d %v %s", p.Path, resp.StatusCode, resp.Header, body)
		}
	}
}
