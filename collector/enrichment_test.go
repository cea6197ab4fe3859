package collector

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/collector/ledger"
)

// withEnrichment is testConfig with the blocks of text.
func withEnrichment(t *testing.T, text string) config.Config {
	t.Helper()
	cfg := testConfig(t)
	c, err := config.Parse("f.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Enrich, cfg.Rules = c.Enrich, c.Rules
	return cfg
}

// checkLedger waits until nothing is under way and checks that nothing is
// unaccounted for.
func (r *running) checkLedger(t *testing.T, received, dropped uint64) {
	t.Helper()
	s := r.Stats().Receive
	for end := time.Now().Add(20 * time.Second); s.Received != received && time.Now().Before(end); s = r.Stats().Receive {
		time.Sleep(time.Millisecond)
	}
	if s.Received != received || s.DroppedTotal() != dropped || s.Received != s.Stored+s.RejectedTotal()+s.Failed+s.Duplicate+s.DroppedTotal() {
		t.Errorf("received %d, want %d; dropped %v, want %d; %+v", s.Received, received, s.Dropped, dropped, s)
	}
	if l := r.Ledger(); !ledger.Agree(l.Counts()) {
		t.Errorf("the ledger does not agree: %+v", l.Counts())
	}
}

func TestEnrichment(t *testing.T) {
	cfg := withEnrichment(t, `
enrich: {fields: {env: prod}, client: true, networks: {table: {127.0.0.0/8: {site: here}}}}
rules:
- {name: health, drop: {where: 'path=/healthz'}}
- redact: {key: password}
`)
	cfg.ListenTCP, cfg.ListenSyslog, cfg.ListenForward = "127.0.0.1:0", "udp://127.0.0.1:0", "tcp://127.0.0.1:0"
	r := run(t, cfg)
	post := func(path, body string) string {
		_, _, got := r.do(t, "POST", path, body)
		return got
	}
	for _, tc := range [][3]string{
		{"/api/logs", `{"path":"/healthz"}`, `{"accepted":1,"dropped":1}` + "\n"},
		{"/api/logs", `[{"msg":"one","password":"s3cr3t"},{"path":"/healthz"},5]`, `{"accepted":2,"first_offset":0,"dropped":1,"rejected":[`},
		{"/api/logs", "5\n", `{"error":"nothing was stored: `},
		{"/services/collector/event", `{"event":{"msg":"splunk","path":"/healthz"}}`, `{"text":"Success","code":0}`},
		{"/_bulk", `{"create":{"_id":"a"}}` + "\n" + `{"path":"/healthz"}` + "\n" + `{"create":{"_id":"b"}}` + "\n" + `{"message":"es"}` + "\n", `"errors":false,"items":[{"create":{"_index":"","_id":"a","result":"noop","status":200}},{"create":{"_index":"","_id":"b","_version":1,"result":"created"`},
	} {
		if got := post(tc[0], tc[1]); !strings.Contains(got, tc[2]) {
			t.Errorf("%s %s\ngot  %swant %s", tc[0], tc[1], got, tc[2])
		}
	}
	tcp, err := net.Dial("tcp", r.TCPAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(tcp, `{"msg":"tcp"}`+"\n"+`{"path":"/healthz"}`+"\n")
	tcp.Close()
	udp, err := net.Dial("udp", r.SyslogAddrs()[0].String())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(udp, `<14>1 2026-05-28T12:40:00Z h app - - - {"msg":"udp","password":"s3cr3t"}`)
	udp.Close()
	forward, err := net.Dial("tcp", r.ForwardAddrs()[0].String())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(forward, "\x93\xa3tag\x01\x82\xa3msg\xa7forward\xa8password\xa6s3cr3t")
	forward.Close()
	// One dropped, two and a rejected one, a rejected one, one dropped, one and
	// one dropped, one and one dropped, one, one.
	r.checkLedger(t, 1+3+1+1+2+2+1+1, 5)

	_, _, lines := r.do(t, "GET", "/api/query?q=", "")
	if n := strings.Count(lines, "\n"); n != 5 {
		t.Errorf("%d lines:\n%s", n, lines)
	}
	for _, word := range []string{`"msg":"one"`, `"msg":"es"`, `"msg":"tcp"`, `"msg":"udp"`, `"msg":"forward"`} {
		if !strings.Contains(lines, word) {
			t.Errorf("%s is missing in\n%s", word, lines)
		}
	}
	if n := strings.Count(lines, `"env":"prod","client_ip":"127.0.0.1","site":"here"`); n != 5 {
		t.Errorf("%d of 5 are enriched in\n%s", n, lines)
	}
	if strings.Contains(lines, "s3cr3t") || strings.Count(lines, `"password":"[REDACTED]"`) != 3 {
		t.Errorf("not redacted:\n%s", lines)
	}
	_, _, metrics := r.do(t, "GET", "/metrics", "")
	if !strings.Contains(metrics, `rollway_events_dropped_total{rule="health"} 5`+"\n") {
		t.Error("no metric of what was dropped")
	}
}

// An address says whose its events are, also of those that are rejected.
func TestTenantOfAnAddress(t *testing.T) {
	cfg := testConfig(t)
	cfg.ListenSyslog = "udp://127.0.0.1:0?tenant=u tcp://127.0.0.1:0?tenant=t tcp://127.0.0.1:0"
	cfg.ListenForward = "tcp://127.0.0.1:0?tenant=f"
	r := run(t, cfg)
	syslog := r.SyslogAddrs()
	for i, addr := range []net.Addr{syslog[0], syslog[1], syslog[2], r.ForwardAddrs()[0]} {
		conn, err := net.Dial(addr.Network(), addr.String())
		if err != nil {
			t.Fatal(err)
		}
		if i == 3 {
			fmt.Fprint(conn, "\x93\xa3tag\x01\x82\xa1n\x03\xa6tenant\xa1x")
		} else {
			fmt.Fprintf(conn, "<14>1 2026-05-28T12:40:00Z h app - - - {\"n\":%d,\"tenant\":\"x\"}\n", i)
		}
		conn.Close()
	}
	r.checkLedger(t, 4, 0)
	_, _, lines := r.do(t, "GET", "/api/query?q=", "")
	for _, want := range []string{`"attrs":{"tenant":"u",`, `"attrs":{"tenant":"t",`, `"attrs":{"tenant":"f",`} {
		if strings.Count(lines, want) != 1 {
			t.Errorf("%s is not there once in\n%s", want, lines)
		}
	}
	if strings.Count(lines, `"tenant_2":"x"`) != 3 || strings.Count(lines, `"tenant":"x"`) != 1 {
		t.Errorf("what senders say:\n%s", lines)
	}
}

// Nothing that rules redact is left in the journal, in the file of rejected
// events or in the log, however the event came to be rejected.
func TestSecretsLeaveNoTrace(t *testing.T) {
	cfg := withEnrichment(t, "rules: [{redact: {key: password}}, {redact: {match: 's3cr3t-\\d+'}}]")
	cfg.ListenTCP = "127.0.0.1:0"
	r := run(t, cfg)
	deep := strings.Repeat(`{"a":`, 100) + `"s3cr3t-1"` + strings.Repeat("}", 100)
	bodies := []string{
		`{"msg":"s3cr3t-2"`, `{"password":"s3cr3t-3","b":` + deep + `}`, `"s3cr3t-4"`, "{\"msg\":\"s3cr3t-5\xff\"}",
		`{"` + strings.Repeat("s3cr3t-6", 200) + `":1}`, `{"s3cr3t-7":{"s3cr3t-8":"\u0073\u0033cr3t-9"}}`, "s3cr3t-10", `{"msg":"x"}{"password":s3cr3t-11}`,
	}
	for _, body := range bodies {
		for _, path := range []string{"/api/logs", "/services/collector/event", "/_bulk", "/loki/api/v1/push", "/v1/logs", "/api/1/store/"} {
			r.do(t, "POST", path, body)
		}
	}
	conn, err := net.Dial("tcp", r.TCPAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	before := r.Stats().Receive.Received
	fmt.Fprint(conn, strings.Join(bodies, "\n")+"\n")
	conn.Close()
	for end := time.Now().Add(20 * time.Second); r.Stats().Receive.Received < before+uint64(len(bodies)) && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if kept := r.Stats().Rejected.Kept; kept == 0 {
		t.Error("no rejected event is kept, so nothing was tried")
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(r.log.String(), "s3cr3t") {
		t.Errorf("in the log:\n%s", r.log)
	}
	withheld := 0
	err = filepath.WalkDir(cfg.Data, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), "s3cr3t") || strings.Contains(string(text), "czNjcjN0") { // and in base64
			t.Errorf("in %s:\n%.2000q", path, text)
		}
		withheld += strings.Count(string(text), `"withheld":true}`)
		return err
	})
	if err != nil || withheld == 0 {
		t.Errorf("%v, %d dead letters are withheld", err, withheld)
	}
}

// Reload swaps all of the enrichment under load, or none of it.
func TestReloadEnrichment(t *testing.T) {
	// Two fields and a redaction that belong together.
	text := func(n int) string {
		return fmt.Sprintf("enrich: {fields: {a: %d, b: %d}}\nrules: [{redact: {key: p, with: '%d'}}]", n, n, n)
	}
	cfg := withEnrichment(t, text(0))
	cfg.ListenTCP = "127.0.0.1:0"
	r := run(t, cfg)
	var stop atomic.Bool
	var load sync.WaitGroup
	defer func() { stop.Store(true); load.Wait() }()
	load.Go(func() {
		for !stop.Load() {
			if code, _, got := r.do(t, "POST", "/api/logs", `[{"p":1},{"p":2}]`); code != 200 {
				t.Errorf("%d %s", code, got)
				return
			}
		}
	})
	tcp, err := net.Dial("tcp", r.TCPAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	for n := 1; n <= 20; n++ {
		next := withEnrichment(t, text(n))
		next.Data, next.ListenTCP = cfg.Data, cfg.ListenTCP
		bad := next
		bad.Rules = withEnrichment(t, "rules: [{redact: {match: 'a*'}}]").Rules
		var list config.Errors
		if err := r.Reload(bad); err == nil || !errors.As(err, &list) || !strings.Contains(err.Error(), "nothing was changed: f.yaml:1:26: rules.redact.match: it matches the empty text") {
			t.Fatalf("Reload = %v", err)
		}
		if err := r.Reload(next); err != nil {
			t.Fatal(err)
		}
		// A connection that was open before gets what is in force.
		fmt.Fprintf(tcp, `{"p":0,"n":%d}`+"\n", n)
		want := fmt.Sprintf(`"attrs":{"a":%d,"b":%d,"p":"%d","n":%d}`, n, n, n, n)
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
			_, _, got := r.do(t, "GET", fmt.Sprintf("/api/query?q=n=%d", n), "")
			if strings.Contains(got, want) {
				break
			}
			if got != "" || time.Now().After(end) {
				t.Fatalf("got %s, want %s", got, want)
			}
		}
	}
	stop.Store(true)
	load.Wait()
	none := testConfig(t)
	none.Data, none.ListenTCP = cfg.Data, cfg.ListenTCP
	if err := r.Reload(none); err != nil {
		t.Fatal(err)
	}
	if _, _, got := r.do(t, "POST", "/api/logs", `{"p":1,"last":1}`); !strings.Contains(got, `"accepted":1`) {
		t.Error(got)
	}
	_, _, lines := r.do(t, "GET", "/api/query?q=", "")
	for line := range strings.Lines(lines) {
		var a, b, p int
		if strings.Contains(line, `"attrs":{"p":1,"last":1}`) {
			continue
		}
		_, attrs, _ := strings.Cut(line, `"attrs":`)
		if n, err := fmt.Sscanf(attrs, `{"a":%d,"b":%d,"p":"%d"`, &a, &b, &p); n != 3 || a != b || a != p {
			t.Fatalf("%v: %s", err, line)
		}
	}
}

// Behind a trusted proxy the client is the one that the proxy names, in the header
// that it is known to write; a reload says anew who is trusted.
func TestClientBehindProxy(t *testing.T) {
	cfg := withEnrichment(t, "enrich: {client: true, networks: {table: {203.0.113.0/24: {site: out}, 127.0.0.0/8: {site: here}}}}")
	cfg.Proxies.Trusted = "127.0.0.0/8 10.0.0.0/8"
	r := run(t, cfg)
	post := func(path, header, value string) {
		t.Helper()
		req, err := http.NewRequest("POST", r.url+path, strings.NewReader(`{"event":"x","message":"x"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(header, value)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 200 {
			t.Error(path, resp.StatusCode)
		}
	}
	post("/api/logs", "X-Forwarded-For", "198.51.100.1, 203.0.113.9, 10.0.0.7")
	post("/services/collector/event", "X-Forwarded-For", "203.0.113.9")
	post("/api/logs", "Forwarded", "for=203.0.113.9")
	cfg.Proxies.Header = "forwarded"
	if err := r.Reload(cfg); err != nil {
		t.Fatal(err)
	}
	post("/api/logs", "Forwarded", `for="[2001:db8::7]:80";proto=https`)
	post("/api/logs", "X-Forwarded-For", "203.0.113.9")
	wrong := cfg
	wrong.Proxies.Trusted = "10.0.0.1/8"
	if err := r.Reload(wrong); err == nil || !strings.Contains(err.Error(), "10.0.0.0/8") {
		t.Error(err)
	}
	cfg.Proxies.Trusted = ""
	if err := r.Reload(cfg); err != nil {
		t.Fatal(err)
	}
	post("/api/logs", "Forwarded", "for=203.0.113.9")
	_, _, lines := r.do(t, "GET", "/api/query", "")
	var got []string
	for line := range strings.Lines(lines) {
		_, client, _ := strings.Cut(line, `"client_ip":"`)
		client, rest, _ := strings.Cut(client, `"`)
		for _, site := range []string{"out", "here"} {
			if strings.HasPrefix(rest, `,"site":"`+site) {
				client += " " + site
			}
		}
		got = append(got, client)
	}
	if want := []string{"203.0.113.9 out", "203.0.113.9 out", "127.0.0.1 here", "2001:db8::7", "127.0.0.1 here", "127.0.0.1 here"}; !slices.Equal(got, want) {
		t.Errorf("clients are %q, want %q; the lines are\n%s", got, want, lines)
	}
}
