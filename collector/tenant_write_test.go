package collector

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	fluentd "github.com/fluent/fluent-logger-golang/fluent"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/rollway/rollway/collector/access"
	"github.com/rollway/rollway/collector/admission"
	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/decodetest"
	"github.com/rollway/rollway/collector/receiver/forward"
	"github.com/rollway/rollway/collector/receiver/gelf"
	"github.com/rollway/rollway/collector/receiver/lumberjack"
	"github.com/rollway/rollway/collector/receiver/syslog"
	"github.com/rollway/rollway/collector/ulid"
)

// Secrets of tenant a, of tenant b who only reads, of nobody's tenant, and of who reads all.
const (
	secretOfA    = "a-0123456789abcdef"
	secretOfB    = "b-0123456789abcdef"
	secretOfNone = "n-0123456789abcdef"
	secretOfAll  = "x-0123456789abcdef"
)

// careless are rules by which a sender's value could become another tenant's, if rules
// could write the attribute.
const careless = `
enrich: {fields: {env: prod}, defaults: {site: here}}
rules:
- redact: {match: 'ZZ', with: ''}
- rename: {from: tenant_2, to: was}
- rename: {from: tenant, to: mine}
- remove: {key: ['tenant', '*.tenant']}
- redact: {key: 'ten*', with: b}
`

// twoTenants is a configuration with tenants, and addresses of streams: each protocol
// has one of tenant a and one of none.
func twoTenants(t *testing.T, cfg config.Config) config.Config {
	cfg.Access.Tokens = filepath.Join(t.TempDir(), "tokens.yaml")
	writeFile(t, cfg.Access.Tokens, fmt.Sprintf(`
- {name: a, secret: %q, tenant: a, may: [write, read]}
- {name: b, secret: %q, tenant: b, may: [write, read]}
- {name: n, secret: %q}
- {name: all, secret: %q, may: read}
`, secretOfA, secretOfB, secretOfNone, secretOfAll))
	cfg.ListenTCP = "127.0.0.1:0?tenant=a 127.0.0.1:0"
	cfg.ListenSyslog = "tcp://127.0.0.1:0?tenant=a tcp://127.0.0.1:0 udp://127.0.0.1:0?tenant=a udp://127.0.0.1:0"
	cfg.ListenForward = "tcp://127.0.0.1:0?tenant=a tcp://127.0.0.1:0"
	return cfg
}

// tenantsIn returns the texts of all attributes of a line that are named tenant, as any
// reader of JSON would find them.
func tenantsIn(t testing.TB, line []byte) (found []string) {
	t.Helper()
	var l struct{ Attrs json.RawMessage }
	if err := json.Unmarshal(line, &l); err != nil {
		t.Fatalf("%v in %q", err, line)
	}
	if l.Attrs == nil {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(l.Attrs))
	dec.Token()
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		var v json.RawMessage
		if err := dec.Decode(&v); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		if name == normalize.Tenant {
			found = append(found, string(v))
		}
	}
	return found
}

// A member of JSON, an attribute of OTLP as JSON, and what a forger makes of them.
var (
	jsonMember = regexp.MustCompile(`"((?:[^"\\]|\\.){1,60})"(\s*):(\s*)("(?:[^"\\]|\\.)*"|-?[0-9.]+)`)
	otlpMember = regexp.MustCompile(`"key":"[^"]*","value":\{[^{}]*\}`)
	forgeries  = []string{
		`"tenant":"b"`, `"\u0074en\u0061nt":"b"`, `"tenant":["b"]`, `"tenZZant":"b"`, `"attrs":{"tenant":"b"}`, `"tenant":"b","tenant":"b","tenant_2":"b"`,
	}
)

// forged returns a body of JSON with each of its members in turn replaced by one that says
// that the event is b's.
func forged(body string) (list []string) {
	for n, at := range append(jsonMember.FindAllStringIndex(body, 40), otlpMember.FindAllStringIndex(body, 40)...) {
		forgery := forgeries[n%len(forgeries)]
		if strings.HasPrefix(body[at[0]:], `"key":`) {
			forgery = `"key":"tenant","value":{"stringValue":"b"}`
		}
		list = append(list, body[:at[0]]+forgery+body[at[1]:])
	}
	return list
}

// forgedOTLP is a body of protocol buffers whose attributes all say that it is b's.
func forgedOTLP(t *testing.T, body []byte) []byte {
	t.Helper()
	logs, err := (&plog.ProtoUnmarshaler{}).UnmarshalLogs(body)
	if err != nil {
		t.Fatal(err)
	}
	forge := func(m pcommon.Map) {
		m.PutStr("tenant", "b")
		m.PutEmptyMap("attrs").PutStr("tenant", "b")
	}
	for _, r := range logs.ResourceLogs().All() {
		forge(r.Resource().Attributes())
		for _, s := range r.ScopeLogs().All() {
			forge(s.Scope().Attributes())
			for _, l := range s.LogRecords().All() {
				forge(l.Attributes())
				forge(l.Body().SetEmptyMap())
			}
		}
	}
	body, err = (&plog.ProtoMarshaler{}).MarshalLogs(logs)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// forgedRequests returns what real clients once sent to each receiver, with forgeries.
func forgedRequests(t *testing.T) (list []*http.Request) {
	t.Helper()
	for _, name := range []string{"elastic", "loki", "otlp", "sentry", "splunk", "receivertest"} {
		files, err := filepath.Glob(filepath.Join("receiver", name, "testdata", "*.request"))
		before := len(list)
		if err != nil || len(files) < 3 {
			t.Fatalf("%d files of %s, %v", len(files), name, err)
		}
		for _, file := range files {
			for _, req := range decodetest.Requests(t, file) {
				body, err := io.ReadAll(req.Body)
				if err != nil {
					t.Fatal(err)
				}
				if req.Header.Get("Content-Encoding") == "gzip" {
					z, err := gzip.NewReader(bytes.NewReader(body))
					if err != nil {
						t.Fatal(err)
					}
					if body, err = io.ReadAll(z); err != nil {
						t.Fatal(err)
					}
					req.Header.Del("Content-Encoding")
				}
				var bodies []string
				switch kind := req.Header.Get("Content-Type"); {
				case strings.HasPrefix(kind, "application/grpc"), req.Header.Get("Content-Encoding") != "":
				case kind == "application/x-protobuf" && name == "otlp":
					bodies = []string{string(forgedOTLP(t, body))}
				case kind != "application/x-protobuf":
					bodies = forged(string(body))
				}
				for _, text := range bodies {
					again := req.Clone(t.Context())
					again.Body, again.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
					list = append(list, again)
				}
			}
		}
		if len(list) == before {
			t.Fatalf("no request of %s", name)
		}
	}
	// By roads that no client was recorded on.
	for path, body := range map[string]string{
		"/api/logs":                        "{\"tenant\":\"b\"}\n{\"fields\":{\"tenant\":\"b\"},\"context\":{\"tenant\":\"b\"},\"metadata\":{\"tenant\":\"b\"}}\n[{\"TENANT\":\"b\",\"attrs.tenant\":\"b\",\"\":{\"tenant\":\"b\"}}]",
		"/services/collector/raw?tenant=b": "tenant=b",
		"/services/collector/raw?source=b&sourcetype=tenant&host=b&index=b": "{\"tenant\":\"b\"}",
		"/tenant/_bulk":              "{\"index\":{\"_index\":\"b\",\"tenant\":\"b\"}}\n{\"attrs\":{\"tenant\":\"b\"},\"attrs.tenant\":\"b\",\"labels\":{\"tenant\":\"b\"}}\n",
		"/services/collector/event":  `{"event":{"tenant":"b"},"fields":{"tenant":"b"},"tenant":"b","source":"b"}{"event":"{\"tenant\":\"b\"}"}`,
		"/api/tenant/store/":         `{"tags":[["tenant","b"]],"extra":{"tenant":"b"},"contexts":{"tenant":"b"},"user":{"tenant":"b"},"tenant":"b","modules":{"tenant":"b"}}`,
		"/api/b/envelope/":           "{}\n{\"type\":\"log\"}\n{\"items\":[{\"body\":\"m\",\"tenant\":\"b\",\"attributes\":{\"tenant\":{\"value\":\"b\",\"type\":\"string\"}}}]}\n",
		"/loki/api/v1/push":          `{"streams":[{"stream":{"tenant":"b"},"values":[["1","{\"tenant\":\"b\"}",{"tenant":"b"}],["2","m",{"tenant":"b","tenant_2":"b"}]]}]}`,
		"/api/prom/push?tenant=b":    `{"streams":[{"labels":"{tenant=\"b\"}","entries":[{"ts":"2026-05-28T12:40:00Z","line":"m"}]}]}`,
		"/v1/logs":                   `{"resourceLogs":[{"resource":{"attributes":[{"key":"tenant","value":{"stringValue":"b"}}]},"scopeLogs":[{"scope":{"name":"tenant","attributes":[{"key":"tenant","value":{"stringValue":"b"}}]},"logRecords":[{"eventName":"tenant","body":{"kvlistValue":{"values":[{"key":"tenant","value":{"stringValue":"b"}},{"key":"attrs","value":{"kvlistValue":{"values":[{"key":"tenant","value":{"stringValue":"b"}}]}}}]}},"attributes":[{"key":"tenant","value":{"arrayValue":{"values":[{"stringValue":"b"}]}}}]}]}]}]}`,
		"/services/collector/event?": `{"event":{"message":{"tenant":"b"}},"fields":{"ten\u0061nt":"b"}}`,
	} {
		list = append(list, httptest.NewRequest("POST", path, strings.NewReader(body)))
	}
	many := strings.Repeat(`"x":0,`, 1022) // with tenant and env the most that an event may have
	for _, body := range []string{`{` + many[:len(many)-1] + `}`, `{` + many + `"tenant":"b"}`, `{"tenant":"b",` + many[:len(many)-1] + `}`} {
		list = append(list, httptest.NewRequest("POST", "/api/logs", strings.NewReader(body)))
	}
	return list
}

// forgedMessages are messages of syslog, of several forms.
var forgedMessages = []string{
	`<14>1 2026-05-28T12:40:00Z b tenant b tenant [tenant@32473 tenant="b"][tenant b="b"][attrs tenant="b"] m`,
	`<14>1 2026-05-28T12:40:00Z - - - - [meta tenant="b"] @cee: {"tenant":"b","attrs":{"tenant":"b"}}`,
	`<14>1 2026-05-28T12:40:00Z - - - - - {"tenant":"b"}`,
	`<14>May 28 12:40:00 b tenant[7]: {"\u0074enant":"b"}`,
	`<14>@cee: {"fields":{"tenant":"b"}}`,
	`<14>tenant: b`,
}

// Whatever any sender writes, by any receiver, an event has the tenant of
// the token or of the address, or none: what a sender calls tenant is another attribute.
func TestTenantIsOurs(t *testing.T) {
	for name, rules := range map[string]string{"no rules": "", "careless rules": careless} {
		t.Run(name, func(t *testing.T) {
			cfg := twoTenants(t, withEnrichment(t, rules))
			cfg.Limits.MaxPast, cfg.Limits.MaxFuture = 0, 0
			r := run(t, cfg)
			requests := forgedRequests(t)
			for _, secret := range []string{secretOfA, secretOfNone} {
				for _, req := range requests {
					body, _ := io.ReadAll(req.Body)
					req.Body = io.NopCloser(bytes.NewReader(body))
					again := req.Clone(t.Context())
					again.URL.Scheme, again.URL.Host, again.RequestURI = "http", r.Addr().String(), ""
					again.Body, again.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
					again.Header.Del("X-Sentry-Auth")
					again.Header.Set("Authorization", "Bearer "+secret)
					resp, err := http.DefaultTransport.RoundTrip(again)
					if err != nil {
						t.Fatal(err)
					}
					answer, _ := io.ReadAll(resp.Body)
					resp.Body.Close()
					if resp.StatusCode == 401 || resp.StatusCode >= 500 {
						t.Fatalf("%s %d: %s", req.URL, resp.StatusCode, answer)
					}
				}
			}
			if n := r.Stats().Receive.Stored; n < 500 {
				t.Fatalf("%d forged events are stored", n)
			}
			r.forgeByStreams(t)
			_, _, lines := r.ask(t, http.DefaultClient, "GET", "/api/query?last=100000", secretOfAll, "")
			count := make(map[string]int)
			for line := range strings.Lines(lines) {
				got := strings.Join(tenantsIn(t, []byte(line)), " and ")
				if count[got]++; got != "" && got != `"a"` {
					t.Errorf("a line of tenant %s: %s", got, line)
				}
			}
			if count[`"a"`] != count[""] || uint64(count[""]*2) != r.Stats().Receive.Stored {
				t.Errorf("lines by tenant: %v of %d", count, r.Stats().Receive.Stored)
			}
			if _, _, got := r.ask(t, http.DefaultClient, "GET", "/api/query?last=100000", secretOfB, ""); got != "" {
				t.Errorf("b finds %s", got)
			}
			_, _, got := r.ask(t, http.DefaultClient, "GET", "/api/query?last=100000", secretOfA, "")
			if n := strings.Count(got, "\n"); n != count[`"a"`] {
				t.Errorf("a finds %d of its %d lines", n, count[`"a"`])
			}
		})
	}
}

// forgeByStreams sends forgeries to each address that is not of HTTP.
func (r *running) forgeByStreams(t *testing.T) {
	t.Helper()
	send := func(addr net.Addr, text string) {
		conn := dialListener(t, addr)
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
		if c, is := conn.(*net.TCPConn); is {
			c.CloseWrite()
			io.Copy(io.Discard, c)
		}
	}
	want := r.Stats().Receive.Stored
	for _, addr := range r.addrs("listen_tcp") {
		send(addr, strings.Join(forged(`{"msg":"m","a":"b","b":{"c":"d"},"attrs":{"e":"f"},"g":"h","i":1}`), "\n"))
		want += 6
	}
	for _, addr := range r.SyslogAddrs() {
		if addr.Network() == "udp" {
			for _, m := range forgedMessages {
				send(addr, m)
			}
		} else {
			send(addr, strings.Join(forgedMessages, "\n")+"\n")
		}
		want += uint64(len(forgedMessages))
	}
	for _, addr := range r.ForwardAddrs() {
		port := addr.(*net.TCPAddr).Port
		for _, o := range []fluentd.Config{{RequestAck: true}, {RequestAck: true, SubSecondPrecision: true, TagPrefix: "tenant"}} {
			o.FluentHost, o.FluentPort = "127.0.0.1", port
			l, err := fluentd.New(o)
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Post("tenant", map[string]any{"tenant": "b", "attrs": map[string]any{"tenant": "b"}, "log": `{"tenant":"b"}`}); err != nil {
				t.Error(err)
			}
			l.Close()
			want++
		}
		// Several entries of a tag, with metadata of the entry as Fluent Bit sends it.
		send(addr, "\x92\xa6tenant\x91\x92\x92\x01\x81\xa6tenant\xa1b\x82\xa6tenant\xa1b\xa6fields\x81\xa6tenant\xa1b")
		want++
	}
	for end := time.Now().Add(time.Minute); r.Stats().Receive.Stored < want; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d events are stored, want %d; %v", r.Stats().Receive.Stored, want, r.Stats().Receive.Rejected)
		}
	}
}

// Tokens that come by Reload count at once, for connections that are open too; without
// tokens an event says itself whose it is.
func TestTenantSinceReload(t *testing.T) {
	cfg := testConfig(t)
	cfg.ListenTCP = "127.0.0.1:0"
	r := run(t, cfg)
	conn := dialListener(t, r.TCPAddr())
	stored := uint64(0)
	send := func() {
		t.Helper()
		io.WriteString(conn, "{\"tenant\":\"b\"}\n")
		stored++
		for end := time.Now().Add(time.Minute); r.Stats().Receive.Stored < stored; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("the line is not stored within a minute")
			}
		}
	}
	send()
	cfg.Access.Tokens = twoTenants(t, cfg).Access.Tokens
	if err := r.Reload(cfg); err != nil {
		t.Fatal(err)
	}
	send()
	_, _, got := r.ask(t, http.DefaultClient, "GET", "/api/query", secretOfAll, "")
	if !strings.Contains(got, `"attrs":{"tenant":"b"}`) || !strings.Contains(got, `"attrs":{"tenant_2":"b"}`) {
		t.Errorf("%s", got)
	}
}

// A configuration that would write tenants is refused, once there are tokens.
func TestRulesWriteNoTenant(t *testing.T) {
	for text, anyhow := range map[string]bool{
		"rules: [{rename: {from: x, to: tenant}}]":       false,
		"rules: [{rename: {from: x, to: attrs.tenant}}]": false,
		"enrich: {defaults: {tenant: b}}":                false,
		"enrich: {fields: {tenant: b}}":                  true,
	} {
		cfg := withEnrichment(t, text)
		if err := CheckFiles(cfg); (err != nil) != anyhow {
			t.Errorf("%s without tokens: %v", text, err)
		}
		if err := CheckFiles(twoTenants(t, cfg)); err == nil || !strings.Contains(err.Error(), "what tokens and addresses say") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// underPolicy is a Backend under a policy of a configuration.
type underPolicy struct {
	keeping
	policy *receiver.Policy
}

func (b underPolicy) Policy() *receiver.Policy { return b.policy }

// FuzzTenant sends anything to any receiver, as a sender of tenant a or of none: no line has
// a tenant that is not the collector's.
func FuzzTenant(f *testing.F) {
	load := func(rules string) *state {
		c, err := config.Parse("f.yaml", []byte(rules))
		if err != nil {
			f.Fatal(err)
		}
		cfg := config.Default()
		cfg.Enrich, cfg.Rules = c.Enrich, c.Rules
		cfg.Access.Tokens = filepath.Join(f.TempDir(), "tokens.yaml")
		writeFile(f, cfg.Access.Tokens, fmt.Sprintf("- {name: a, secret: %s, tenant: a}\n- {name: n, secret: %s}\n", secretOfA, secretOfNone))
		s, err := loadState(cfg, new(ulid.Source))
		if err != nil {
			f.Fatal(err)
		}
		return s
	}
	shares := admission.New()
	states := []*state{load(""), load(careless)}
	for _, s := range states {
		for _, token := range s.tokens.Tokens() {
			token.SetPrincipal(shares.Named(token.Scope(), 1))
		}
	}
	paths := []string{forward.Protocol{}.Name(), syslog.Protocol{}.Name(), gelf.Protocol{}.Name(), "/api/logs"}
	for _, r := range rejectedRequests {
		paths = append(paths, r.path)
	}
	paths = append(paths, lumberjack.Protocol{}.Name())
	for i, path := range paths {
		for j, m := range forgedMessages {
			f.Add(byte(i), byte(j), []byte(m))
		}
		for _, r := range rejectedRequests {
			if r.path == path {
				for j, body := range forged(strings.ReplaceAll(r.body, longText, "m")) {
					f.Add(byte(i), byte(j), []byte(body))
				}
			}
		}
	}
	for j := range 4 {
		f.Add(byte(0), byte(j), []byte("\x92\xa6tenant\x91\x92\x92\x01\x81\xa6tenant\xa1b\x82\xa6tenant\xa1b\xa6fields\x81\xa6tenant\xa1b"))
	}
	f.Fuzz(func(t *testing.T, which, how byte, body []byte) {
		s, path, secret, want := states[how&1], paths[int(which)%len(paths)], secretOfNone, ""
		from := (*access.Token)(nil)
		if how&2 != 0 {
			secret, want, from = secretOfA, `"a"`, access.OfTenant("a")
		}
		check := func(b *normalize.Batch) {
			for line := range bytes.Lines(b.Lines) {
				if got := strings.Join(tenantsIn(t, line), " and "); got != want {
					t.Fatalf("%q to %s becomes %q, of tenant %q", body, path, line, got)
				}
			}
		}
		if !strings.HasPrefix(path, "/") {
			c := &receiver.Chunk{Data: body, Received: time.Unix(1779972000, 0), Norm: normalize.New(normalize.Limits{}), Batch: new(normalize.Batch)}
			c.Norm.SetEnricher(s.policy.Enricher, c.Peer.Addr())
			c.Norm.SetExtras(s.policy.Extras)
			if from != nil {
				c.Norm.SetExtras(from.Extras())
			}
			switch path {
			case paths[1]:
				syslog.Protocol{}.DecodePacket(c)
			case paths[2]:
				gelf.Protocol{}.DecodePacket(c)
			case lumberjack.Protocol{}.Name():
				c.Data = append(binary.BigEndian.AppendUint32([]byte("2J\x00\x00\x00\x01"), uint32(len(body))), body...)
				lumberjack.Protocol{}.Open().Decode(c) // all of it is one event
			default:
				forward.Protocol{}.Open().Decode(c) // an error ends it, after what it has taken
			}
			check(c.Batch)
			return
		}
		keep := keeping{check, func(receiver.Origin, *normalize.Batch) {}}
		r := receiver.New(underPolicy{keep, &s.policy}, receiver.Options{Admission: shares})
		kinds := []string{"application/json", "application/x-protobuf"}
		req := httptest.NewRequest("POST", path, bytes.NewReader(body))
		req.Header.Set("Content-Type", kinds[how>>2&1])
		req.Header.Set("Authorization", "Bearer "+secret)
		c := &Collector{receiver: r}
		mux := http.NewServeMux()
		mux.Handle("/api/logs", r)
		c.routeReceivers(func(path string, h http.Handler, _ ...string) { mux.Handle(path, h) })
		mux.ServeHTTP(httptest.NewRecorder(), req)
	})
}
