package query

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/journal"
	"github.com/rollway/rollway/internal/disktest"
)

// A tenant's query finds its own lines, packed or not, and no expression finds
// another's.
func TestOnly(t *testing.T) {
	s := openStore(t, journal.Options{Disk: disktest.NewMem(), SegmentBytes: 20_000, Pack: true})
	const n = 2000
	for i := range n {
		tenant := []string{`"shop"`, `"bank"`, `["shop"]`, `7`}[i%4]
		line := strings.Replace(testLine(i, "INFO", "shop"), `"attrs":{`, `"attrs":{"tenant":`+tenant+`,`, 1)
		s.add(t, line)
	}
	for end := time.Now().Add(time.Minute); s.Stats().PackedSegments < uint64(s.Stats().Segments-1); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not packed within a minute: %+v", s.Stats())
		}
	}
	a, err := over(s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(tenant, params string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		a.ServeQuery(w, Only(httptest.NewRequest("GET", "/api/query?"+params, nil), tenant))
		return w
	}
	for _, row := range []struct {
		tenant, q string
		found     int
	}{
		{"shop", "", n / 4},
		{"shop", "shop", n / 4},
		{"shop", "n>=0 or attrs.tenant=bank or attrs.tenant=7", n / 4},
		{"shop", "nothing", 0},
		{"bank", "n<400", 100},
		{"7", "", 0},
		{"other", "", 0},
	} {
		for _, params := range []string{"", "&last=100000", "&from=0", "&order=time", "&order=time&last=1000"} {
			w := ask(row.tenant, "q="+url.QueryEscape(row.q)+params)
			lines := slices.Collect(strings.Lines(w.Body.String()))
			for _, line := range lines {
				if !strings.Contains(line, fmt.Sprintf(`"tenant":%q`, row.tenant)) {
					t.Fatalf("%+v: found %s", row, line)
				}
			}
			if w.Code != 200 || len(lines) != row.found {
				t.Errorf("%+v %s: %d, %d lines", row, params, w.Code, len(lines))
			}
		}
	}
}

// serveOnly serves the lines of the tenant "mine" of s.
func serveOnly(t testing.TB, s *store, o Options) (*API, string) {
	t.Helper()
	a, err := over(s, o)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	for path, serve := range a.Handlers() {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { serve(w, Only(r, "mine")) })
	}
	server := httptest.NewServer(mux)
	t.Cleanup(func() {
		a.Close()
		server.Close()
	})
	return a, server.URL
}

func lineOf(tenant string, i int) string {
	return fmt.Sprintf(`{"time":"2026-05-28T12:40:%02d.000000000Z","level":"INFO","msg":"m","attrs":{"tenant":%q}}`, i%60, tenant)
}

// An answer of Only has no number but the offset after its own last line.
func TestOnlyTellsNothingElse(t *testing.T) {
	s := newStore(t)
	for i := range 20 {
		s.add(t, lineOf([]string{"other", "other", "mine", "other"}[i%4], i))
	}
	_, base := serveOnly(t, s, Options{})
	for _, c := range []struct {
		params []string
		lines  int
		next   string
	}{
		{nil, 5, "19"},
		{[]string{"limit", "2"}, 2, "7"},
		{[]string{"last", "2"}, 2, "19"},
		{[]string{"last", "100"}, 5, "19"},
		{[]string{"q", "absent"}, 0, "0"},
		{[]string{"q", "absent", "last", "3"}, 0, "0"},
		{[]string{"from", "3"}, 4, "19"},
		{[]string{"from", "19"}, 0, "19"},
		{[]string{"from", "12345"}, 0, "12345"},
		{[]string{"until", "2026-05-28T12:40:08Z"}, 2, "7"},
	} {
		resp, body, err := ask(t, base, c.params...)
		if err != nil || strings.Count(body, "\n") != c.lines || strings.Count(body, `"mine"`) != c.lines {
			t.Errorf("%v: %v\n%s", c.params, err, body)
		}
		if got := resp.Trailer.Get("Rollway-Next"); got != c.next {
			t.Errorf("%v: next %q, want %s", c.params, got, c.next)
		}
		for name := range resp.Header {
			if strings.HasPrefix(name, "Rollway-") {
				t.Errorf("%v: header %s", c.params, name)
			}
		}
		for name, v := range resp.Trailer {
			if name != "Rollway-Next" && len(v) > 0 {
				t.Errorf("%v: trailer %s: %s", c.params, name, v)
			}
		}
	}
}

// Heartbeats of a tail do not tell how far the journal is, and neither does one from
// beyond its end.
func TestOnlyTails(t *testing.T) {
	s := newStore(t)
	for i := range 20 {
		s.add(t, lineOf("other", i))
	}
	_, base := serveOnly(t, s, Options{Heartbeat: 5 * time.Millisecond})
	all := []*events{openTail(t, base, "", ""), openTail(t, base, "?from=0", ""), openTail(t, base, "?from=700", ""), openTail(t, base, "", "900")}
	for _, e := range all {
		for range 3 {
			if ev := e.block(); !ev.comment || ev.id != "" || ev.name != "" {
				t.Errorf("%+v", ev)
			}
		}
	}
	s.add(t, lineOf("other", 20), lineOf("mine", 21))
	for _, e := range all {
		e.want(21, lineOf("mine", 21))
	}
}

// What retention deletes is not told, as it may be another's; damage is.
func TestOnlyAndGaps(t *testing.T) {
	s := openStore(t, journal.Options{SegmentBytes: 64 << 10, RetainBytes: 128 << 10, Disk: disktest.NewMem()})
	numbered(t, s, 5000, 50)
	waitFor(t, "retention", func() bool { return s.First() > 100 && s.Stats().Bytes <= 128<<10 })
	a, base := serveOnly(t, s, Options{})
	resp, _, err := ask(t, base, "from", "5")
	if err != nil || resp.Trailer.Get("Rollway-Missing") != "" {
		t.Errorf("%v, missing %q", err, resp.Trailer.Get("Rollway-Missing"))
	}
	e := openTail(t, base, "", "2")
	next := s.Next()
	s.add(t, lineOf("mine", 1))
	e.want(int(next), lineOf("mine", 1))

	first := s.First()
	for _, c := range []struct {
		gap  journal.Gap
		told bool
	}{
		{journal.Gap{From: 5, To: first, Reason: "of offset 5"}, false},
		{journal.Gap{From: first, To: first + 7, Reason: "of offset 5"}, true},
		{journal.Gap{From: 9000, To: next, Reason: "of offset 5"}, false},
	} {
		w := httptest.NewRecorder()
		tail := tail{stream: stream{w: w, control: http.NewResponseController(w)}, api: a, only: true}
		if err := tail.gap(&c.gap); err != nil {
			t.Error(err)
		}
		want := ""
		if c.told {
			want = "event: gap\ndata: {\"reason\":\"" + mayBeMissing + "\"}\n\n"
		}
		if got := w.Body.String(); got != want {
			t.Errorf("%+v: %q, want %q", c.gap, got, want)
		}
	}
}
