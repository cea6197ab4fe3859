package collector

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/clients"
	"github.com/rollway/rollway/collector/receiver/otlp"
)

// refusedCount is how often clients were turned away for a reason, at a receiver.
func (r *running) refusedCount(receiver, reason, token string) (n uint64) {
	r.clients.Refusals(func(one clients.Refusal, count uint64) {
		if one == (clients.Refusal{Receiver: receiver, Reason: reason, Token: token, Network: "127.0.0.0/24"}) {
			n = count
		}
	})
	return n
}

// Every way of being turned away is counted, by receiver, reason, token and network, and is
// in the log without a secret.
func TestEveryRefusalIsCounted(t *testing.T) {
	cfg := withTokens(t)
	cfg.ListenTCP, cfg.ListenSyslog, cfg.ListenForward = "127.0.0.1:0", "tcp://127.0.0.1:0", "tcp://127.0.0.1:0"
	cfg.Forward.SharedKeyFile = filepath.Join(t.TempDir(), "key")
	writeFile(t, cfg.Forward.SharedKeyFile, "a key that nobody knows")
	cfg.Limits.MaxStreams, cfg.ListenGRPC = 1, "127.0.0.1:0"
	r := run(t, cfg)
	if code, _, got := r.ask(t, http.DefaultClient, "POST", "/api/logs", slowSecret, strings.Repeat("{}\n", 9000)); code != 200 {
		t.Fatal(code, got)
	}
	h2 := &http.Client{Transport: &http.Transport{Protocols: new(http.Protocols)}}
	h2.Transport.(*http.Transport).Protocols.SetUnencryptedHTTP2(true)
	defer h2.CloseIdleConnections()
	const key = "0123456789abcdef0123456789abcdef"
	for _, tc := range []struct {
		method, path, secret, body string
		client                     *http.Client
		receiver, reason, token    string
	}{
		{"POST", "/api/logs", "", "{}", nil, "/api/logs", "unauthorized", ""},
		{"POST", "/api/logs", key, "{}", nil, "/api/logs", "unauthorized", ""},
		{"POST", "/api/logs", readerSecret, "{}", nil, "/api/logs", "forbidden", "r"},
		{"POST", "/api/logs", slowSecret, "{}", nil, "/api/logs", "too_many_requests", "slow"},
		{"POST", "/services/collector", slowSecret, "{}", nil, "/services/collector", "too_many_requests", "slow"}, // answered 503
		{"POST", "/api/logs", writerSecret, "nonsense", nil, "/api/logs", "bad_request", "w"},
		{"POST", "/api/logs", writerSecret, "1 2", nil, "/api/logs", "bad_request", "w"},
		{"POST", "/v1/logs", writerSecret, "\xff", nil, "/v1/logs", "bad_request", "w"},
		{"POST", "/shop/_bulk", key, "{}", nil, "/{index}/_bulk", "unauthorized", ""},
		{"DELETE", "/api/logs", writerSecret, "", nil, "/api/logs", "method_not_allowed", "w"},
		{"GET", "/api/query?q=(", readerSecret, "", nil, "/api/query", "bad_request", "r"},
		{"GET", "/api/query?q=x", writerSecret, "", nil, "/api/query", "forbidden", "w"},
		{"GET", "/api/tail?from=x", readerSecret, "", nil, "/api/tail", "bad_request", "r"},
		{"GET", "/api/tail", "", "", nil, "/api/tail", "unauthorized", ""},
		{"GET", "/metrics", key, "", nil, "/metrics", "unauthorized", ""},
		{"GET", "/api/clients", writerSecret, "", nil, "/api/clients", "forbidden", "w"},
		{"POST", "/v1/input/" + key, "", "{}", nil, "other", "not_found", ""},
		{"POST", "/", "", "{}", nil, "/", "method_not_allowed", ""},
		{"POST", otlp.GRPCPath, key, "\x00\x00\x00\x00\x00", h2, otlp.GRPCPath, "unauthorized", ""},
		{"POST", "/opentelemetry.proto.collector.trace.v1.TraceService/Export", key, "", h2, "other", "not_found", ""},
	} {
		before := r.refusedCount(tc.receiver, tc.reason, tc.token)
		client := tc.client
		if client == nil {
			client = http.DefaultClient
		}
		req, err := http.NewRequest(tc.method, r.url+tc.path, strings.NewReader(tc.body))
		if err != nil {
			t.Fatal(err)
		}
		if tc.client != nil {
			req.Header.Set("Content-Type", "application/grpc")
		}
		if tc.secret != "" {
			req.Header.Set("Authorization", "Bearer "+tc.secret)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		eventually(t, func() bool { return r.refusedCount(tc.receiver, tc.reason, tc.token) > before }) // the answer comes first
		if n := r.refusedCount(tc.receiver, tc.reason, tc.token); n != before+1 {
			t.Errorf("%s %s as %q: %s, counted %d times", tc.method, tc.path, tc.secret, resp.Status, n-before)
		}
	}
	speak := func(addr net.Addr, text string) *kept {
		k := keep(t, addr)
		io.WriteString(k, text)
		return k
	}
	speak(r.TCPAddr(), "GET / HTTP/1.1\r\n\r\n")
	eventually(t, func() bool { return r.refusedCount("lines of JSON", "protocol", "") == 1 })
	eventually(t, func() bool { return r.Stats().Receive.Connections == 0 })
	speak(r.TCPAddr(), "{}\n")
	eventually(t, func() bool { return r.Stats().Receive.Connections == 1 })
	speak(r.TCPAddr(), "{}\n")
	speak(r.ForwardAddrs()[0], "\x93\x01\x02\x03")
	speak(r.Addr(), "GET / HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n")
	speak(r.Addr(), "PROXY TCP4 192.0.2.1 192.0.2.2 40000 80\r\n")
	speak(r.GRPCAddr(), "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x08\x06\x00\x00\x00\x00\x0012345678") // PING before SETTINGS
	for _, want := range [][2]string{
		{"lines of JSON", "connections"}, {"Fluent forward", "unauthorized"}, {"http", "header"}, {"http", "protocol"},
	} {
		eventually(t, func() bool {
			n := uint64(1)
			if want == [2]string{"http", "protocol"} { // a PROXY header, and not HTTP/2
				n = 2
			}
			return r.refusedCount(want[0], want[1], "") == n
		})
	}
	_, _, page := r.ask(t, http.DefaultClient, "GET", "/metrics", readerSecret, "")
	for _, want := range []string{
		`rollway_refused_total{network="127.0.0.0/24",reason="too_many_requests",receiver="/api/logs",token="slow"} 1`,
		`rollway_refused_total{network="127.0.0.0/24",reason="header",receiver="http",token=""} 1`,
	} {
		if !strings.Contains(page, "\n"+want+"\n") {
			t.Errorf("metrics lack %s", want)
		}
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	log := r.log.String()
	for _, want := range []string{
		`receiver=/api/logs reason=forbidden count=1 client=127.0.0.1 token=r path=/api/logs answer="token r may not write"`,
		`receiver=other reason=not_found count=2 client=127.0.0.1 token="" path=/v1/input/… answer="there is no such path here"`,
		`receiver="Fluent forward" reason=unauthorized`,
	} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %s", want)
		}
	}
	for _, secret := range []string{key, writerSecret, readerSecret, slowSecret} {
		if strings.Contains(log, secret) {
			t.Errorf("the log has %s", secret)
		}
	}
	if t.Failed() {
		t.Log(log)
	}
}

// Handshakes that fail are counted and not each of them in the log; a health check that
// connects and leaves is neither.
func TestHandshakesAreCounted(t *testing.T) {
	cfg, trusts, _ := newAuthority(t).secureConfig(t, testConfig(t))
	cfg.ListenSyslog, cfg.Limits.MaxConns = "tls://127.0.0.1:0", 3
	r := run(t, cfg)
	for _, addr := range []net.Addr{r.Addr(), r.SyslogAddrs()[0]} {
		for range 3 {
			if _, err := tls.Dial("tcp", addr.String(), &tls.Config{}); err == nil {
				t.Fatal("the certificate is trusted")
			}
			keep(t, addr).Close()
		}
	}
	eventually(t, func() bool {
		return r.refusedCount("http", clients.Handshake, "") == 3 && r.refusedCount("syslog", clients.Handshake, "") == 3
	})
	eventually(t, func() bool { return r.Stats().Connections.Open == 0 })
	for range 4 {
		c, err := tls.Dial("tcp", r.Addr().String(), trusts)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, func() bool { return r.refusedCount("http", clients.Connections, "") == 1 })
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	if n := strings.Count(r.log.String(), "bad certificate"); n != 2 || strings.Contains(r.log.String(), "TLS handshake error") {
		t.Errorf("%d lines on certificates:\n%s", n, r.log.String())
	}
}

// GET /api/clients shows who sends what; a token of a tenant sees what its tenant sends.
func TestClients(t *testing.T) {
	cfg := withTokens(t)
	cfg.ListenTCP, cfg.ListenSyslog = "127.0.0.1:0", "udp://127.0.0.1:0?tenant=shop"
	shopReader := "q-0123456789abcdef"
	writeFile(t, cfg.Access.Tokens, fmt.Sprintf("- {name: w, secret: %q, tenant: shop}\n- {name: r, secret: %q, may: read}\n- {name: q, secret: %q, may: read, tenant: shop}\n- {name: o, secret: %q, tenant: other}\n",
		writerSecret, readerSecret, shopReader, newSecret))
	r := run(t, cfg)
	r.ask(t, http.DefaultClient, "POST", "/api/logs", writerSecret, "{\"msg\":\"a\"}\n{\"msg\":\"b\"}\nbad\n")
	r.ask(t, http.DefaultClient, "POST", "/api/logs", writerSecret, "bad")
	r.ask(t, http.DefaultClient, "POST", "/api/logs", newSecret, "{}")
	stream := keep(t, r.TCPAddr())
	io.WriteString(stream, "{\"msg\":\"c\"}\n{\"msg\":\"d\"}\n")
	datagrams, err := net.Dial("udp", r.SyslogAddrs()[0].String())
	if err != nil {
		t.Fatal(err)
	}
	defer datagrams.Close()
	io.WriteString(datagrams, "<1>e")
	io.WriteString(datagrams, "<1>f")
	eventually(t, func() bool { return r.Stats().Receive.Stored == 7 })
	get := func(secret string) (list []clients.Client) {
		t.Helper()
		code, _, body := r.ask(t, http.DefaultClient, "GET", "/api/clients", secret, "")
		var answer struct{ Clients []clients.Client }
		if err := json.Unmarshal([]byte(body), &answer); code != 200 || err != nil {
			t.Fatalf("%d, %v: %s", code, err, body)
		}
		return answer.Clients
	}
	of := func(list []clients.Client, receiver, token string) clients.Client {
		t.Helper()
		i := slices.IndexFunc(list, func(c clients.Client) bool { return c.Receiver == receiver && c.Token == token })
		if i < 0 {
			t.Errorf("no %s of %q in %+v", receiver, token, list)
			return clients.Client{}
		}
		return list[i]
	}
	list := get(readerSecret)
	if c := of(list, "/api/logs", "w"); c.Client != "127.0.0.1" || c.Tenant != "shop" || c.Requests != 2 || c.Events != 4 || c.Rejected != 2 || c.Bytes != 31 ||
		c.Refused != 1 || !strings.HasPrefix(c.Error, "bad_request: nothing was stored") && !strings.HasPrefix(c.Error, "bad_request: the body is not") || c.Agent != "Go-http-client/1.1" {
		t.Errorf("%+v", c)
	}
	if c := of(list, "lines of JSON", ""); c.Requests != 1 || c.Events != 2 || c.Bytes != 24 || c.Refused != 0 {
		t.Errorf("%+v", c)
	}
	if c := of(list, "syslog", ""); c.Requests != 2 || c.Events != 2 || c.Bytes != 8 || c.Tenant != "shop" {
		t.Errorf("%+v", c)
	}
	of(list, "/api/logs", "o")
	list = get(shopReader)
	of(list, "/api/logs", "w")
	for _, c := range list {
		if c.Tenant != "shop" {
			t.Errorf("a token of shop sees %+v", c)
		}
	}
	if code, _, _ := r.ask(t, http.DefaultClient, "GET", "/api/clients", "", ""); code != 401 {
		t.Errorf("without a token: %d", code)
	}
}

// A request costs no allocation more for being counted.
func TestCountingAllocatesNothing(t *testing.T) {
	r := run(t, testConfig(t))
	request := &http.Request{RemoteAddr: "192.0.2.1:40000", Header: http.Header{"User-Agent": {"curl/8.0 x"}}}
	sw := &answerWriter{code: 200, seen: clients.Seen{Requests: 1, Events: 1, Bytes: 20}}
	now := r.began
	if n := testing.AllocsPerRun(1000, func() { r.sawRequest(now, "/api/logs", sw, request) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkSawRequest(b *testing.B) {
	c := &Collector{clients: clients.New(nil)}
	c.state.Store(new(state))
	request := &http.Request{RemoteAddr: "192.0.2.1:40000", Header: http.Header{"User-Agent": {"curl/8.0 x"}}}
	sw := &answerWriter{code: 200, seen: clients.Seen{Requests: 1, Events: 1, Bytes: 20}}
	b.ReportAllocs()
	for b.Loop() {
		c.sawRequest(c.began, "/api/logs", sw, request)
	}
}
