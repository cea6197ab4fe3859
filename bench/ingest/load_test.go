package ingest

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/rollway/rollway/bench/internal/child"
	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/internal/testkit"
)

// TestMain lets the test binary be the children.
func TestMain(m *testing.M) {
	child.Main()
	dir, err := os.MkdirTemp("", "bench-ingest-test-")
	if err != nil {
		panic(err)
	}
	rollwayProgram = sync.OnceValues(func() (string, error) { return child.BuildRollway(dir) })
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// rollwayProgram builds the collector's program for all tests.
var rollwayProgram func() (string, error)

// ownProgram returns the collector's program to a test that puts it under load.
func ownProgram(t *testing.T) string {
	t.Helper()
	if child.Missing != "" {
		testkit.Missing(t, child.Missing)
	}
	program, err := rollwayProgram()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

func TestAnswers(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\ncontent-length: 5\r\n\r\nhello"
	a := answers{src: iotest.OneByteReader(strings.NewReader(ok + "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"))}
	for _, want := range []struct {
		code int
		body string
	}{{200, "hello"}, {503, ""}} {
		code, body, err := a.next()
		if err != nil || code != want.code || string(body) != want.body {
			t.Errorf("got %d %q %v, want %v", code, body, err, want)
		}
	}
	if _, _, err := a.next(); err != io.EOF {
		t.Error(err)
	}
	for _, text := range []string{ok + ok, "HTTP/1.1 200 OK\r\n\r\n", "SSH-2.0\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 2x0 OK\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n" + strings.Repeat("x", 10000)} {
		a := answers{src: strings.NewReader(text)}
		if code, body, err := a.next(); err == nil {
			t.Errorf("%.60q: got %d %q", text, code, body)
		}
	}
}

func testLoad(addr string) load {
	return load{Addr: addr, Protocol: pathJSON, Rate: 400, Events: 3, Duration: 250 * time.Millisecond, Conns: 8, Want: http.StatusAccepted, Grace: time.Minute}
}

// TestGenerate: each request is sent once, with numbers of its own, and one
// that is refused or cut off is an error and not acknowledged.
func TestGenerate(t *testing.T) {
	var seen [300]atomic.Int32
	var served atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		for line := range strings.SplitSeq(strings.TrimSuffix(string(data), "]"), "},{") {
			n, err := numberOf([]byte(line))
			if err != nil || n >= uint64(len(seen)) {
				t.Errorf("%d %v", n, err)
				return
			}
			seen[n].Add(1)
		}
		if served.Add(1)%10 == 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusAccepted)
	}))
	defer s.Close()
	sent, acked, err := generate(testLoad(s.Listener.Addr().String()))
	if err != nil {
		t.Fatal(err)
	}
	if sent.Requests != 100 || sent.Sent != 100 || sent.Acknowledged != 90 || sent.Errors != 10 || !strings.Contains(sent.FirstError, "503") {
		t.Errorf("%+v", sent)
	}
	ones := 0
	for k := range sent.Requests {
		ones += int(acked[k/8] >> (k % 8) & 1)
	}
	if ones != 90 || sent.Latency.Max <= 0 || sent.Latency.Mean > sent.Latency.Max {
		t.Errorf("%d acknowledged in the bits, %+v", ones, sent.Latency)
	}
	for i := range seen {
		if n := seen[i].Load(); n != 1 {
			t.Errorf("event %d came %d times", i, n)
		}
	}
}

// TestGenerateSilence: requests that get no answer count as errors, with the
// time they have waited, and those after them as not sent.
func TestGenerateSilence(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	l := testLoad(ln.Addr().String())
	l.Grace = 2 * time.Second // time enough for each connection to send one on a busy machine
	sent, _, err := generate(l)
	if err != nil {
		t.Fatal(err)
	}
	if sent.Requests != 100 || sent.Sent != 8 || sent.Acknowledged != 0 || sent.Errors != 100 || sent.Latency.Max < l.Duration {
		t.Errorf("%+v", sent)
	}
}

// TestLookUp finds what is missing, there twice, never sent and not asked for.
func TestLookUp(t *testing.T) {
	h, j, err := own{}.open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	x, err := newExchange(3)
	if err != nil {
		t.Fatal(err)
	}
	for _, request := range []uint64{0, 1, 1, 3, 200} { // 2 is missing
		if code := x.serve(h, 3*request); code != http.StatusOK {
			t.Fatal(code)
		}
	}
	acked := make([]byte, 13)
	acked[0] = 0b0111
	f, err := lookUp(func(f func(uint64) error) error { return eachNumber(j, f) }, testLoad(""), acked)
	if want := (Found{Acknowledged: 9, Missing: 3, Repeated: 3, Unasked: 3, Foreign: 3}); err != nil || f != want {
		t.Errorf("got %+v %v, want %+v", f, err, want)
	}
}

// TestOwn puts the article's servers and ours under a little of each load; ours have
// every event once.
func TestOwn(t *testing.T) {
	testkit.Nightly(t, testkit.Bench, "it measures for real, if briefly")
	t.Parallel()
	program, dir := ownProgram(t), t.TempDir()
	for _, l := range Loads() {
		for i, su := range subjects() {
			if _, is := rivals[su.name]; is {
				continue
			}
			l := load{Rate: l.Rate / 50, Events: l.Events, Duration: 200 * time.Millisecond, Conns: 16, Grace: time.Minute}
			run, err := measureRun(su, program, fmt.Sprint(dir, "/data-", l.Events, "-", i), l)
			if err != nil {
				t.Fatal(su, err)
			}
			if s := run.Sent; s.Errors != 0 || s.Acknowledged != l.requests() || run.CPU <= 0 || run.Resident == 0 {
				t.Errorf("%v: %+v", su, run)
			}
			stores := su.name != Naive && su.name != Pooled
			if stores != (run.Found != nil) || stores && *run.Found != (Found{Acknowledged: l.requests() * l.Events}) {
				t.Errorf("%v: found %+v", su, run.Found)
			}
		}
	}
}

// TestRequests: every request is answered, and what is stored is there once.
func TestRequests(t *testing.T) {
	if _, err := measure.Measure(io.Discard, measure.Plan{Rounds: 1, Ops: 20}, append(Subjects(t.TempDir()), BenchmarkSubjects()...)); err != nil {
		t.Error(err)
	}
}
