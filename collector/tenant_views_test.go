package collector

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/ledger"
)

// tally is what a tenant has sent, as the test counts it.
type tally struct{ stored, rejected, duplicate, dropped, ignored uint64 }

func (n *tally) events() ledger.Events {
	return ledger.Events{
		Received: n.stored + n.rejected + n.duplicate + n.dropped + n.ignored,
		Outcomes: map[string]uint64{ledger.Stored: n.stored, ledger.Rejected: n.rejected, ledger.Duplicate: n.duplicate, ledger.Dropped: n.dropped, ledger.Failed: 0, ledger.Ignored: n.ignored},
	}
}

// workload sends the same random events each time, over all receivers, as a tenant: address
// is where its addresses are among the listeners of each kind.
func (r *running) workload(t *testing.T, tenant, secret string, address, steps int) (n tally) {
	t.Helper()
	post := func(path, kind, key, body string) {
		req, err := http.NewRequest("POST", r.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+secret)
		req.Header.Set("Content-Type", kind)
		if key != "" {
			req.Header.Set("Idempotency-Key", key)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Error(err)
			return
		}
		answer, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode >= 500 || resp.StatusCode == 401 {
			t.Errorf("%s: %d %s", path, resp.StatusCode, answer)
		}
	}
	stream := func(addr net.Addr, text string) {
		conn, err := net.Dial(addr.Network(), addr.String())
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		io.WriteString(conn, text)
		if c, is := conn.(*net.TCPConn); is {
			c.CloseWrite()
			io.Copy(io.Discard, c) // until it is stored
			return
		}
		for end := time.Now().Add(time.Minute); r.Stats().Receive.Tenants[tenant].Stored != n.stored && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
	}
	rng := rand.New(rand.NewPCG(1, uint64(address)))
	for i := range steps {
		text := words(tenant, rng.IntN(10))
		switch kind := rng.IntN(len(canaryReceivers) + 6); kind - len(canaryReceivers) {
		case 0:
			n.stored, n.rejected = n.stored+2, n.rejected+1
			stream(r.addrs("listen_tcp")[address], fmt.Sprintf("{\"msg\":%q}\nbroken\n{\"tenant\":\"of %s\"}\n", text, tenant))
		case 1:
			n.stored, n.rejected = n.stored+1, n.rejected+1
			stream(r.addrs("listen_tcp")[address], fmt.Sprintf("{\"msg\":%q}\n{\"torn\":", text))
		case 2:
			n.stored++
			stream(r.SyslogAddrs()[2*address], "<14>1 2026-05-28T12:40:00Z h app - - - "+text+"\n")
		case 3:
			n.stored++
			stream(r.SyslogAddrs()[2*address+1], "<14>1 2026-05-28T12:40:00Z h app - - - "+text)
		case 4:
			n.stored++
			stream(r.ForwardAddrs()[address], "\x93\xa3tag\xce\x6a\x18\x39\xa0\x81\xa3msg\xda"+string([]byte{byte(len(text) >> 8), byte(len(text))})+text)
		case 5: // the keys of both tenants are the same
			n.stored, n.duplicate, n.dropped, n.rejected = n.stored+1, n.duplicate+1, n.dropped+2, n.rejected+1
			body := fmt.Sprintf("{\"msg\":%q}\n{\"path\":\"/healthz\"}\n", text)
			post("/api/logs", "", fmt.Sprint(i), body)
			post("/api/logs", "", fmt.Sprint(i), body)
			post("/api/logs", "", "", "7")
		default:
			c := canaryReceivers[kind]
			n.stored, n.rejected = n.stored+uint64(c.stored), n.rejected+uint64(c.rejected)
			if strings.HasSuffix(c.path, "/envelope/") { // it has a session
				n.ignored++
			}
			post(c.path, c.contentType, "", string(c.body(text)))
		}
	}
	return n
}

// Offsets and times differ, whatever a tenant asks for, and with times the length.
var offsetsAndTimes = regexp.MustCompile(`"time":"[^"]*"|Rollway-Next: \d+|Rollway-Journal: [0-9a-f]{32}|id: \d+|"seconds":\{[^}]*\}|"offset":\d+|found \d+, at which|"(?:began|since|taken|received|first|last|error_time|from|until)":"[^"]*"|"id":"[0-9A-Z]{26}"|Date: .*|Content-Length: .*`)

// view is all that a request is answered: with the status, headers and trailers. A tail is
// read until it has sent so many lines.
func (r *running) view(t *testing.T, secret, path string, lines int) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", r.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+secret)
	req.Header.Set("TE", "trailers")
	req.Header.Set("Accept-Encoding", "identity")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var b strings.Builder
	header := func(h http.Header) {
		for _, name := range slices.Sorted(maps.Keys(h)) {
			fmt.Fprintf(&b, "%s: %s\n", name, strings.Join(h[name], ", "))
		}
	}
	fmt.Fprintln(&b, resp.Status)
	header(resp.Header)
	if strings.HasPrefix(path, "/api/tail") {
		in := bufio.NewReader(resp.Body)
		for n := -1; n < lines; {
			line, err := in.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			b.WriteString(line)
			if line == "\n" { // the end of an event, the first one of the comment
				n++
			}
		}
	} else if _, err := io.Copy(&b, resp.Body); err != nil {
		t.Fatal(err)
	}
	header(resp.Trailer)
	return offsetsAndTimes.ReplaceAllString(b.String(), "MASKED")
}

// Two tenants send random events over all receivers. Each reads its own lines and its own
// account, to the line; their accounts are the whole one; and whatever b asks for, it is
// answered the same bytes as if a had sent nothing, except for offsets, times and random ids.
func TestTenantsSeeTheirOwn(t *testing.T) {
	const steps, ofA, after = 60, 20_000, 3000
	views := func(withA bool) (all map[string]string) {
		cfg := twoTenants(t, withEnrichment(t, "rules: [{name: health, drop: {where: 'path=/healthz'}}]"))
		cfg.Limits.MaxPast, cfg.Journal.SegmentSize = 0, 64<<10 // some are packed
		cfg.ListenTCP = "127.0.0.1:0?tenant=a 127.0.0.1:0?tenant=b"
		cfg.ListenSyslog = "tcp://127.0.0.1:0?tenant=a udp://127.0.0.1:0?tenant=a tcp://127.0.0.1:0?tenant=b udp://127.0.0.1:0?tenant=b"
		cfg.ListenForward = "tcp://127.0.0.1:0?tenant=a tcp://127.0.0.1:0?tenant=b"
		r := run(t, cfg)
		var a, b tally
		var sending sync.WaitGroup
		if withA {
			sending.Go(func() { a = r.workload(t, "a", secretOfA, 0, 2*steps) })
		}
		b = r.workload(t, "b", secretOfB, 1, steps)
		sending.Wait()
		if withA { // more than a search by last looks at first
			a.stored += ofA
			if code, _, got := r.ask(t, http.DefaultClient, "POST", "/api/logs", secretOfA, strings.Repeat("{\"msg\":\"m\"}\n", ofA)); code != 200 {
				t.Fatal(code, got)
			}
		}
		r.checkAccounts(t, map[string]*tally{"a": &a, "b": &b})
		eventually(t, func() bool { return r.Stats().Rejected.Pending == 0 })
		n := int(b.stored)
		all = make(map[string]string)
		for _, path := range []string{
			"/api/query", "/api/query?limit=7", "/api/query?last=7", "/api/query?last=1", "/api/query?last=100000", "/api/query?q=nothing+of+that",
			fmt.Sprintf("/api/query?from=%d", after), fmt.Sprintf("/api/query?from=%d&last=5", after), "/api/query?from=99999999", "/api/query?last=3&q=" + url.QueryEscape("not tenant=b"),
			"/api/query?since=1h", "/api/query?until=2000-01-01", "/api/query?since=2000-01-01&limit=1000", "/api/query?q=%28", "/api/query?q=" + url.QueryEscape("tenant=a or tenant_2=* or msg~canary"),
			"/api/query?offsets=true", "/api/query?offsets=true&last=3", "/api/context?offset=99999999",
			"/api/hits?step=1d&by=", "/api/hits?step=1d&by=tenant&q=canary",
			"/api/stats?q=" + url.QueryEscape("| stats count(), uniq(msg) by tenant, receiver"), "/api/explain?q=canary", "/api/fields", "/api/facets?field=msg,tenant,receiver&limit=1000",
			"/api/ledger", "/metrics", "/api/rejected", "/api/rejected?limit=3", "/api/clients",
		} {
			all[path] = r.view(t, secretOfB, path, 0)
		}
		for _, path := range []string{"/api/tail?from=0", "/api/tail?since=1960-01-01"} {
			all[path] = r.view(t, secretOfB, path, n)
		}
		// A tail from beyond what b knows: a line that comes later is there.
		var tails sync.WaitGroup
		var mu sync.Mutex
		for _, path := range []string{"/api/tail", "/api/tail?from=99999999"} {
			tails.Go(func() {
				got := r.view(t, secretOfB, path, 1)
				mu.Lock()
				defer mu.Unlock()
				all[path] = got
			})
		}
		done := make(chan struct{})
		go func() {
			tails.Wait()
			close(done)
		}()
		for open := true; open; {
			for _, secret := range []string{secretOfA, secretOfB} {
				if code, _, got := r.ask(t, http.DefaultClient, "POST", "/api/logs", secret, `{"msg":"late"}`); code != 200 {
					t.Fatal(code, got)
				}
			}
			select {
			case <-done:
				open = false
			case <-time.After(10 * time.Millisecond):
			}
		}
		return all
	}
	alone, among := views(false), views(true)
	for path, want := range alone {
		if got := among[path]; got != want {
			t.Errorf("%s tells b of a's traffic:\n%.3000s\nwithout it\n%.3000s", path, got, want)
		}
		if strings.Contains(want, `"tenant":"a"`) || strings.HasPrefix(want, "5") || strings.HasPrefix(path, "/api/tail") && !strings.Contains(want, "data: ") {
			t.Errorf("%s: %.300s", path, want)
		}
	}
}

// checkAccounts compares the lines and the accounts that each tenant reads with what it has
// sent, and their sums with what a reader of all has.
func (r *running) checkAccounts(t *testing.T, sent map[string]*tally) {
	t.Helper()
	secrets := map[string]string{"a": secretOfA, "b": secretOfB}
	_, _, everything := r.ask(t, http.DefaultClient, "GET", "/api/query", secretOfAll, "")
	own := make(map[string][]string)
	for line := range strings.Lines(everything) {
		tenant := strings.Join(tenantsIn(t, []byte(line)), " and ")
		own[tenant] = append(own[tenant], line)
	}
	var whole ledger.Ledger
	_, _, text := r.ask(t, http.DefaultClient, "GET", "/api/ledger", secretOfAll, "")
	if err := json.Unmarshal([]byte(text), &whole); err != nil || !ledger.Agree(whole.Counts()) {
		t.Fatalf("%v: %+v", err, whole.Counts())
	}
	var sum tally
	for tenant, n := range sent {
		sum.stored, sum.rejected, sum.duplicate, sum.dropped, sum.ignored = sum.stored+n.stored, sum.rejected+n.rejected, sum.duplicate+n.duplicate, sum.dropped+n.dropped, sum.ignored+n.ignored
		_, _, got := r.ask(t, http.DefaultClient, "GET", "/api/query", secrets[tenant], "")
		if want := strings.Join(own[`"`+tenant+`"`], ""); got != want || uint64(strings.Count(got, "\n")) != n.stored {
			t.Errorf("%s reads %d lines, %d are stored of it, it has sent %d", tenant, strings.Count(got, "\n"), strings.Count(want, "\n"), n.stored)
		}
		_, _, text := r.ask(t, http.DefaultClient, "GET", "/api/ledger", secrets[tenant], "")
		var l ledger.Ledger
		want := n.events()
		if err := json.Unmarshal([]byte(text), &l); err != nil || l.Tenant != tenant || l.Received != want.Received || !maps.Equal(l.Outcomes, want.Outcomes) || !ledger.Agree(l.Counts()) {
			t.Errorf("%v: the ledger of %s is %s, want %+v", err, tenant, text, want)
		}
		if strings.Contains(text, "offset") || strings.Contains(text, "sink") || strings.Contains(text, "tenants") {
			t.Errorf("the ledger of %s is %s", tenant, text)
		}
		_, _, page := r.ask(t, http.DefaultClient, "GET", "/metrics", secrets[tenant], "")
		if got := series(t, page, "tenant_events_total"); got != float64(want.Received) || got != series(t, page, "tenant_events_received_total") || strings.Count(page, "# TYPE") != 3 || strings.Count(page, `tenant="`) != strings.Count(page, `tenant="`+tenant+`"`) {
			t.Errorf("the metrics of %s are\n%s", tenant, page)
		}
	}
	if want := sum.events(); whole.Received != want.Received || !maps.Equal(whole.Outcomes, want.Outcomes) {
		t.Errorf("the ledger is %+v, the tenants' are in all %+v", whole.Account, want)
	}
	_, _, page := r.ask(t, http.DefaultClient, "GET", "/metrics", secretOfAll, "")
	if got := series(t, page, "tenant_events_total"); got != float64(sum.events().Received) || got != series(t, page, "events_received_total") {
		t.Errorf("%v events are of tenants", got)
	}
}
