package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/collector/journal"
)

// serve starts a server over s.
func serve(t testing.TB, s *store, o Options) (*API, string) {
	t.Helper()
	a, err := over(s, o)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	for path, serve := range a.Handlers() {
		mux.HandleFunc(path, serve)
	}
	server := httptest.NewServer(mux)
	t.Cleanup(func() {
		a.Close()
		server.Close()
		if s := a.Stats(); s.RunningQueries != 0 || s.RunningTails != 0 {
			t.Errorf("still running: %+v", s)
		}
	})
	return a, server.URL
}

// ask sends a query whose parameters are pairs, and reads the whole answer.
func ask(t testing.TB, base string, pairs ...string) (*http.Response, string, error) {
	t.Helper()
	values := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		values.Add(pairs[i], pairs[i+1])
	}
	req, err := http.NewRequest(http.MethodGet, base+"/api/query?"+values.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("TE", "trailers")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp, string(body), err
}

// numbered fills s with lines 0 to n-1, each tenth a WARN, in frames of size.
func numbered(t testing.TB, s *store, n, size int) []string {
	t.Helper()
	var all []string
	for i := range n {
		level := "INFO"
		if i%10 == 0 {
			level = "WARN"
		}
		all = append(all, testLine(i, level, "line"))
	}
	for rest := all; len(rest) > 0; {
		k := min(size, len(rest))
		s.add(t, rest[:k]...)
		rest = rest[k:]
	}
	return all
}

func TestQueryAnswers(t *testing.T) {
	s := newStore(t)
	all := numbered(t, s, 100, 7)
	_, base := serve(t, s, Options{})
	var warn []string
	for i := 0; i < 100; i += 10 {
		warn = append(warn, all[i])
	}
	for _, c := range []struct {
		name                   string
		pairs                  []string
		want                   []string
		scanned, matched, next string // "": not checked
	}{
		{"everything", nil, all, "100", "100", "100"},
		{"expression", []string{"q", "level>=warn"}, warn, "100", "10", "100"},
		{"nothing", []string{"q", "absent"}, nil, "100", "0", "100"},
		{"limit", []string{"q", "level>=warn", "limit", "3"}, warn[:3], "21", "3", "21"},
		{"limit beyond", []string{"q", "level>=warn", "limit", "30"}, warn, "100", "10", "100"},
		{"from", []string{"from", "95"}, all[95:], "5", "5", "100"},
		{"from inside a frame", []string{"from", "10", "limit", "2"}, all[10:12], "", "2", "12"},
		{"from at the end", []string{"from", "100"}, nil, "0", "0", "100"},
		{"to", []string{"from", "10", "to", "12"}, all[10:12], "", "2", "12"},
		{"last of a snapshot", []string{"last", "2", "to", "50"}, all[48:50], "", "", "50"},
		{"from after the end", []string{"from", "1000"}, nil, "0", "0", "100"},
		{"last", []string{"last", "3"}, all[97:], "", "", "100"},
		{"last of an expression", []string{"q", "level>=warn", "last", "3"}, warn[7:], "100", "10", "100"},
		{"last beyond", []string{"q", "level>=warn", "last", "30"}, warn, "100", "10", "100"},
		{"last from", []string{"q", "level>=warn", "last", "30", "from", "50"}, warn[5:], "50", "5", "100"},
		{"since", []string{"since", "2026-05-28T00:01:30Z"}, all[90:], "", "10", "100"},
		{"until", []string{"until", "2026-05-28 00:00:05"}, all[:5], "", "5", "100"},
		{"since and until", []string{"q", "level>=warn", "since", "2026-05-28T00:00:10Z", "until", "2026-05-28T00:00:30Z"}, warn[1:3], "", "2", "100"},
		{"time in the expression", []string{"q", "time>=2026-05-28T00:00:10Z time<2026-05-28T00:00:30Z level=warn"}, warn[1:3], "", "2", "100"},
		{"before the first year", []string{"until", "0001-01-01"}, nil, "0", "0", "100"},
		{"no time", []string{"since", "2026-05-29", "until", "2026-05-28"}, nil, "0", "0", "100"},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp, body, err := ask(t, base, c.pairs...)
			end := "100"
			if i := slices.Index(c.pairs, "to"); i >= 0 {
				end = c.pairs[i+1]
			}
			if err != nil || resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "application/x-ndjson" || resp.Header.Get("Rollway-End") != end {
				t.Fatalf("%s, %v, %v", resp.Status, resp.Header, err)
			}
			want := strings.Join(c.want, "\n")
			if want != "" {
				want += "\n"
			}
			if body != want {
				t.Errorf("got\n%swant\n%s", body, want)
			}
			for name, want := range map[string]string{"Rollway-Scanned": c.scanned, "Rollway-Matched": c.matched, "Rollway-Next": c.next} {
				if got := resp.Trailer.Get(name); want != "" && got != want {
					t.Errorf("%s is %q, want %s", name, got, want)
				}
			}
			if e, m := resp.Trailer.Get("Rollway-Error"), resp.Trailer.Get("Rollway-Missing"); e != "" || m != "" {
				t.Errorf("error %q, missing %q", e, m)
			}
		})
	}
}

func TestEmptyJournal(t *testing.T) {
	s := newStore(t)
	_, base := serve(t, s, Options{})
	for _, pairs := range [][]string{nil, {"last", "5"}, {"limit", "5", "q", "x"}} {
		if resp, body, err := ask(t, base, pairs...); resp.StatusCode != 200 || body != "" || err != nil || resp.Trailer.Get("Rollway-Next") != "0" {
			t.Errorf("%v: %s, %q, %v, %v", pairs, resp.Status, body, err, resp.Trailer)
		}
	}
}

func TestBadRequests(t *testing.T) {
	_, base := serve(t, newStore(t), Options{MaxLast: 1000})
	for _, c := range []struct {
		query, want string
		column      int
	}{
		{"q=" + url.QueryEscape("level>=loud"), "query column 8: found `loud`, expected a level", 8},
		{"q=" + url.QueryEscape("(a"), `expected ")" for the "("`, 3},
		{"since=soon", "parameter since: found `soon`, expected a time", 0},
		{"until=-", "parameter until: ", 0},
		{"limit=0", "parameter limit: found `0`, expected a number from 1", 0},
		{"limit=x", "parameter limit", 0},
		{"last=-1", "parameter last", 0},
		{"last=1001", "parameter last: 1001 is above the limit of 1000 lines", 0},
		{"last=1&limit=1", "give one of them", 0},
		{"to=x", "parameter to: found `x`, expected an offset", 0},
		{"order=age", "parameter order: found `age`, expected time or arrival", 0},
		{"from=-1", "parameter from: found `-1`, expected an offset", 0},
		{"form=1", `unknown parameter "form"; known are q, since, until, limit, last, order, from, to`, 0},
		{"q=a&q=b", "parameter q is given 2 times", 0},
		{"q=%zz", "read the parameters", 0},
	} {
		resp, err := http.Get(base + "/api/query?" + c.query)
		if err != nil {
			t.Fatal(err)
		}
		var answer struct {
			Error  string
			Column int
		}
		err = json.NewDecoder(resp.Body).Decode(&answer)
		resp.Body.Close()
		if err != nil || resp.StatusCode != 400 || !strings.Contains(answer.Error, c.want) || answer.Column != c.column {
			t.Errorf("%s: %s, %+v, %v", c.query, resp.Status, answer, err)
		}
	}
	resp, err := http.Post(base+"/api/query", "text/plain", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 405 || resp.Header.Get("Allow") != "GET" {
		t.Errorf("POST: %s, Allow %q", resp.Status, resp.Header.Get("Allow"))
	}
}

// TestLastAcrossWindows has its few matches far from the end, and windows that
// begin inside frames.
func TestLastAcrossWindows(t *testing.T) {
	s := newStore(t)
	const n = 70_000
	lines := make([]string, 0, n)
	for i := range n {
		msg := "common"
		if i%30_000 == 17 {
			msg = "rare"
		}
		lines = append(lines, testLine(i, "INFO", msg))
	}
	for i := 0; i < n; i += 1000 {
		s.add(t, lines[i:i+1000]...)
	}
	_, base := serve(t, s, Options{})
	for last, want := range map[string][]string{
		"1": {lines[60_017]}, "2": {lines[30_017], lines[60_017]}, "9": {lines[17], lines[30_017], lines[60_017]},
	} {
		resp, body, err := ask(t, base, "q", "rare", "last", last)
		if err != nil || body != strings.Join(want, "\n")+"\n" {
			t.Errorf("last=%s: %v\n%s", last, err, body)
		}
		if scanned := resp.Trailer.Get("Rollway-Scanned"); last == "1" && scanned == fmt.Sprint(n) || last == "9" && scanned != fmt.Sprint(n) {
			t.Errorf("last=%s scanned %s lines", last, scanned)
		}
	}
	_, body, err := ask(t, base, "last", "20000")
	if err != nil || body != strings.Join(lines[n-20_000:], "\n")+"\n" {
		t.Errorf("last=20000: %v, %d bytes", err, len(body))
	}
}

func TestLastBytes(t *testing.T) {
	m := newStore(t)
	all := numbered(t, m, 1000, 100)
	_, base := serve(t, m, Options{MaxHeld: 10 * (len(all[999]) + 1)})
	if resp, body, err := ask(t, base, "last", "10"); resp.StatusCode != 200 || err != nil || strings.Count(body, "\n") != 10 {
		t.Errorf("what fits: %s, %v", resp.Status, err)
	}
	resp, body, _ := ask(t, base, "last", "11")
	if resp.StatusCode != 400 || !strings.Contains(body, "the last 11 lines take more than") {
		t.Errorf("what does not fit: %s, %s", resp.Status, body)
	}
}

// All queries with last share what memory there is, and give it back.
func TestLastTotal(t *testing.T) {
	m := newStore(t)
	numbered(t, m, 1000, 100)
	const total = 1 << 20
	a, base := serve(t, m, Options{MaxMemory: total})
	last := func() (int, string, string) {
		resp, body, err := ask(t, base, "last", "900")
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, resp.Header.Get("Retry-After"), body
	}
	other := a.o.Admission.Named("other", 1)
	if !a.memory.Acquire(other, total) {
		t.Fatal("the memory is not free")
	}
	if code, again, body := last(); code != 503 || again != "1" || !strings.Contains(body, "all together") {
		t.Errorf("%d, Retry-After %q, %s", code, again, body)
	}
	if resp, body, err := ask(t, base, "limit", "900"); resp.StatusCode != 200 || err != nil || strings.Count(body, "\n") != 900 {
		t.Errorf("in ascending order: %s, %v", resp.Status, err)
	}
	waitHeld(t, a, total)
	a.memory.Release(other, total)
	if code, _, body := last(); code != 200 || strings.Count(body, "\n") != 900 {
		t.Errorf("afterwards: %d, %.200s", code, body)
	}
	waitHeld(t, a, 0)
}

// waitHeld waits until queries with last hold n bytes: they give it back when they
// have answered.
func waitHeld(t testing.TB, a *API, n int64) {
	t.Helper()
	for end := time.Now().Add(time.Minute); a.memory.Used() != n; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d bytes are held, want %d", a.memory.Used(), n)
		}
	}
}

// TestSnapshot adds lines while a query reads.
func TestSnapshot(t *testing.T) {
	m := newStore(t)
	all := numbered(t, m, 20, 5)
	m.before = func(uint64) error {
		m.add(t, testLine(99, "WARN", "late"))
		return nil
	}
	_, base := serve(t, m, Options{})
	if _, body, err := ask(t, base); err != nil || body != strings.Join(all, "\n")+"\n" {
		t.Errorf("%v\n%s", err, body)
	}
}

// TestStreaming reads the first line while the query cannot go on yet.
func TestStreaming(t *testing.T) {
	m := newStore(t)
	all := numbered(t, m, 3, 1)
	release := make(chan struct{})
	m.before = func(first uint64) error {
		switch first {
		case 1:
			time.Sleep(flushEvery + 50*time.Millisecond)
		case 2:
			<-release
		}
		return nil
	}
	_, base := serve(t, m, Options{})
	resp, err := http.Get(base + "/api/query")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	head := make([]byte, len(all[0])+1)
	if _, err := io.ReadFull(resp.Body, head); err != nil || string(head) != all[0]+"\n" {
		t.Errorf("%q, %v", head, err)
	}
	close(release)
	if rest, err := io.ReadAll(resp.Body); err != nil || string(rest) != all[1]+"\n"+all[2]+"\n" {
		t.Errorf("%q, %v", rest, err)
	}
}

func waitFor(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// TestClientGoesAway lets a client leave in the middle of a long scan.
func TestClientGoesAway(t *testing.T) {
	m := newStore(t)
	numbered(t, m, 10, 1)
	entered := make(chan struct{}, 100)
	m.before = func(first uint64) error {
		entered <- struct{}{}
		time.Sleep(5 * time.Millisecond)
		return nil
	}
	for range 2000 {
		m.add(t, testLine(1, "INFO", "more"))
	}
	a, base := serve(t, m, Options{})
	ctx, cancel := context.WithCancel(context.Background())
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, base+"/api/query?q=absent", nil)
	failed := make(chan error, 1)
	go func() {
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			_, err = io.ReadAll(resp.Body)
			resp.Body.Close()
		}
		failed <- err
	}()
	<-entered
	<-entered
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("client got %v", err)
	}
	go func() {
		for range entered {
		}
	}()
	waitFor(t, "the query's end", func() bool { return a.Stats().RunningQueries == 0 })
	if scanned := a.Stats().Scanned; scanned > 1500 {
		t.Errorf("%d lines were read for a client that left", scanned)
	}
}

// TestErrorsWhileReading checks that a client sees a failure at every stage.
func TestErrorsWhileReading(t *testing.T) {
	m := newStore(t)
	all := numbered(t, m, 10, 1)
	broken := errors.New("disk\nfailed")
	a, base := serve(t, m, Options{})

	m.before = func(uint64) error { return broken }
	for _, last := range [][]string{nil, {"last", "3"}} {
		if resp, body, _ := ask(t, base, last...); resp.StatusCode != 500 || !strings.Contains(body, `read the journal: disk\nfailed`) {
			t.Errorf("before the first line: %s, %s", resp.Status, body)
		}
	}
	m.before = func(first uint64) error {
		if first == 3 {
			time.Sleep(flushEvery)
		}
		if first == 7 {
			return broken
		}
		return nil
	}
	sent := strings.Join(all[:7], "\n") + "\n"
	resp, body, err := ask(t, base)
	if err != nil || body != sent || resp.Trailer.Get("Rollway-Error") != "disk failed" || resp.Trailer.Get("Rollway-Scanned") != "7" {
		t.Errorf("with trailers: %q, %v, %v", body, err, resp.Trailer)
	}
	resp, err = http.Get(base + "/api/query")
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if !errors.Is(err, io.ErrUnexpectedEOF) || string(got) != sent {
		t.Errorf("without trailers: %q, %v", got, err)
	}

	a.Close()
	if resp, body, _ := ask(t, base); resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" || !strings.Contains(body, "shutting down") {
		t.Errorf("after Close: %s, %s", resp.Status, body)
	}
}

// TestClosedWhileAQueryRuns is in virtual time: a query that takes longer than
// flushEvery has sent its status before it is closed.
func TestClosedWhileAQueryRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newStore(t)
		numbered(t, m, 10, 1)
		a, err := over(m, Options{})
		if err != nil {
			t.Fatal(err)
		}
		m.before = func(first uint64) error {
			if first == 3 {
				a.Close()
			}
			return nil
		}
		w := httptest.NewRecorder()
		a.ServeQuery(w, httptest.NewRequest(http.MethodGet, "/api/query", nil))
		if w.Code != 503 || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), "shutting down") {
			t.Errorf("%d, %s", w.Code, w.Body)
		}
		if s := a.Stats(); s.Scanned > 4 || s.RunningQueries != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// TestRetentionOfAJournal asks for offsets that a real journal has deleted.
func TestRetentionOfAJournal(t *testing.T) {
	s := openStore(t, journal.Options{SegmentBytes: 64 << 10, RetainBytes: 128 << 10})
	all := numbered(t, s, 5000, 50)
	waitFor(t, "retention", func() bool { return s.First() > 100 && s.Stats().Bytes <= 128<<10 })
	_, base := serve(t, s, Options{})
	resp, body, err := ask(t, base, "from", "5")
	missing := resp.Trailer.Get("Rollway-Missing")
	if err != nil || !strings.Contains(missing, "deleted by retention") {
		t.Fatalf("%v, missing %q", err, missing)
	}
	kept := strings.Count(body, "\n")
	if body != strings.Join(all[5000-kept:], "\n")+"\n" || !strings.HasPrefix(missing, fmt.Sprintf("%d; ", 5000-kept-5)) {
		t.Errorf("%d lines kept, missing %q", kept, missing)
	}
}

func TestQueryLimit(t *testing.T) {
	m := newStore(t)
	numbered(t, m, 2, 1)
	entered, release := make(chan struct{}, 10), make(chan struct{})
	m.before = func(uint64) error {
		entered <- struct{}{}
		<-release
		return nil
	}
	a, base := serve(t, m, Options{MaxQueries: 1})
	done := make(chan struct{})
	go func() {
		defer close(done)
		if resp, _, err := ask(t, base); err != nil || resp.StatusCode != 200 {
			t.Errorf("the first query: %s, %v", resp.Status, err)
		}
	}()
	<-entered
	resp, body, _ := ask(t, base)
	if resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "1" || !strings.Contains(body, "1 queries are running") {
		t.Errorf("the second query: %s, %s", resp.Status, body)
	}
	close(release)
	<-done
	waitFor(t, "the place", func() bool { return a.Stats().RunningQueries == 0 })
	if resp, _, _ := ask(t, base); resp.StatusCode != 200 {
		t.Errorf("afterwards: %s", resp.Status)
	}
	if s := a.Stats(); s.Queries != 2 || s.Refused != 1 || s.Matched != 4 {
		t.Errorf("%+v", s)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	if _, err := over(newStore(t), Options{MaxTails: -1}); err == nil {
		t.Error("a negative limit is taken")
	}
}

// Of requests that pages of other origins make, those alone pass that open a page of their own.
func TestGuardOfSites(t *testing.T) {
	h := Guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}), "hosts", nil)
	for _, c := range []struct {
		method, site, mode, dest string
		want                     int
	}{
		{"GET", "", "", "", 200}, {"GET", "same-origin", "cors", "empty", 200}, {"POST", "same-origin", "cors", "empty", 200}, {"GET", "none", "navigate", "document", 200},
		{"GET", "cross-site", "no-cors", "image", 403}, {"GET", "same-site", "no-cors", "script", 403}, {"GET", "cross-site", "cors", "empty", 403}, {"GET", "cross-site", "navigate", "iframe", 403},
		{"GET", "cross-site", "navigate", "document", 200}, {"POST", "cross-site", "navigate", "document", 403}, {"HEAD", "same-site", "no-cors", "empty", 403}, {"GET", "new-word", "", "", 403},
	} {
		r := httptest.NewRequest(c.method, "http://127.0.0.1:4318/api/query", nil)
		for name, value := range map[string]string{"Sec-Fetch-Site": c.site, "Sec-Fetch-Mode": c.mode, "Sec-Fetch-Dest": c.dest} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != c.want {
			t.Errorf("%+v: %d", c, w.Code)
		}
	}
}

func TestGuard(t *testing.T) {
	h := Guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}), "hosts", Names(" logs.example ", "metrics.example:1"))
	for _, c := range []struct {
		host, origin string
		want         int
	}{
		{"127.0.0.1:4318", "", 200}, {"[::1]:4318", "", 200}, {"::1", "", 200}, {"10.1.2.3", "", 200}, {"localhost:4318", "", 200}, {"LocalHost.", "", 200}, {"a.localhost:1", "", 200},
		{"logs.example:4318", "", 200}, {"LOGS.example", "", 200}, {"metrics.example:2", "", 200}, {"evil.example:4318", "", 403}, {"", "", 403}, {"localhost.evil.example", "", 403}, {"127.0.0.1.evil.example", "", 403}, {"xlocalhost", "", 403},
		{"127.0.0.1:4318", "http://127.0.0.1:4318", 200}, {"127.0.0.1:4318", "http://evil.example", 403}, {"127.0.0.1:4318", "http://127.0.0.1:9999", 403}, {"127.0.0.1:4318", "null", 403},
	} {
		r := httptest.NewRequest(http.MethodGet, "/api/query", nil)
		r.Host = c.host
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("Host %q, Origin %q: %d, want %d", c.host, c.origin, w.Code, c.want)
		}
		if w.Code == 403 && (!json.Valid(w.Body.Bytes()) || c.origin == "" && !strings.Contains(w.Body.String(), "add the name to hosts")) {
			t.Errorf("Host %q: %s", c.host, w.Body)
		}
	}
}
