package collector

import (
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
