package main

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"runtime/metrics"
	"strings"
	"testing"
)

func TestDebugListen(t *testing.T) {
	d := serveDaemon(t, "-debug-listen", "127.0.0.1:0")
	m := regexp.MustCompile(`(?m)^  debug +(http://\S+)`).FindStringSubmatch(d.stdout.String())
	if m == nil {
		t.Fatalf("no address in\n%s", d.stdout.String())
	}
	get := func(path string) string {
		t.Helper()
		resp, err := http.Get(strings.TrimSuffix(m[1], "/debug/pprof/") + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != 200 {
			t.Fatalf("%s: %d %v", path, resp.StatusCode, err)
		}
		return string(b)
	}
	if got := get("/debug/pprof/"); !strings.Contains(got, "goroutine") {
		t.Errorf("the index is %s", got)
	}
	if got := get("/debug/pprof/heap"); len(got) < 100 {
		t.Errorf("a heap profile of %d bytes", len(got))
	}
	var figures map[string]any
	if err := json.Unmarshal([]byte(get("/debug/runtime")), &figures); err != nil || figures["/gc/heap/live:bytes"] == nil {
		t.Errorf("%v: %v", err, figures)
	}
	// A web page cannot read it under a name that it has made to point here.
	for name, want := range map[string]int{"evil.example": 403, "localhost": 200} {
		req, err := http.NewRequest("GET", strings.TrimSuffix(m[1], "/debug/pprof/")+"/debug/runtime", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = name
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("as %s: %s", name, resp.Status)
		}
	}
	// None of it is where clients come.
	if code, _ := d.get(t, "/debug/pprof/"); code != 404 {
		t.Errorf("%d for profiles at the address for requests", code)
	}
}

func TestQuantile(t *testing.T) {
	h := &metrics.Float64Histogram{Counts: []uint64{0, 98, 1, 1}, Buckets: []float64{0, 1, 2, 3, 4}}
	got := summary(h)
	if got["count"] != uint64(100) || got["p50"] != 2.0 || got["p99"] != 3.0 || got["max"] != 4.0 {
		t.Errorf("%v", got)
	}
	if got := summary(&metrics.Float64Histogram{Counts: []uint64{0}, Buckets: []float64{0, 1}}); got["max"] != 0.0 {
		t.Errorf("of nothing: %v", got)
	}
}
