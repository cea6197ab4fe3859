package collector

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/config"
)

// Secrets of the tests, which must not appear in a log or an answer.
const (
	writerSecret = "w-0123456789abcdef"
	readerSecret = "r-0123456789abcdef"
	slowSecret   = "s-0123456789abcdef"
	newSecret    = "n-0123456789abcdef"
)

func writeFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// withTokens is a configuration with a file of tokens.
func withTokens(t *testing.T) config.Config {
	cfg := testConfig(t)
	cfg.Access.Tokens = filepath.Join(t.TempDir(), "tokens.yaml")
	writeFile(t, cfg.Access.Tokens, fmt.Sprintf(`
- {name: w, secret: %q, tenant: shop, durability: synced}
- {name: r, secret: %q, may: read}
- {name: slow, secret: %q, tenant: slow, events_per_second: 10}
`, writerSecret, readerSecret, slowSecret))
	return cfg
}

// ask makes a request with a token.
func (r *running) ask(t *testing.T, client *http.Client, method, path, secret, body string) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequest(method, r.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if secret != "" {
		req.Header.Set("Authorization", "Bearer "+secret)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(b)
}

func TestTokens(t *testing.T) {
	r := run(t, withTokens(t))
	for _, tc := range []struct {
		method, path, secret string
		code                 int
		want                 string
	}{
		{"POST", "/api/logs", "", 401, "a token is needed"},
		{"POST", "/api/logs", "x-0123456789abcdef", 401, "not known"},
		{"POST", "/api/logs", readerSecret, 403, "token r may not write"},
		{"POST", "/api/logs", writerSecret, 200, `"accepted":1`},
		{"GET", "/api/query?q=hello", "", 401, "a token is needed"},
		{"GET", "/api/query?q=hello", writerSecret, 403, "token w may not read"},
		{"GET", "/api/query?q=hello", readerSecret, 200, `"msg":"hello","attrs":{"tenant":"shop","tenant_2":"forged"}}`},
		{"GET", "/api/tail", "", 401, "a token is needed"},
		{"GET", "/api/hits", "", 401, "a token is needed"},
		{"GET", "/api/context?offset=0", "", 401, "a token is needed"},
		{"GET", "/api/explain", writerSecret, 403, "token w may not read"},
		{"GET", "/api/stats", "", 401, "a token is needed"},
		{"GET", "/api/fields", "", 401, "a token is needed"},
		{"GET", "/api/facets", writerSecret, 403, "token w may not read"},
		{"GET", "/api/hits", writerSecret, 403, "token w may not read"},
		{"GET", "/metrics", "", 401, "a token is needed"},
		{"GET", "/metrics", readerSecret, 200, `rollway_http_requests`},
		{"GET", "/healthz", "", 200, "alive"},
		{"GET", "/readyz", "", 200, "ready"},
	} {
		body := ""
		if tc.method == "POST" {
			body = `{"msg":"hello","tenant":"forged"}`
		}
		code, header, got := r.ask(t, http.DefaultClient, tc.method, tc.path, tc.secret, body)
		if code != tc.code || !strings.Contains(got, tc.want) && tc.path != "/metrics" {
			t.Errorf("%s %s as %q: %d %s, want %d with %q", tc.method, tc.path, tc.secret, code, got, tc.code, tc.want)
		}
		if (code == 401) != (header.Get("WWW-Authenticate") != "") {
			t.Errorf("%s %s: %d, WWW-Authenticate %q", tc.method, tc.path, code, header.Get("WWW-Authenticate"))
		}
		if code == 200 && tc.method == "POST" && header.Get("X-Durability") != "synced" {
			t.Errorf("durability %q, want that of the token", header.Get("X-Durability"))
		}
		if tc.secret != "" && strings.Contains(got, tc.secret) {
			t.Errorf("%s %s tells a secret: %s", tc.method, tc.path, got)
		}
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if s := r.Stats().Receive; s.Received != 1 || s.Stored != 1 {
		t.Errorf("%d received, %d stored, want 1: what was refused was not read", s.Received, s.Stored)
	}
	for _, secret := range []string{writerSecret, readerSecret} {
		if strings.Contains(r.log.String(), secret) {
			t.Errorf("a secret is in the log: %s", r.log)
		}
	}
}

// A token of a tenant finds the lines of that tenant and no others, whatever it
// asks for; one of no tenant finds all.
func TestTenantsReadTheirOwn(t *testing.T) {
	cfg := testConfig(t)
	cfg.ListenSyslog = "tcp://127.0.0.1:0?tenant=bank"
	cfg.Access.Tokens = filepath.Join(t.TempDir(), "tokens.yaml")
	writeFile(t, cfg.Access.Tokens, fmt.Sprintf(`
- {name: shop, secret: %q, tenant: shop, may: [write, read]}
- {name: bank, secret: %q, tenant: bank, may: [write, read]}
- {name: all, secret: %q, may: [write, read]}
`, writerSecret, slowSecret, readerSecret))
	r := run(t, cfg)
	for _, secret := range []string{writerSecret, slowSecret, readerSecret} {
		for _, event := range []string{`{"msg":"of %s"}`, `{"msg":"of %s","tenant":"shop"}`, `{"msg":"of %s","a":{"tenant":"shop"},"\u0074enant":["bank"]}`} {
			if code, _, got := r.ask(t, http.DefaultClient, "POST", "/api/logs", secret, fmt.Sprintf(event, secret)); code != 200 {
				t.Fatal(code, got)
			}
		}
	}
	conn := dialListener(t, r.SyslogAddrs()[0])
	fmt.Fprintf(conn, "<14>1 2026-05-28T12:40:00Z h app - - - of %s\n", slowSecret)
	for end := time.Now().Add(time.Minute); r.Stats().Receive.Stored < 10; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the line by syslog is not stored within a minute")
		}
	}
	// Each finds all that its sender may see.
	for _, expr := range []string{"", "of", "of or attrs.tenant=bank or attrs.tenant=shop", "tenant=bank or not tenant=bank", "-tenant=shop or of", "time>2000-01-01"} {
		// Three of its own, and one by syslog.
		for secret, want := range map[string]int{writerSecret: 3, slowSecret: 3 + 1, readerSecret: 10} {
			for _, path := range []string{"/api/query?last=100&q=", "/api/query?since=2000-01-01&until=2100-01-01&q="} {
				code, _, got := r.ask(t, http.DefaultClient, "GET", path+url.QueryEscape(expr), secret, "")
				if code != 200 {
					t.Fatal(code, got)
				}
				if n := strings.Count(got, "\n"); n != want {
					t.Errorf("%q as %s: %d lines, want %d:\n%s", expr, secret, n, want, got)
				}
				other := slowSecret
				if secret == slowSecret {
					other = writerSecret
				}
				if secret != readerSecret && strings.Contains(got, "of "+other) {
					t.Errorf("%q as %s finds what is another's:\n%s", expr, secret, got)
				}
			}
		}
	}
	req, err := http.NewRequest("GET", r.url+"/api/tail?from=0&q=of", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+writerSecret)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	tail := bufio.NewReader(resp.Body)
	for lines := 0; lines < 3; {
		line, err := tail.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(line, "data: ") {
			lines++
			if !strings.Contains(line, `"tenant":"shop"`) || strings.Contains(line, slowSecret) {
				t.Errorf("a tail of shop has %s", line)
			}
		}
	}
}

// The same idempotency key of two tenants names two requests, of one tenant one.
func TestKeysOfTenants(t *testing.T) {
	cfg := withTokens(t)
	text, err := os.ReadFile(cfg.Access.Tokens)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, cfg.Access.Tokens, fmt.Sprintf("%s- {name: shop, secret: %q}\n", text, newSecret))
	r := run(t, cfg)
	for i, tc := range []struct{ secret, want string }{
		{writerSecret, `{"accepted":1,"first_offset":0`},
		{slowSecret, `{"accepted":1,"first_offset":1`},
		{newSecret, `{"accepted":1,"first_offset":2`}, // its name is a tenant's, it is of none
		{writerSecret, `{"accepted":1,"first_offset":0`},
		{newSecret, `{"accepted":1,"first_offset":2`},
	} {
		req, err := http.NewRequest("POST", r.url+"/api/logs", strings.NewReader(`{"msg":"once"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+tc.secret)
		req.Header.Set("Idempotency-Key", "k1")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != 200 || !strings.HasPrefix(string(got), tc.want) {
			t.Errorf("request %d: %d %s, want %s", i, resp.StatusCode, got, tc.want)
		}
	}
}

// A token that has sent more than it may is told when to come again, and is let
// in then; others are not concerned.
func TestRateOfAToken(t *testing.T) {
	r := run(t, withTokens(t))
	batch := strings.Repeat("{\"msg\":\"m\"}\n", 25)
	stored, refused := 0, 0
	for begin := time.Now(); refused < 2; {
		code, header, got := r.ask(t, http.DefaultClient, "POST", "/api/logs", slowSecret, batch)
		switch code {
		case 200:
			stored += 25
		case 429:
			refused++
			if after := header.Get("Retry-After"); after != "1" && after != "2" {
				t.Errorf("Retry-After %q after 25 events at 10 a second: %s", after, got)
			}
		default:
			t.Fatalf("%d %s", code, got)
		}
		if code, _, got := r.ask(t, http.DefaultClient, "POST", "/api/logs", writerSecret, "{}"); code != 200 {
			t.Fatalf("another token: %d %s", code, got)
		}
		if time.Since(begin) > time.Minute {
			t.Fatal("never refused")
		}
	}
	for {
		code, header, got := r.ask(t, http.DefaultClient, "POST", "/api/logs", slowSecret, batch)
		if code == 200 {
			stored += 25
			break
		}
		if code != 429 || header.Get("Retry-After") == "" {
			t.Fatalf("%d %s", code, got)
		}
		time.Sleep(50 * time.Millisecond)
	}
	_, _, found := r.ask(t, http.DefaultClient, "GET", "/api/query?limit=10000", readerSecret, "")
	if n := strings.Count(found, `"tenant":"slow"`); n != stored {
		t.Errorf("%d lines found, %d were accepted", n, stored)
	}
}

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
	next int64
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{key: key, pool: x509.NewCertPool(), next: 100}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.pool.AddCert(a.cert)
	return a
}

// pem is the authority's own certificate.
func (a *authority) pem() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}))
}

// issue returns a certificate for 127.0.0.1 and its key, in PEM.
func (a *authority) issue(t *testing.T) (cert, key string, serial int64) {
	t.Helper()
	a.next++
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(a.next), Subject: pkix.Name{CommonName: "leaf"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &k.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, b []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}))
	}
	return block("CERTIFICATE", der), block("PRIVATE KEY", pkcs8), a.next
}

// secureConfig is one with TLS; client is the configuration of its clients.
func (a *authority) secureConfig(t *testing.T, cfg config.Config) (config.Config, *tls.Config, int64) {
	t.Helper()
	dir := t.TempDir()
	cfg.TLS.Cert, cfg.TLS.Key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	return cfg, &tls.Config{RootCAs: a.pool}, a.renew(t, cfg)
}

// renew writes a new certificate to the files of cfg and returns its serial.
func (a *authority) renew(t *testing.T, cfg config.Config) int64 {
	t.Helper()
	cert, key, serial := a.issue(t)
	writeFile(t, cfg.TLS.Cert, cert)
	writeFile(t, cfg.TLS.Key, key)
	return serial
}

func clientOf(c *tls.Config) *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: c, ForceAttemptHTTP2: true}}
}

func TestMutualTLS(t *testing.T) {
	a, stranger := newAuthority(t), newAuthority(t)
	cfg, trusts, _ := a.secureConfig(t, testConfig(t))
	cfg.TLS.ClientCA = filepath.Join(t.TempDir(), "ca.pem")
	writeFile(t, cfg.TLS.ClientCA, a.pem())
	r := run(t, cfg)
	r.url = strings.Replace(r.url, "http:", "https:", 1)
	pair := func(a *authority) []tls.Certificate {
		cert, key, _ := a.issue(t)
		pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
		if err != nil {
			t.Fatal(err)
		}
		return []tls.Certificate{pair}
	}
	for name, certs := range map[string][]tls.Certificate{"none": nil, "a stranger's": pair(stranger)} {
		if _, err := clientOf(&tls.Config{RootCAs: a.pool, Certificates: certs}).Get(r.url + "/healthz"); err == nil {
			t.Errorf("%s: let in", name)
		}
	}
	trusts.Certificates = pair(a)
	if code, _, got := r.ask(t, clientOf(trusts), "POST", "/api/logs", "", `{"msg":"hello"}`); code != 200 {
		t.Errorf("%d %s", code, got)
	}
	if _, _, got := r.ask(t, clientOf(trusts), "GET", "/", "", ""); !strings.Contains(got, "' https://"+r.Addr().String()+"/api/logs\n") {
		t.Errorf("the page of endpoints: %s", got)
	}
	old := clientOf(&tls.Config{RootCAs: a.pool, Certificates: pair(a), MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10})
	if _, err := old.Get(r.url + "/healthz"); err == nil {
		t.Error("TLS 1.1 is spoken")
	}
}

// Syslog and Fluent forward over TLS take events of clients that have a
// certificate of the authority, and of no others; a connection after Reload is
// shown the new certificate, and asked for one of the new authority.
func TestMutualTLSOfStreams(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	cfg, _, serial := a.secureConfig(t, testConfig(t))
	cfg.TLS.ClientCA = filepath.Join(t.TempDir(), "ca.pem")
	writeFile(t, cfg.TLS.ClientCA, a.pem())
	cfg.ListenSyslog, cfg.ListenForward = "tls://127.0.0.1:0?tenant=s", "tls://127.0.0.1:0?tenant=f"
	r := run(t, cfg)
	// send returns what the collector answers, and the serial of its certificate.
	send := func(addr net.Addr, client *authority, text string) (answer string, shown int64, err error) {
		c := &tls.Config{RootCAs: a.pool}
		if client != nil {
			cert, key, _ := client.issue(t)
			pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
			if err != nil {
				t.Fatal(err)
			}
			c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
		}
		conn, err := tls.Dial("tcp", addr.String(), c)
		if err != nil {
			return "", 0, err
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(time.Minute))
		shown = conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
		io.WriteString(conn, text) // whether that goes well is seen below
		conn.CloseWrite()
		b, err := io.ReadAll(conn) // to the end, once all is stored; of strangers an alert
		return string(b), shown, err
	}
	const ack = "\x81\xa3ack\xa1c"
	both := func(client *authority, serial int64, let bool) {
		t.Helper()
		for _, d := range []struct {
			addr         net.Addr
			text, answer string
		}{
			{r.SyslogAddrs()[0], "<14>1 2026-05-28T12:40:00Z h app - - - by TLS\n", ""},
			{r.ForwardAddrs()[0], "\x94\xa3tag\xce\x6a\x18\x39\xa0\x81\xa3msg\xa6by TLS\x81\xa5chunk\xa1c", ack},
		} {
			answer, shown, err := send(d.addr, client, d.text)
			if let && (err != nil || answer != d.answer || shown != serial) || !let && (err == nil || answer != "") {
				t.Errorf("answered %q by certificate %d, %v; want %q by %d: %v", answer, shown, err, d.answer, serial, let)
			}
		}
	}
	both(nil, serial, false)
	both(other, serial, false)
	both(a, serial, true)
	if s := r.Stats().Receive; s.Stored != 2 || s.Received != 2 {
		t.Errorf("%+v", s)
	}
	writeFile(t, cfg.TLS.ClientCA, other.pem())
	renewed := a.renew(t, cfg)
	if err := r.Reload(cfg); err != nil {
		t.Fatal(err)
	}
	both(a, renewed, false)
	both(other, renewed, true)
	if s := r.Stats().Receive; s.Stored != 4 || s.Received != 4 {
		t.Errorf("%+v", s)
	}
}

// Reload swaps tokens and certificates under load, and changes nothing if one
// of them cannot be used.
func TestReload(t *testing.T) {
	a := newAuthority(t)
	cfg, trusts, serial := a.secureConfig(t, withTokens(t))
	r := run(t, cfg)
	r.url = strings.Replace(r.url, "http:", "https:", 1)

	var stop atomic.Bool
	var sent atomic.Int64
	var load sync.WaitGroup
	defer func() { stop.Store(true); load.Wait() }()
	for range 2 {
		load.Go(func() {
			client := clientOf(trusts.Clone())
			for !stop.Load() {
				if code, _, got := r.ask(t, client, "POST", "/api/logs", writerSecret, `{"msg":"load"}`); code != 200 {
					t.Errorf("%d %s", code, got)
					return
				}
				sent.Add(1)
			}
		})
	}
	now := func() int64 { // of a new connection
		conn, err := tls.Dial("tcp", r.Addr().String(), trusts)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	code := func(secret string) int {
		code, _, _ := r.ask(t, clientOf(trusts.Clone()), "POST", "/api/logs", secret, `{"msg":"probe"}`)
		return code
	}
	if now() != serial || code(newSecret) != 401 {
		t.Fatal("not as configured")
	}

	renewed := a.renew(t, cfg)
	good, err := os.ReadFile(cfg.Access.Tokens)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, cfg.Access.Tokens, "- name: x\n")
	if err := r.Reload(cfg); err == nil || !strings.Contains(err.Error(), "nothing was changed") || !strings.Contains(err.Error(), "secret: missing") {
		t.Errorf("Reload = %v", err)
	}
	if now() != serial {
		t.Error("the certificate has changed although the tokens cannot be used")
	}
	writeFile(t, cfg.Access.Tokens, string(good)+fmt.Sprintf("- {name: new, secret: %q}\n", newSecret))
	if err := r.Reload(cfg); err != nil {
		t.Fatal(err)
	}
	if now() != renewed || code(newSecret) != 200 {
		t.Error("not as reloaded")
	}

	for key, change := range map[string]func(*config.Config){
		"limits.max_body": func(c *config.Config) { c.Limits.MaxBody++ },
		"listen":          func(c *config.Config) { c.Listen = "127.0.0.1:1" },
		"tls.cert":        func(c *config.Config) { c.TLS = config.TLS{} },
	} {
		other := cfg
		change(&other)
		if err := r.Reload(other); err == nil || !strings.Contains(err.Error(), key) || !strings.Contains(err.Error(), "restart") {
			t.Errorf("Reload with another %s = %v", key, err)
		}
	}
	stop.Store(true)
	load.Wait()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if got := r.Stats().Receive.Stored; got != uint64(sent.Load())+1 {
		t.Errorf("%d stored, %d sent", got, sent.Load()+1)
	}
}

func TestSecurityThatCannotBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	writeFile(t, file, "nothing of use")
	for want, change := range map[string]func(*config.Config){
		"read tokens":                func(c *config.Config) { c.Access.Tokens = file + ".none" },
		"a list of tokens is wanted": func(c *config.Config) { c.Access.Tokens = file },
		"tls.cert " + file:           func(c *config.Config) { c.TLS.Cert, c.TLS.Key = file, file },
		"must be set together":       func(c *config.Config) { c.TLS.Cert = file },
		"client certificates":        func(c *config.Config) { c.TLS.ClientCA = file },
		"listen_tcp":                 func(c *config.Config) { c.Access.Tokens, c.ListenTCP = file, "0.0.0.0:0" },
	} {
		cfg := testConfig(t)
		change(&cfg)
		if c, err := New(cfg, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New = %v, want %q", err, want)
			if c != nil {
				c.Close()
			}
		}
	}
}
