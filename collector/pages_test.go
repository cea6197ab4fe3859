package collector

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/endpoints"
)

// send makes a request with the header, names and values in turn. Host is the header's.
func (r *running) send(t *testing.T, method, path, body string, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest(method, r.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if req.Header.Set(header[i], header[i+1]); header[i] == "Host" {
			req.Host = header[i+1]
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(answer)
}

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
		header := []string{"Host", c.host}
		if c.origin != "" {
			header = append(header, "Origin", c.origin)
		}
		if resp, _ := r.send(t, "POST", "/api/logs", `{"msg":"from a page"}`, header...); resp.StatusCode != c.want || allowedOrigin(resp) != "" {
			t.Errorf("POST at %s from the page %q: %d %v, want %d", c.host, c.origin, resp.StatusCode, resp.Header, c.want)
		}
	}
}

func allowedOrigin(r *http.Response) string { return r.Header.Get("Access-Control-Allow-Origin") }

// Secrets of two page tokens, of a server of the tenant of the first, and of a reader.
const (
	secretOfPage   = "p-0123456789abcdef"
	secretOfOther  = "o-0123456789abcdef"
	secretOfServer = "s-0123456789abcdef"
	secretOfReader = "r-0123456789abcdef"
)

// withPages runs a collector that takes events of web pages.
func withPages(t *testing.T) *running {
	cfg := testConfig(t)
	cfg.Access.Tokens = filepath.Join(t.TempDir(), "tokens.yaml")
	writeFile(t, cfg.Access.Tokens, fmt.Sprintf(`
- {name: page, secret: %q, tenant: shop, origins: ["https://shop.example", "https://*.shop.example"]}
- {name: other, secret: %q, tenant: news, origins: "http://localhost:3000"}
- {name: server, secret: %q, tenant: shop}
- {name: reader, secret: %q, may: read}
`, secretOfPage, secretOfOther, secretOfServer, secretOfReader))
	return run(t, cfg)
}

// ingestPaths are those of all endpoints that take events by HTTP/1, as a client writes them.
func ingestPaths() (list []string) {
	list = append(list, "/api/logs")
	for _, e := range endpoints.All {
		if !e.GRPC {
			list = append(list, strings.NewReplacer("{$}", "", "{project}", "7", "{index}", "shop", "{id}", "1").Replace(e.Path))
		}
	}
	return list
}

// Browsers ask before they send: a page of an origin that a token lists may send to each
// endpoint that takes events. Nothing else is ever allowed.
func TestPreflight(t *testing.T) {
	r := withPages(t)
	ask := func(path, origin string) *http.Response {
		resp, _ := r.send(t, "OPTIONS", path, "", "Origin", origin, "Access-Control-Request-Method", "POST",
			"Access-Control-Request-Headers", "authorization,content-type")
		return resp
	}
	for _, path := range ingestPaths() {
		resp := ask(path, "https://www.shop.example")
		h := resp.Header
		if resp.StatusCode != 204 || allowedOrigin(resp) != "https://www.shop.example" || !strings.Contains(h.Get("Access-Control-Allow-Methods"), "POST") ||
			h.Get("Access-Control-Allow-Headers") != "authorization,content-type" || h.Get("Access-Control-Allow-Credentials") != "true" || !strings.Contains(h.Get("Vary"), "Origin") {
			t.Errorf("%s: %d %v", path, resp.StatusCode, h)
		}
		for _, origin := range []string{"https://evil.example", "http://shop.example", "https://shop.example.evil.example", "https://evilshop.example", "null"} {
			if resp := ask(path, origin); resp.StatusCode != 403 || allowedOrigin(resp) != "" {
				t.Errorf("%s of %s: %d %v", path, origin, resp.StatusCode, resp.Header)
			}
		}
	}
	for _, path := range []string{"/", "/api/query", "/api/tail", "/api/rejected", "/api/clients", "/metrics", "/healthz", "/services/collector/health", "/nowhere"} {
		if resp := ask(path, "https://shop.example"); resp.StatusCode < 400 || allowedOrigin(resp) != "" {
			t.Errorf("%s: %d %v", path, resp.StatusCode, resp.Header)
		}
		resp, _ := r.send(t, "GET", path, "", "Origin", "https://shop.example", "Authorization", "Bearer "+secretOfPage)
		if allowedOrigin(resp) != "" {
			t.Errorf("GET %s: %v", path, resp.Header)
		}
	}
}

// A token of pages is good for what its origins' pages send, and for nothing else; other
// tokens are not for pages.
func TestPageTokens(t *testing.T) {
	r := withPages(t)
	for _, c := range []struct {
		secret, origin, path string
		want                 int
	}{
		{secretOfPage, "https://shop.example", "/api/logs", 200},
		{secretOfPage, "https://a.b.shop.example", "/api/logs", 200},
		{secretOfPage, "https://a.b.shop.example", "/api/7/envelope/?sentry_key=" + secretOfPage, 200},
		{secretOfPage, "http://localhost:3000", "/api/logs", 403}, // of the other token
		{secretOfOther, "http://localhost:3000", "/api/logs", 200},
		{secretOfPage, "", "/api/logs", 403},
		{secretOfPage, "https://evil.example", "/api/logs", 403},
		{secretOfServer, "", "/api/logs", 200},
		{secretOfServer, "https://shop.example", "/api/logs", 403}, // a secret in a page is no secret any more
		{secretOfServer, r.url, "/api/logs", 200},                  // the collector's own
		{"of-nobody-0123456789", "https://shop.example", "/api/logs", 401},
	} {
		header := []string{"Authorization", "Bearer " + c.secret, "Sec-Fetch-Site", "cross-site"}
		body := `{"msg":"x"}`
		if strings.Contains(c.path, "sentry") {
			header, body = header[2:], "{}\n{\"type\":\"event\"}\n{\"message\":\"x\"}\n"
		}
		if c.origin != "" {
			header = append(header, "Origin", c.origin)
		} else {
			header = header[:len(header)-2]
		}
		if c.origin == r.url {
			header = append(header, "Sec-Fetch-Site", "same-origin")
		}
		resp, answer := r.send(t, "POST", c.path, body, header...)
		want := ""
		if c.origin != "" && c.origin != "https://evil.example" && c.origin != r.url {
			want = c.origin // so that the page can read why
		}
		if resp.StatusCode != c.want || allowedOrigin(resp) != want {
			t.Errorf("%+v: %d %v %s", c, resp.StatusCode, resp.Header, answer)
		}
	}
	if resp, answer := r.send(t, "GET", "/api/query", "", "Authorization", "Bearer "+secretOfPage); resp.StatusCode != 403 {
		t.Errorf("a page token reads: %d %s", resp.StatusCode, answer)
	}
	_, lines := r.send(t, "GET", "/api/query", "", "Authorization", "Bearer "+secretOfReader)
	if strings.Count(lines, `"tenant":"shop"`) != 5 || strings.Count(lines, `"tenant":"news"`) != 1 {
		t.Errorf("stored:\n%s", lines)
	}
}

// What a page sends under a key does not keep a server's event out that has the same one.
func TestPagesHaveKeysOfTheirOwn(t *testing.T) {
	r := withPages(t)
	key := []string{"Idempotency-Key", "order-7"}
	page := append([]string{"Origin", "https://shop.example", "Authorization", "Bearer " + secretOfPage}, key...)
	server := append([]string{"Authorization", "Bearer " + secretOfServer}, key...)
	for _, header := range [][]string{page, server} {
		if resp, answer := r.send(t, "POST", "/api/logs", `{"msg":"x"}`, header...); resp.StatusCode != 200 || resp.Header.Get("Idempotent-Replayed") != "" {
			t.Errorf("%v: %d %v %s", header, resp.StatusCode, resp.Header, answer)
		}
	}
	if n := r.Stats().Receive.Stored; n != 2 {
		t.Errorf("%d events are stored", n)
	}
}
