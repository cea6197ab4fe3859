package main

import (
	"bytes"
	"context"
	"errors"
	"expvar"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/rollway/rollway/slab"
)

// publishedWriter is whose Stats expvar has: a process has one page.
var publishedWriter struct {
	sync.Mutex
	w    *slab.Writer
	once sync.Once
}

// scriptVars serves the expvar page of this process, with a real Writer on it
// whose destination failed once. Before each answer it gets and writes 101 lines:
// one of 1,100 bytes and a hundred of 100.
func scriptVars(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: vars")
	}
	failed := false
	w, err := slab.New(writeFunc(func(p []byte) (int, error) {
		if !failed {
			failed = true
			return 0, errors.New("not yet")
		}
		return len(p), nil
	}), slab.Options{})
	ts.Check(err)
	ts.Defer(func() { ts.Check(w.Close()) })
	v := &publishedWriter
	v.Lock()
	v.w = w
	v.Unlock()
	v.once.Do(func() {
		expvar.Publish("slab", expvar.Func(func() any {
			v.Lock()
			defer v.Unlock()
			return v.w.Stats()
		}))
	})
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/debug/vars" {
			http.NotFound(rw, r)
			return
		}
		for i := range 101 {
			size := 100
			if i == 0 {
				size = 1100
			}
			line := bytes.Repeat([]byte("x"), size)
			line[size-1] = '\n'
			if _, err := w.Write(line); err != nil {
				http.Error(rw, err.Error(), http.StatusInternalServerError)
				return
			}
		}
		if err := w.Flush(r.Context()); err != nil {
			http.Error(rw, err.Error(), http.StatusInternalServerError)
			return
		}
		expvar.Handler().ServeHTTP(rw, r)
	}))
	ts.Defer(server.Close)
	ts.Setenv("VARS", server.URL)
}

type writeFunc func(p []byte) (int, error)

func (f writeFunc) Write(p []byte) (int, error) { return f(p) }

// page is what an expvar page has for a Writer that has accepted n lines.
func page(n int) string {
	return fmt.Sprintf(`{"Accepted":%d,"Pending":0,"BytesAccepted":%d,"LineMax":100,"Writes":%d,"WriteTime":%d,"WriteMax":2000000,`+
		`"Errors":0,"Slabs":8,"SlabsFree":8,"SlabsPeak":2,"Waiting":0,"Dropped":{"Full":0},"LastError":{"Op":"write"}}`, n, 100*n, n, n*1_000_000)
}

func TestPlanFromPages(t *testing.T) {
	for name, tt := range map[string]struct {
		pages  [2]string
		args   string
		code   int
		stdout string
		stderr string
	}{
		"at the top of the page":   {[2]string{page(100), page(200)}, "", exitOK, "observed for 10s: stats of ", ""},
		"as a value":               {[2]string{`{"cmdline":["x"],"w":` + page(100) + `}`, `{"cmdline":["x"],"w":` + page(200) + `}`}, "", exitOK, "rate             10 lines/s, 1.0 KB/s", ""},
		"in a map":                 {[2]string{`{"app":{"log":` + page(100) + `}}`, `{"app":{"log":` + page(200) + `}}`}, "", exitOK, "app.log of ", ""},
		"one of several":           {[2]string{`{"a":` + page(100) + `,"b":` + page(100) + `}`, `{"a":` + page(100) + `,"b":` + page(200) + `}`}, "-name b", exitOK, "b of ", ""},
		"several":                  {[2]string{`{"b":` + page(100) + `,"a":` + page(100) + `}`, `{}`}, "", exitFailed, "", "there are several Writers, choose one with -name: a, b"},
		"another name":             {[2]string{`{"b":` + page(100) + `}`, `{}`}, "-name a", exitFailed, "", `there is no Writer's Stats under the name "a", but: b`},
		"none":                     {[2]string{`{"cmdline":["x"],"slab":null}`, `{}`}, "", exitFailed, "", `there is no value with the fields of slab.Stats: publish it with expvar.Publish("slab"`},
		"too deep":                 {[2]string{`{"1":{"2":{"3":{"4":{"5":` + page(100) + `}}}}}`, `{}`}, "", exitFailed, "", `there is no value with the fields`},
		"an older Writer":          {[2]string{`{"w":{"Accepted":1,"Pending":0,"SlabsPeak":1}}`, `{}`}, "", exitFailed, "", `there is no value with the fields`},
		"a field of another kind":  {[2]string{strings.Replace(page(1), `"Slabs":8`, `"Slabs":"8"`, 1), `{}`}, "", exitFailed, "", `is not the Stats of a slab.Writer: json: cannot unmarshal string`},
		"no JSON":                  {[2]string{"<html>", ""}, "", exitFailed, "", "this is not a page of variables in JSON: invalid character"},
		"an empty page":            {[2]string{"", ""}, "", exitFailed, "", "this is not a page of variables in JSON: unexpected end"},
		"a list":                   {[2]string{"[1]", ""}, "", exitFailed, "", "this is not a page of variables in JSON"},
		"nothing came":             {[2]string{page(100), page(100)}, "", exitFailed, "", "no line came in 10s"},
		"a restart":                {[2]string{page(200), page(100)}, "", exitFailed, "", "the counters went back, from 200 lines to 100"},
		"a workload out of range":  {[2]string{page(100), strings.Replace(page(200), `"WriteMax":2000000`, `"WriteMax":999999999999999`, 1)}, "", exitFailed, "", "Spike is 277h46m39.999999999s, allowed is 0 to 24h"},
		"flags replace":            {[2]string{page(100), page(200)}, "-rate 50000 -line 200 -line-p99 800 -write-latency 3ms -spike 7ms -memory 2MiB", exitOK, "rate             50,000 lines/s, 10.0 MB/s\n  line             200 B in the mean, 800 B at the 99th percentile\n  a write takes    3ms\n  spike to absorb  7ms\n  memory budget    2MiB\n", ""},
		"the slabs there are":      {[2]string{page(100), page(200)}, "-slab-size 16KiB", exitOK, "geometry         8 × 16KiB = 128KiB", ""},
		"enough slabs":             {[2]string{page(100), page(200)}, "", exitOK, "No more than 2 of 8 slabs have been taken at once", ""},
		"producers wait":           {[2]string{page(100), strings.Replace(page(200), `"Waiting":0`, `"Waiting":3`, 1)}, "", exitOK, "3 producers are waiting for a slab at this moment", ""},
		"all slabs taken":          {[2]string{page(100), strings.Replace(page(200), `"SlabsPeak":2`, `"SlabsPeak":8`, 1)}, "", exitOK, "All 8 slabs have been taken at once", ""},
		"lines were dropped":       {[2]string{page(100), strings.Replace(page(200), `"Full":0`, `"Full":1200,"TooLarge":1`, 1)}, "", exitOK, "dropped          1,201 lines: Full 1,200, TooLarge 1 since the start", ""},
		"and said so":              {[2]string{page(100), strings.Replace(page(200), `"Full":0`, `"Full":1200`, 1)}, "", exitOK, "1,200 lines found no room and were dropped", ""},
		"writes failed":            {[2]string{page(100), strings.Replace(page(200), `"Errors":0`, `"Errors":5`, 1)}, "", exitOK, "5 writes of the destination failed, and 0 lines were given up", ""},
		"a longest line far off":   {[2]string{page(100), strings.Replace(page(200), `"LineMax":100`, `"LineMax":5000`, 1)}, "", exitOK, "The longest line has 50 times the mean size", ""},
		"a destination at its end": {[2]string{page(100), page(200)}, "-rate 400000 -slab-size 64KiB -slabs 8", exitOK, "The destination can take 1.6 times what comes", ""},
	} {
		dir := t.TempDir()
		for i, text := range tt.pages {
			writeFile(t, fmt.Sprintf("%s/%d.json", dir, i), text)
		}
		r := cli(t, "", append([]string{"plan", "-from", dir + "/0.json", "-from", dir + "/1.json"}, strings.Fields(tt.args)...)...)
		if r.code != tt.code || !strings.Contains(r.stdout, tt.stdout) || !strings.Contains(r.stderr, tt.stderr) || (r.code == exitFailed) != (r.stdout == "") {
			t.Errorf("%s: status %d, want %d, %q and %q\nstdout:\n%s\nstderr:\n%s", name, r.code, tt.code, tt.stdout, tt.stderr, r.stdout, r.stderr)
		}
	}
}

func TestPlanFromBadServers(t *testing.T) {
	release := make(chan struct{})
	endless := func(rw http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := rw.Write(bytes.Repeat([]byte("x"), 64<<10)); err != nil {
				return
			}
		}
	}
	for name, tt := range map[string]struct {
		handler http.HandlerFunc
		timeout time.Duration
		want    string
	}{
		"an error":        {func(rw http.ResponseWriter, _ *http.Request) { http.Error(rw, "no \x1b[31mway", http.StatusForbidden) }, time.Minute, `answers 403 Forbidden: no \x1b[31mway`},
		"an endless page": {endless, time.Minute, "has more than 8.4 MB, it is not a page of variables"},
		"no answer":       {func(http.ResponseWriter, *http.Request) { <-release }, 50 * time.Millisecond, "Client.Timeout"},
		"half an answer": {func(rw http.ResponseWriter, _ *http.Request) {
			rw.Write([]byte("{"))
			rw.(http.Flusher).Flush()
			<-release
		}, 50 * time.Millisecond, "Client.Timeout"},
		"a broken answer": {func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Length", "99")
			rw.Write([]byte("{"))
		}, time.Minute, "unexpected EOF"},
		"an endless journey": {func(rw http.ResponseWriter, r *http.Request) { http.Redirect(rw, r, "/again", http.StatusFound) }, time.Minute, "stopped after 10 redirects"},
	} {
		server := httptest.NewServer(tt.handler)
		p := &planFlags{from: []string{server.URL + "/debug/vars"}, interval: time.Minute, timeout: tt.timeout}
		_, err := p.observe(context.Background())
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), server.URL) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
		defer server.Close()
	}
	close(release)

	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	cli(t, "", "plan", "-from", gone.URL).want(t, exitFailed, "connection refused")
	cli(t, "", "plan", "-from", t.TempDir()+"/none").want(t, exitFailed, "no such file", "as in http://127.0.0.1:6060/debug/vars")

	// A password does not get into a message.
	withPassword := strings.Replace(gone.URL, "http://", "http://me:secret@", 1)
	if r := cli(t, "", "plan", "-from", withPassword); strings.Contains(r.stderr, "secret") || !strings.Contains(r.stderr, "me:xxxxx@") {
		t.Errorf("stderr %q", r.stderr)
	}
}

// TestPlanFromIsInterrupted ends the wait between two readings.
func TestPlanFromIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(rw, page(100))
		cancel()
	}))
	defer server.Close()
	p := &planFlags{from: []string{server.URL}, interval: time.Hour, timeout: time.Minute}
	if _, err := p.observe(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
