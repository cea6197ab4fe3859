package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A cutter passes queries on to a daemon and breaks the connections of its answers.
type cutter struct {
	mu     sync.Mutex
	daemon *daemon                    // guarded by mu, as broken may start another
	limit  func(n int) int            // bytes of the nth answer; below 0: it is whole
	before func(n int, h http.Header) // the nth answer, before its header is sent; may be nil
	broken func(n int)                // after the nth answer was broken; may be nil
	asked  atomic.Int32
	status func(n int) (status int) // another answer to the nth request; 0: none; may be nil
}

func (p *cutter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := int(p.asked.Add(1))
	if p.status != nil && p.status(n) != 0 {
		w.WriteHeader(p.status(n))
		return
	}
	p.mu.Lock()
	addr := p.daemon.addr
	p.mu.Unlock()
	req, err := http.NewRequestWithContext(r.Context(), http.MethodGet, addr+r.URL.RequestURI(), nil)
	if err != nil {
		panic(err)
	}
	req.Header = r.Header.Clone()
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer resp.Body.Close()
	for name := range resp.Trailer {
		w.Header().Add("Trailer", name)
	}
	for name, values := range resp.Header {
		w.Header()[name] = values
	}
	if p.before != nil {
		p.before(n, w.Header())
	}
	limit := p.limit(n)
	w.WriteHeader(resp.StatusCode)
	if limit >= 0 {
		io.CopyN(w, resp.Body, int64(limit))
		http.NewResponseController(w).Flush()
		if p.broken != nil {
			p.mu.Lock()
			p.broken(n)
			p.mu.Unlock()
		}
		panic(http.ErrAbortHandler)
	}
	io.Copy(w, resp.Body)
	for name, values := range resp.Trailer {
		w.Header()[name] = values
	}
}

// fill posts n lines, each tenth a WARN.
func (d *daemon) fill(t *testing.T, from, to int) {
	t.Helper()
	var b strings.Builder
	for i := from; i < to; i++ {
		level := "INFO"
		if i%10 == 0 {
			level = "WARN"
		}
		at := time.Date(2026, 5, 28, 0, 0, i, 0, time.UTC)
		fmt.Fprintf(&b, `{"time":%q,"level":%q,"msg":"line","attrs":{"n":%d}}`+"\n", at.Format(time.RFC3339), level, i)
	}
	if code, answer := d.post(t, b.String()); code != 200 {
		t.Fatalf("%d %s", code, answer)
	}
}

// Whatever breaks between, each line is printed once, in order, and nothing is said.
func TestQueryGoesOn(t *testing.T) {
	d := serveDaemon(t)
	d.fill(t, 0, 2000)
	cases := [][]string{
		{""}, {"level=warn"}, {"-limit", "700"}, {"-last", "300"}, {"-last", "300", "-order", "arrival"}, {"-order", "time"}, {"level=warn", "-last", "100"},
		{"| stats count() by n"}, {"| sort -n | limit 900"}, {"absent"},
	}
	more := 2000
	p := &cutter{
		daemon: d,
		limit: func(n int) int {
			if n > 4 {
				return -1
			}
			return []int{0, 1, 2500, 0, 5500}[n]
		},
		broken: func(int) { // what comes meanwhile is not in the answer
			d.fill(t, more, more+1)
			more++
		},
		status: func(n int) int {
			if n == 3 {
				return http.StatusServiceUnavailable
			}
			return 0
		},
	}
	server := httptest.NewServer(p)
	defer server.Close()
	for _, args := range cases {
		p.asked.Store(0)
		whole := strings.Join(d.query(t, args...), "\n")
		r := cli(t, "", append([]string{"query", "-addr", server.URL}, args...)...)
		r.want(t, 0)
		if got := strings.TrimSuffix(r.stdout, "\n"); got != whole || r.stderr != "" {
			t.Errorf("%q: %d bytes in %d answers, want %d; stderr %q", args, len(got), p.asked.Load(), len(whole), r.stderr)
		}
		if p.asked.Load() < 5 {
			t.Errorf("%q: %d requests", args, p.asked.Load())
		}
	}
}

// A search ends with an error where it cannot go on without a fault.
func TestQueryCannotGoOn(t *testing.T) {
	d := serveDaemon(t)
	d.fill(t, 0, 2000)
	var p *cutter
	for _, tt := range []struct {
		name, want string
		args       []string
		lines      int // printed at least
		p          *cutter
	}{
		{"the first request", "503", nil, 0, &cutter{status: func(int) int { return 503 }}},
		{"a refusal", "403", nil, 1, &cutter{status: func(n int) int { return (n - 1) * 403 }}},
		{"another journal", "has another journal now; ask again", nil, 1, &cutter{before: func(n int, h http.Header) {
			if n > 1 {
				h.Set("Rollway-Journal", "other")
			}
		}}},
		{"another answer", "the answer is another one now; ask again", []string{"| fields n | sort n"}, 1, &cutter{limit: func(n int) int { return 40_000 - 20_000/n }, before: func(n int, h http.Header) {
			h.Del("Rollway-End") // so that new lines are in the next one
		}, broken: func(int) { d.post(t, `{"attrs":{"n":-1},"msg":"x"}`) }}},
		{"a fault of the collector", "the answer ends early: read the journal", nil, 0, &cutter{limit: func(int) int { return -1 }, before: func(n int, h http.Header) {
			h.Set(http.TrailerPrefix+"Rollway-Error", "read the journal")
		}}},
	} {
		p = tt.p
		p.daemon = d
		if p.limit == nil {
			p.limit = func(int) int { return 20_000 }
		}
		server := httptest.NewServer(p)
		r := cli(t, "", append([]string{"query", "-addr", server.URL}, tt.args...)...)
		server.Close()
		if r.code != 1 || !strings.Contains(r.stderr, tt.want) || strings.Count(r.stdout, "\n") < tt.lines || p.asked.Load() > 3 {
			t.Errorf("%s: status %d after %d requests, %d lines: %s", tt.name, r.code, p.asked.Load(), strings.Count(r.stdout, "\n"), r.stderr)
		}
	}
}

// A collector that is killed and started again is waited for.
func TestQueryOverRestart(t *testing.T) {
	dir := t.TempDir()
	first := serveDaemon(t, "-data", dir)
	first.fill(t, 0, 2000)
	want := first.query(t)
	p := &cutter{daemon: first}
	p.limit = func(n int) int {
		if n > 1 {
			return -1
		}
		return 50_000
	}
	p.broken = func(int) {
		first.kill()
		p.daemon = serveDaemon(t, "-data", dir)
	}
	server := httptest.NewServer(p)
	defer server.Close()
	cli(t, "", "query", "-addr", server.URL).want(t, 0)
	if got := (&daemon{addr: server.URL}).query(t); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%d lines, want %d", len(got), len(want))
	}
}

// A line is printed when it is found, however long the search takes after it.
func TestQueryStreams(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, `{"offset":3,"line":{"msg":"first"}}`+"\n")
		http.NewResponseController(w).Flush()
		<-release
		io.WriteString(w, `{"offset":4,"line":{"msg":"second"}}`+"\n")
	}))
	defer server.Close()
	cmd := exec.Command("rollway", "query", "-addr", server.URL)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	start(t, cmd)
	in := bufio.NewReader(out)
	if line, err := in.ReadString('\n'); line != `{"msg":"first"}`+"\n" {
		t.Errorf("%q, %v", line, err)
	}
	close(release)
	rest, _ := io.ReadAll(in)
	if err := cmd.Wait(); err != nil || string(rest) != `{"msg":"second"}`+"\n" || stderr.Len() > 0 {
		t.Errorf("%q, %v, %s", rest, err, stderr.String())
	}
}
