package collector

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/collector/endpoints"
)

// Secrets of the tests of persons.
const (
	secretOfAdmin    = "all-0123456789abcdef"
	secretOfShop     = "shop-0123456789abcdef"
	secretOfOperator = "ops-0123456789abcdef"
)

// withPeople is a configuration with tokens for persons and a proxy on loopback.
func withPeople(t *testing.T) config.Config {
	cfg := testConfig(t)
	cfg.Access.Tokens = filepath.Join(t.TempDir(), "tokens.yaml")
	writePeople(t, cfg, "")
	return cfg
}

func writePeople(t *testing.T, cfg config.Config, more string) {
	writeFile(t, cfg.Access.Tokens, fmt.Sprintf(`
- {name: all, secret: %q, may: [write, read, operate]}
- {name: w, secret: %q}
- {name: ops, secret: %q, tenant: shop, may: [read, operate]}
- {name: page, secret: %q, tenant: shop, origins: ["https://shop.example"]}
%s`, secretOfAdmin, writerSecret, secretOfOperator, secretOfPage, more))
}

const shopToken = "- {name: shop, secret: " + secretOfShop + ", tenant: shop, may: read}\n"

// own marks a request as one of the collector's own page.
var own = []string{"Sec-Fetch-Site", "same-origin"}

// logIn returns the header with the cookie of a session, and own.
func (r *running) logIn(t *testing.T, secret string) []string {
	t.Helper()
	resp, body := r.send(t, "POST", sessionPath, fmt.Sprintf(`{"token":%q}`, secret), own...)
	if resp.StatusCode != 200 || len(resp.Cookies()) != 1 {
		t.Fatalf("%s: %s", resp.Status, body)
	}
	return append(slices.Clone(own), "Cookie", resp.Cookies()[0].Name+"="+resp.Cookies()[0].Value)
}

func (r *running) status(t *testing.T, method, path, body string, header ...string) int {
	t.Helper()
	resp, _ := r.send(t, method, path, body, header...)
	return resp.StatusCode
}

func TestLogin(t *testing.T) {
	r := run(t, withPeople(t))
	for _, c := range []struct {
		body, want string
		code       int
		header     []string
	}{
		{`{"token":"` + secretOfAdmin + `"}`, "only the collector's own page", 403, nil},
		{`{"token":"` + secretOfAdmin + `"}`, "", 403, []string{"Origin", "http://evil.example"}},
		{`{"token":"` + secretOfAdmin + `"}`, "", 403, []string{"Sec-Fetch-Site", "same-site"}},
		{`{"token":"x-0123456789abcdef"}`, "not known", 401, own},
		{`{}`, "not known", 401, own},
		{`token`, "expected", 400, own},
		{strings.Repeat(" ", maxLogin) + "{}", "expected", 400, own},
		{`{"token":"` + writerSecret + `"}`, "may not read", 403, own},
		{`{"token":"` + secretOfPage + `"}`, "for web pages", 403, own},
		{`{"token":"` + secretOfOperator + `"}`, `{"authenticated":true,"user":"ops","tenant":"shop","rights":["read","operate"],"tokens":true`, 200, own},
		{"token=" + secretOfOperator, `"user":"ops"`, 200, append([]string{"Content-Type", "application/x-www-form-urlencoded"}, own...)},
	} {
		resp, body := r.send(t, "POST", sessionPath, c.body, c.header...)
		if resp.StatusCode != c.code || !strings.Contains(body, c.want) || (len(resp.Cookies()) > 0) != (c.code == 200) {
			t.Errorf("%s %v: %d %s", c.body[:min(40, len(c.body))], c.header, resp.StatusCode, body)
		}
		if strings.Contains(body, "0123456789abcdef") {
			t.Errorf("%s tells a secret", body)
		}
	}
	if _, body := r.send(t, "GET", sessionPath, ""); !strings.Contains(body, `{"authenticated":false,"user":"","tenant":"","rights":[],"tokens":true`) {
		t.Error(body)
	}
	person := r.logIn(t, secretOfOperator)
	if _, body := r.send(t, "GET", sessionPath, "", person...); !strings.Contains(body, `{"authenticated":true,"user":"ops"`) {
		t.Error(body)
	}
	if _, body := r.send(t, "GET", sessionPath, "", person[2:]...); !strings.Contains(body, `"authenticated":false`) {
		t.Errorf("told to another page: %s", body)
	}
	if code := r.status(t, "DELETE", sessionPath, "", person[2:]...); code != 403 {
		t.Errorf("another page logs out: %d", code)
	}
	for _, want := range []int{200, 401} {
		if code := r.status(t, "GET", "/api/query", "", person...); code != want {
			t.Errorf("a query: %d, want %d", code, want)
		}
		r.send(t, "DELETE", sessionPath, "", person...)
	}
	if strings.Contains(r.log.String(), "0123456789abcdef") {
		t.Errorf("a secret is in the log: %s", r.log)
	}
}

// readPaths are the endpoints that answer who may read.
func (r *running) readPaths() (paths []string) {
	for path := range r.api.Handlers() {
		paths = append(paths, path+"?offset=0&field=level&q=%7C+stats+count()&since=1h")
	}
	return append(paths, rejectedPath, "/api/clients", "/api/ledger", "/api/pipeline", "/metrics")
}

// A browser sends its cookie for pages of other origins, too. No such page learns anything by it, or
// has anything done; nor does one that has its own name point here.
func TestOtherPagesGetNothing(t *testing.T) {
	r := run(t, withPeople(t))
	person := r.logIn(t, secretOfAdmin)
	cookie := person[2:]
	host := strings.TrimPrefix(r.url, "http://")
	_, port, _ := strings.Cut(host, ":")
	asks := [][3]string{{"POST", rejectedPath, `{"replayed":["x"]}`}, {"POST", replayPath, `{"ids":["x"]}`}, {"POST", explainEventPath, `{"msg":"x"}`}, {"DELETE", sessionPath, ""}}
	for _, path := range r.readPaths() {
		asks = append(asks, [3]string{"GET", path, ""})
	}
	for _, ask := range asks {
		for _, marks := range [][]string{
			nil, // an old browser without TLS, or no browser
			{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"},
			{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "no-cors"},
			{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "cors", "Origin", "http://127.0.0.1:3000"},
			{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"},
			{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"},
			{"Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"},
			{"Origin", "null"},
			{"Origin", "http://evil.example"},
			{"Origin", "http://" + host + ".evil.example"},
			{"Origin", "http://127.0.0.1:3000"},
			{"Origin", "https://shop.example"}, // which a token lists
			{"Referer", "http://evil.example/"},
			{"Host", "evil.example:" + port, "Sec-Fetch-Site", "same-origin"},
			{"Host", "evil.example:" + port, "Origin", "http://evil.example:" + port},
		} {
			resp, body := r.send(t, ask[0], ask[1], ask[2], append(slices.Clone(cookie), marks...)...)
			if resp.StatusCode != 401 && resp.StatusCode != 403 || allowedOrigin(resp) != "" {
				t.Errorf("%s %s %v: %d %.100s", ask[0], ask[1], marks, resp.StatusCode, body)
			}
		}
		if ask[1] == sessionPath {
			continue
		}
		if code := r.status(t, ask[0], ask[1], ask[2], person...); code == 401 || code == 403 {
			t.Errorf("%s %s of the own page: %d", ask[0], ask[1], code)
		}
	}
	// A preflight is the question whether a page may send what it cannot send unasked.
	for _, ask := range asks {
		resp, _ := r.send(t, "OPTIONS", strings.Split(ask[1], "?")[0], "", "Origin", "https://shop.example", "Access-Control-Request-Method", "GET", "Access-Control-Request-Headers", "rollway-page")
		if resp.StatusCode < 400 || allowedOrigin(resp) != "" || resp.Header.Get("Access-Control-Allow-Headers") != "" {
			t.Errorf("OPTIONS %s: %d %v", ask[1], resp.StatusCode, resp.Header)
		}
	}
}

// Nothing is stored for a cookie, or for whom a proxy names: senders have tokens.
func TestReceiversKnowNoPersons(t *testing.T) {
	cfg := withPeople(t)
	cfg.Proxies.Trusted, cfg.UI.UserHeader = "127.0.0.1", "X-Forwarded-User"
	r := run(t, cfg)
	person := append(r.logIn(t, secretOfAdmin), "X-Forwarded-User", "all")
	before := r.Stats().Receive.Stored
	for _, e := range append(slices.Clone(endpoints.All), endpoints.Endpoint{Path: logsPath}) {
		path := strings.NewReplacer("{$}", "", "{project}", "1", "{index}", "i", "{id}", "d").Replace(e.Path)
		if e.GRPC || e.Handler != nil {
			continue
		}
		if resp, body := r.send(t, "POST", path, `{"msg":"x"}`, person...); resp.StatusCode != 401 && resp.StatusCode != 403 {
			t.Errorf("%s: %d %s", path, resp.StatusCode, body)
		}
	}
	if n := r.Stats().Receive.Stored; n != before {
		t.Errorf("%d events are stored", n-before)
	}
}

// A person has the rights and the tenant of the token, and no more.
func TestRightsOfPersons(t *testing.T) {
	cfg := withPeople(t)
	writePeople(t, cfg, shopToken)
	rules := withEnrichment(t, "rules: [{name: of-bank, drop: {where: 'msg=bank'}}, {name: of-all, remove: {key: secret}}]")
	cfg.Rules = rules.Rules
	r := run(t, cfg)
	r.ask(t, http.DefaultClient, "POST", logsPath, secretOfAdmin, `{"msg":"of nobody"}`)
	shop, ops, all := r.logIn(t, secretOfShop), r.logIn(t, secretOfOperator), r.logIn(t, secretOfAdmin)
	for _, c := range []struct {
		who                []string
		method, path, body string
		code               int
		want               string
	}{
		{shop, "GET", "/api/query?q=nobody", "", 200, ""},
		{all, "GET", "/api/query?q=msg~nobody", "", 200, "of nobody"},
		{shop, "GET", "/api/pipeline", "", 200, `{"tenant":"shop"`},
		{shop, "POST", rejectedPath, `{"replayed":["x"]}`, 403, "may not"},
		{shop, "POST", replayPath, `{"ids":["x"]}`, 403, "may not"},
		{ops, "POST", rejectedPath, `{"replayed":["x"]}`, 200, `"marked":0`},
		{ops, "POST", replayPath, `{"ids":["x"]}`, 200, "there is no such dead letter"},
		{ops, "GET", rejectedPath + "?tenant=bank", "", 403, "another tenant"},
		{shop, "GET", "/api/ledger", "", 200, `{"tenant":"shop"`},
		{shop, "POST", explainEventPath, `{"msg":"x"}`, 200, `"tenant":"shop"`},
		{shop, "POST", explainEventPath, `{"msg":"x","secret":1}`, 200, `}}},{"rule":"of-all","action":"remove","did":"changed"`},
		{all, "POST", explainEventPath, `{"msg":"x"}`, 200, `{"rule":"of-bank","action":"drop","did":"kept"}`},
	} {
		resp, body := r.send(t, c.method, c.path, c.body, c.who...)
		if resp.StatusCode != c.code || c.want != "" && !strings.Contains(body, c.want) || c.want == "" && body != "" {
			t.Errorf("%s %s: %d %s", c.method, c.path, resp.StatusCode, body)
		}
		if c.who[len(c.who)-1] == shop[len(shop)-1] && strings.Contains(body, "of-bank") {
			t.Errorf("%s %s tells of others' rules: %s", c.method, c.path, body)
		}
	}
	if code := r.status(t, "GET", "/api/query", "", append(shop, "Authorization", "Bearer "+writerSecret)...); code != 403 {
		t.Errorf("the token of the request does not decide: %d", code)
	}
}

// A session ends with its token, and what it follows ends with it.
func TestReloadEndsSessions(t *testing.T) {
	cfg := withPeople(t)
	writePeople(t, cfg, shopToken)
	r := run(t, cfg)
	shop, all := r.logIn(t, secretOfShop), r.logIn(t, secretOfAdmin)
	req, err := http.NewRequest("GET", r.url+tailPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(shop); i += 2 {
		req.Header.Set(shop[i], shop[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil || resp.StatusCode != 200 {
		t.Fatal(resp, err)
	}
	defer resp.Body.Close()
	writePeople(t, cfg, strings.Replace(shopToken, "shop-", "new-", 1))
	if err := r.Reload(cfg); err != nil {
		t.Fatal(err)
	}
	for in := bufio.NewScanner(resp.Body); in.Scan(); { // until the stream ends
	}
	if code := r.status(t, "GET", "/api/query", "", shop...); code != 401 {
		t.Errorf("a revoked token: %d", code)
	}
	if code := r.status(t, "GET", "/api/query", "", all...); code != 200 {
		t.Errorf("another token: %d", code)
	}
	writePeople(t, cfg, shopToken)
	if err := r.Reload(cfg); err != nil {
		t.Fatal(err)
	}
	if code := r.status(t, "GET", "/api/query", "", shop...); code != 401 {
		t.Errorf("the session is back with the token: %d", code)
	}
}

// A proxy that is trusted names persons, and the tokens that have their rights.
func TestProxiedPersons(t *testing.T) {
	for _, c := range []struct {
		name, trusted, roles string
		header               []string
		code                 int
		tenant               string
	}{
		{"by name", "127.0.0.1", "", []string{"X-User", "ops"}, 200, "shop"},
		{"an unknown name", "127.0.0.1", "", []string{"X-User", "eve"}, 403, ""},
		{"a page's token", "127.0.0.1", "", []string{"X-User", "page"}, 403, ""},
		{"who may only write", "127.0.0.1", "", []string{"X-User", "w"}, 403, ""},
		{"by role", "127.0.0.1", "X-Roles", []string{"X-User", "eve", "X-Roles", "staff, ops,all"}, 200, "shop"},
		{"the name is no role", "127.0.0.1", "X-Roles", []string{"X-User", "all"}, 403, ""},
		{"roles of nobody", "127.0.0.1", "X-Roles", []string{"X-Roles", "all"}, 401, ""},
		{"another peer", "192.0.2.1", "", []string{"X-User", "all"}, 401, ""},
		{"a name too long", "127.0.0.1", "", []string{"X-User", strings.Repeat("x", maxUser+1)}, 401, ""},
	} {
		cfg := withPeople(t)
		cfg.Proxies.Trusted, cfg.UI.UserHeader, cfg.UI.RoleHeader = c.trusted, "X-User", c.roles
		r := run(t, cfg)
		code := r.status(t, "GET", "/api/query", "", append(slices.Clone(own), c.header...)...)
		_, body := r.send(t, "GET", sessionPath, "", append(slices.Clone(own), c.header...)...)
		var s session
		if err := json.Unmarshal([]byte(body), &s); err != nil || code != c.code || s.Authenticated != (code == 200 || c.name == "who may only write") || s.Tenant != c.tenant {
			t.Errorf("%s: %d %s", c.name, code, body)
		}
		if code == 200 {
			if code := r.status(t, "GET", "/api/query", "", c.header...); code != 401 {
				t.Errorf("%s: a request that is not of the own page: %d", c.name, code)
			}
			twice, err := http.NewRequest("GET", r.url+"/api/query", nil)
			if err != nil {
				t.Fatal(err)
			}
			twice.Header = http.Header{"Sec-Fetch-Site": {"same-origin"}, "X-User": {"ops", "all"}, "X-Roles": {"ops", "all"}}
			if resp, err := http.DefaultClient.Do(twice); err != nil || resp.StatusCode == 200 {
				t.Errorf("%s: two names count: %v %v", c.name, resp, err)
			}
		}
	}
}

// Each query of a person is in the collector's own stream, which tenants do not see.
func TestAudit(t *testing.T) {
	cfg := withPeople(t)
	writePeople(t, cfg, shopToken)
	cfg.Proxies.Trusted, cfg.UI.UserHeader, cfg.UI.RoleHeader = "127.0.0.1", "X-User", "X-Roles"
	r := run(t, cfg)
	for range 3 {
		r.ask(t, http.DefaultClient, "POST", logsPath, secretOfAdmin, `{"msg":"found"}`)
	}
	all, shop := r.logIn(t, secretOfAdmin), r.logIn(t, secretOfShop)
	r.send(t, "GET", "/api/query?q=msg%3Dfound&since=1h", "", all...)
	r.send(t, "GET", "/api/hits?q=msg%3Dfound&since=1h", "", append(slices.Clone(own), "X-User", "eve\u202e", "X-Roles", "all")...)
	r.send(t, "GET", "/api/query?q=%22", "", shop...)
	r.ask(t, http.DefaultClient, "GET", "/api/query?q=found", secretOfAdmin, "") // a program
	_, _, got := r.ask(t, http.DefaultClient, "GET", "/api/query?q=logger%3Daudit", secretOfAdmin, "")
	for _, want := range []string{
		`"msg":"logged in","service":"rollway","logger":"audit","attrs":{"of_tenant":"","remote":"127.0.0.1","token":"all","user":"all"}}`,
		`"msg":"logged in","service":"rollway","logger":"audit","attrs":{"of_tenant":"shop","remote":"127.0.0.1","token":"shop","user":"shop"}}`,
		`"lines":3,"of_tenant":"","path":"/api/query","q":"msg=found","remote":"127.0.0.1","since":"1h","status":200,"token":"all","took_ms":`,
		`"lines":3,"of_tenant":"","path":"/api/hits","q":"msg=found","remote":"127.0.0.1","since":"1h","status":200,"token":"all","took_ms":`,
		"\"user\":\"eve\uFFFD\"",
		`"lines":0,"of_tenant":"shop","path":"/api/query","q":"\"","remote":"127.0.0.1","status":400,"token":"shop"`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no line has %s", want)
		}
	}
	if n := strings.Count(got, "\n"); n != 5 {
		t.Errorf("%d lines, want 5:\n%s", n, got)
	}
	if _, body := r.send(t, "GET", "/api/query?q=logger%3Daudit", "", shop...); body != "" {
		t.Errorf("a tenant sees %s", body)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if l := r.Ledger(); l.Received != l.Outcomes["stored"] || l.Appended != l.Received {
		t.Errorf("the ledger does not agree: %+v", l)
	}
}

// Without tokens nobody logs in, and a proxy's person is named all the same.
func TestPersonsWithoutTokens(t *testing.T) {
	cfg := testConfig(t)
	cfg.Proxies.Trusted, cfg.UI.UserHeader = "127.0.0.1", "X-User"
	r := run(t, cfg)
	if _, body := r.send(t, "GET", sessionPath, ""); !strings.Contains(body, `{"authenticated":true,"user":"","tenant":"","rights":["write","read","operate"],"tokens":false`) {
		t.Error(body)
	}
	if resp, _ := r.send(t, "POST", sessionPath, `{"token":"x"}`, own...); resp.StatusCode != 200 || len(resp.Cookies()) > 0 {
		t.Errorf("%v", resp)
	}
	r.send(t, "GET", "/api/query", "", "X-User", "eve")
	if _, body := r.send(t, "GET", "/api/query?q=logger%3Daudit", ""); !strings.Contains(body, `"user":"eve"`) {
		t.Errorf("no audit: %s", body)
	}
}

func TestPageIsServed(t *testing.T) {
	html := []string{"Accept", "text/html,application/xhtml+xml"}
	for _, c := range []struct {
		listen, serve string
		tokens        bool
		want          int
	}{
		{"127.0.0.1:0", "auto", false, 200},
		{"127.0.0.1:0", "off", false, 404},
		{"0.0.0.0:0", "auto", false, 404},
		{"0.0.0.0:0", "on", false, 200},
		{"0.0.0.0:0", "auto", true, 200},
	} {
		cfg := testConfig(t)
		if c.tokens {
			cfg = withPeople(t)
		}
		cfg.Listen, cfg.UI.Serve = c.listen, c.serve
		r := run(t, cfg)
		_, port, _ := strings.Cut(strings.TrimPrefix(strings.ReplaceAll(r.url, "[::]", "any"), "http://"), ":")
		r.url = "http://127.0.0.1:" + port
		resp, body := r.send(t, "GET", "/ui/", "")
		if resp.StatusCode != c.want || strings.Contains(body, "<!doctype html>") != (c.want == 200) {
			t.Errorf("%+v: %d %.100s", c, resp.StatusCode, body)
		}
		// http.Client follows what leads to the page.
		if resp, _ := r.send(t, "GET", "/", "", html...); strings.HasSuffix(resp.Request.URL.Path, "/ui/") != (c.want == 200) {
			t.Errorf("%+v: / leads to %s", c, resp.Request.URL)
		}
		if resp, body := r.send(t, "GET", "/", "", "Accept", "*/*"); resp.StatusCode != 200 || !strings.Contains(body, "POST /api/logs") {
			t.Errorf("%+v: a program gets %d %.100s", c, resp.StatusCode, body)
		}
		if c.want != 200 {
			continue
		}
		if code := r.status(t, "GET", "/ui/", "", "Host", "evil.example"); code != 403 {
			t.Errorf("by another name: %d", code)
		}
		if code := r.status(t, "POST", "/ui/", ""); code != 405 {
			t.Errorf("POST: %d", code)
		}
		if code := r.status(t, "GET", "/ui/page/../../etc/passwd", ""); code != 404 {
			t.Errorf("another file: %d", code)
		}
	}
}
