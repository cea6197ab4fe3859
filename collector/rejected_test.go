package collector

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/collector/deadletter"
	"github.com/rollway/rollway/collector/ledger"
	"github.com/rollway/rollway/internal/testkit"
)

// Secrets of tenants who may read and write, of one who may only read, and of one without a
// tenant.
const (
	secretA, secretB      = "aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb"
	secretARead, secretNo = "rrrrrrrrrrrrrrrr", "nnnnnnnnnnnnnnnn"
)

func withTenants(t *testing.T) config.Config {
	t.Helper()
	cfg := testConfig(t)
	cfg.Access.Tokens = filepath.Join(t.TempDir(), "tokens.yaml")
	testkit.OK(t, os.WriteFile(cfg.Access.Tokens, fmt.Appendf(nil, `
- {name: a, secret: %s, tenant: a, may: [write, read]}
- {name: b, secret: %s, tenant: b, may: [write, read]}
- {name: r, secret: %s, tenant: a, may: read}
- {name: no, secret: %s, may: [write, read]}
`, secretA, secretB, secretARead, secretNo), 0o600))
	return cfg
}

func (r *running) rejectedOf(t *testing.T, secret, query string) (list []deadletter.Entry) {
	t.Helper()
	for r.Stats().Rejected.Pending > 0 {
		time.Sleep(time.Millisecond)
	}
	code, h, body := r.ask(t, http.DefaultClient, "GET", "/api/rejected?"+query, secret, "")
	if code != 200 || h.Get("Content-Type") != "application/x-ndjson" || h.Get("Cache-Control") != "no-store" {
		t.Fatalf("%s: %d %v %s", query, code, h, body)
	}
	for line := range strings.Lines(body) {
		var e deadletter.Entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		list = append(list, e)
	}
	return list
}

// A tenant that sends 1,000 requests of 54 bytes, each with 8,192 events that are rejected,
// makes one dead letter of them, and evicts nothing of another's; nor does it with as many
// that all differ. The account of each event is exact, and the ledger agrees.
func TestRejectedOfOthersStay(t *testing.T) {
	cfg := withTenants(t)
	cfg.Rejected.KeepSize = config.MiB
	r := run(t, cfg)
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	testkit.OK(t, err)
	z.Write([]byte(strings.Repeat("1\n", 8192)))
	testkit.OK(t, z.Close())
	if code, _, _ := r.ask(t, http.DefaultClient, "POST", "/api/logs", secretB, "not JSON"); code != 400 {
		t.Fatal(code)
	}
	post := func(body string) {
		t.Helper()
		if code, _, answer := r.ask(t, http.DefaultClient, "POST", "/api/logs", secretA, body); code != 400 {
			t.Errorf("%d %s", code, answer)
		}
	}
	var senders sync.WaitGroup
	for range 4 {
		senders.Go(func() {
			for range 250 {
				post(packed.String())
			}
		})
	}
	senders.Wait()
	list := r.rejectedOf(t, secretA, "")
	if len(list) != 1 || list[0].Count != 8_192_000 || list[0].Event != "1" || list[0].Last.Before(list[0].Time) {
		t.Errorf("%+v", list)
	}
	var other strings.Builder
	for i := range 200 {
		other.Reset()
		for j := range 100 {
			fmt.Fprintf(&other, "%d%02d\n", i+1, j)
		}
		post(other.String())
	}
	if list := r.rejectedOf(t, secretB, ""); len(list) != 1 || list[0].Event != "not JSON" || list[0].Tenant != "b" {
		t.Errorf("%+v", list)
	}
	s := r.Stats()
	if d := s.Rejected; d.Rejected != s.Receive.RejectedTotal() || d.Rejected != d.Kept+d.Dropped[deadletter.DroppedQuota]+d.Dropped[deadletter.DroppedQueue] || d.Dropped[deadletter.DroppedQuota] == 0 || d.Bytes > 1<<20 {
		t.Errorf("%+v", s.Rejected)
	}
	if l := r.Ledger(); !ledger.Agree(l.Counts()) || !slices.ContainsFunc(l.Counts(), func(c ledger.Check) bool {
		return strings.HasPrefix(c.What, "dead letters") && c.Counted == 8_192_000+20_001
	}) {
		t.Errorf("%+v", l.Counts())
	}
}

// Without tokens, and with one that has no tenant, the sender has a share of its own.
func TestRejectedBySender(t *testing.T) {
	r := run(t, withTenants(t))
	r.ask(t, http.DefaultClient, "POST", "/api/logs", secretNo, "1")
	r.ask(t, http.DefaultClient, "POST", "/api/logs", secretA, "2")
	if list := r.rejectedOf(t, secretNo, "last=9"); len(list) != 2 || list[0].Client != ".no" || list[0].Tenant != "" || list[1].Client != "" {
		t.Errorf("%+v", list)
	}
	cfg := testConfig(t)
	cfg.ListenTCP, cfg.ListenSyslog, cfg.Proxies.Trusted = "127.0.0.1:0", "udp://127.0.0.1:0", "127.0.0.1"
	r = run(t, cfg)
	for _, from := range []string{"192.0.2.7", "2001:db8:1:2:3::4", "2001:db8:1:2:5::6", "::ffff:192.0.2.7"} {
		req, err := http.NewRequest("POST", r.url+"/api/logs", strings.NewReader("1"))
		testkit.OK(t, err)
		req.Header.Set("X-Forwarded-For", from)
		resp, err := http.DefaultClient.Do(req)
		testkit.OK(t, err)
		resp.Body.Close()
	}
	fmt.Fprintln(dialListener(t, r.TCPAddr()), "1")
	fmt.Fprint(dialListener(t, r.SyslogAddrs()[0]), "nothing")
	got := map[string]uint64{}
	for end := time.Now().Add(time.Minute); len(got) < 3 && time.Now().Before(end); time.Sleep(time.Millisecond) {
		clear(got)
		for _, e := range r.rejectedOf(t, "", "reason=not_object") {
			got[e.Receiver+" "+e.Client] += e.Count
		}
	}
	if fmt.Sprint(got) != "map[/api/logs 192.0.2.7:2 /api/logs 2001:db8:1:2::/64:2 lines of JSON 127.0.0.1:1]" {
		t.Error(got)
	}
}

// GET /api/rejected finds by each filter, for who may read; a token of a tenant gets its own
// alone. POST marks, for who may write, too.
func TestRejectedAPI(t *testing.T) {
	r := run(t, withTenants(t))
	for _, post := range []struct{ secret, path, body string }{
		{secretA, "/api/logs", "10\nnot JSON\n"}, {secretB, "/api/logs", "20"}, {secretNo, "/api/logs", "30\n30\n"},
		{secretA, "/_bulk", "{\"delete\":{\"_id\":\"4\"}}\n{\"create\":{}}\n{\"message\":\"fine\"}\n"},
	} {
		r.ask(t, http.DefaultClient, "POST", post.path, post.secret, post.body)
		r.rejectedOf(t, secretNo, "") // in this order
	}
	for _, tt := range []struct{ secret, query, want string }{
		{secretNo, "last=100", "10 not JSON 20 30 {\"delete\":{\"_id\":\"4\"}}"}, {secretNo, "last=2", "30 {\"delete\":{\"_id\":\"4\"}}"}, {secretNo, "limit=1", "10"},
		{secretNo, "tenant=b", "20"}, {secretNo, "tenant=", "30"}, {secretA, "reason=syntax", "not JSON"}, {secretB, "reason=syntax", ""},
		{secretARead, "receiver=/_bulk", "{\"delete\":{\"_id\":\"4\"}}"}, {secretB, "last=9", "20"}, {secretB, "tenant=b", "20"}, {secretNo, "text=JSON&last=1", "not JSON"},
		{secretNo, "since=1h&until=0s&text=20", "20"}, {secretNo, "until=1h", ""}, {secretNo, "since=2999-01-01", ""}, {secretNo, "id=nonsense", ""},
	} {
		var got []string
		for _, e := range r.rejectedOf(t, tt.secret, tt.query) {
			got = append(got, e.Event)
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: %q, want %s", tt.query, got, tt.want)
		}
	}
	all := r.rejectedOf(t, secretNo, "last=9")
	mark := fmt.Sprintf(`{"replayed":[%q,%q]}`, all[0].ID, all[2].ID) // of a and b
	for _, tt := range []struct {
		method, path, secret, body string
		code                       int
		want                       string
	}{
		{"GET", "?tenant=a", secretB, "", 403, "another tenant"}, {"GET", "", "", "", 401, "token"}, {"GET", "?nonsense=1", secretA, "", 400, "unknown parameter"},
		{"GET", "?last=0", secretA, "", 400, "from 1"}, {"GET", "?last=1&limit=1", secretA, "", 400, "one of them"}, {"GET", "?since=x", secretA, "", 400, "since"},
		{"GET", "?last=1000000", secretA, "", 400, "above the limit"}, {"PUT", "", secretA, "", 405, "GET"}, {"POST", "", secretARead, mark, 403, "may not write"},
		{"POST", "", secretA, "{}", 400, "expected"}, {"POST", "", secretA, strings.Repeat(" ", 1<<20) + mark, 400, "expected"},
		{"POST", "", secretA, mark, 200, `{"marked":1}`}, {"POST", "", secretNo, mark, 200, `{"marked":2}`},
	} {
		if code, _, body := r.ask(t, http.DefaultClient, tt.method, "/api/rejected"+tt.path, tt.secret, tt.body); code != tt.code || !strings.Contains(body, tt.want) {
			t.Errorf("%s %s: %d %s, want %d and %s", tt.method, tt.path, code, body, tt.code, tt.want)
		}
	}
	marked := 0
	for _, e := range r.rejectedOf(t, secretNo, "") {
		if e.Replayed {
			marked++
		}
	}
	if marked != 2 {
		t.Errorf("%d are marked", marked)
	}
	cfg := testConfig(t)
	cfg.Rejected.KeepSize = 0
	if code, _, body := run(t, cfg).do(t, "GET", "/api/rejected", ""); code != 404 || !strings.Contains(body, "rejected.keep_size") {
		t.Error(code, body)
	}
}

// A file or a link instead of the folder is not written to: the start says what is
// there.
func TestRejectedFolder(t *testing.T) {
	for _, make := range []func(path string) error{
		func(path string) error { return os.WriteFile(path, nil, 0o600) },
		func(path string) error { return os.Symlink(t.TempDir(), path) },
	} {
		cfg := testConfig(t)
		testkit.OK(t, os.MkdirAll(cfg.Data, 0o750))
		testkit.OK(t, make(RejectedFolder(cfg.Data)))
		if _, err := New(cfg, nil); err == nil || !strings.Contains(err.Error(), "no folder") {
			t.Error(err)
		}
	}
}
