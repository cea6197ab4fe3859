// Package receivertest tests the collector's front receivers with real clients: it runs
// a collector, fetches clients from their registries, records what they send
// and compares the lines that it becomes.
package receivertest

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollway/rollway/collector"
	"github.com/rollway/rollway/collector/config"
)

var update = flag.Bool("update", false, "write what real clients send, and what it becomes, to testdata")

// A Server is a collector that runs for the length of a test.
type Server struct {
	*collector.Collector
	URL    string
	Reader *http.Client // asks it for its lines
}

// Run runs a collector with the default configuration as change leaves it. At the
// end of the test each event must be accounted for.
func Run(t testing.TB, change func(*config.Config)) *Server {
	t.Helper()
	cfg := config.Default()
	cfg.Listen, cfg.Data = "127.0.0.1:0", filepath.Join(t.TempDir(), "data")
	// What was recorded is sent again years later.
	cfg.Limits.MaxPast, cfg.Limits.MaxFuture = 0, 0
	if change != nil {
		change(&cfg)
	}
	c, err := collector.New(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if r := c.Stats().Receive; r.Received != r.Stored+r.RejectedTotal()+r.Failed+r.Duplicate+r.DroppedTotal() || r.InFlight != 0 {
			t.Errorf("the ledger does not close: %+v", r)
		}
	})
	url := "http://" + c.Addr().String()
	if c.Secure() {
		url = "https://" + c.Addr().String()
	}
	return &Server{c, url, http.DefaultClient}
}

// Lines returns the lines that are stored, in their order.
func (s *Server) Lines(t testing.TB) []string {
	t.Helper()
	resp, err := s.Reader.Get(s.URL + "/api/query?last=1000")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("query: %d %s, %v", resp.StatusCode, body, err)
	}
	return strings.Split(strings.TrimSuffix(string(body), "\n"), "\n")
}

// Await returns the lines once there are n of them.
func (s *Server) Await(t testing.TB, n int) []string {
	t.Helper()
	Eventually(t, fmt.Sprintf("%d lines", n), func() bool { return s.Stats().Receive.Stored >= uint64(n) })
	return s.Lines(t)
}

// Eventually fails the test if done does not return true within a minute.
func Eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited a minute for %s", what)
		}
	}
}

// Client has a real client send to a collector. What became of it is compared
// with testdata/NAME.lines; with -update it is written there, and the requests
// themselves to testdata/NAME.request.
func Client(t *testing.T, name string, mask Mask, client func(url string)) {
	t.Helper()
	recorded(t, name, mask, func(_ *Server, url string) bool {
		client(url)
		return true
	})
}

// recorded is Client. A client that is not here says false, and what it once sent
// is sent in its place.
func recorded(t *testing.T, name string, mask Mask, client func(s *Server, url string) bool) {
	t.Helper()
	s := Run(t, nil)
	p := &proxy{to: s.URL}
	server := httptest.NewUnstartedServer(p)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true) // gRPC
	server.Start()
	defer server.Close()
	if !client(s, server.URL) {
		replay(t, name, mask, s)
		return
	}
	lines := mask.Lines(t, s.Lines(t))
	p.mu.Lock()
	defer p.mu.Unlock()
	if *update {
		write(t, name+".request", p.seen.Bytes())
		write(t, name+".lines", lines)
		return
	}
	compare(t, name+".lines", lines)
	if t.Failed() {
		t.Logf("the client sent\n%.5000s\nand got\n%s", p.seen.String(), p.answers.String())
	}
}

// Replay sends every testdata/*.request and compares what becomes of it with
// its .lines.
func Replay(t *testing.T, mask Mask) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.request"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no requests in testdata (%v)", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".request")
		t.Run(name, func(t *testing.T) { replay(t, name, mask, Run(t, nil)) })
	}
}

// Stream compares what testdata/CLIENT.request, what a client sent over a connection
// that is not HTTP, becomes by replay with CLIENT.lines; with -update both are first
// made of sent, if that is not nil.
func Stream(t *testing.T, client string, sent []byte, replay func(t *testing.T, sent []byte) string) {
	t.Helper()
	if *update && sent != nil {
		write(t, client+".request", sent)
		write(t, client+".lines", []byte(replay(t, sent)))
	}
	kept, err := os.ReadFile(filepath.Join("testdata", client+".request"))
	if err != nil {
		t.Fatal(err)
	}
	compare(t, client+".lines", []byte(replay(t, kept)))
}

// Streams is Stream for every testdata/*.request.
func Streams(t *testing.T, replay func(t *testing.T, sent []byte) string) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.request"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no requests in testdata (%v)", err)
	}
	for _, file := range files {
		Stream(t, strings.TrimSuffix(filepath.Base(file), ".request"), nil, replay)
	}
}

// replay sends testdata/NAME.request to s.
func replay(t *testing.T, name string, mask Mask, s *Server) {
	t.Helper()
	for _, req := range Requests(t, filepath.Join("testdata", name+".request")) {
		req.URL.Scheme, req.URL.Host, req.RequestURI = "http", strings.TrimPrefix(s.URL, "http://"), ""
		resp, err := transportOf(req).RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		answer, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode >= 300 || isGRPC(req) && resp.Trailer.Get("Grpc-Status") != "0" {
			t.Errorf("%s %s: %d %s %v %v", req.Method, req.URL.Path, resp.StatusCode, answer, resp.Header, resp.Trailer)
		}
	}
	overHTTP2.CloseIdleConnections() // the collector would wait for them
	compare(t, name+".lines", mask.Lines(t, s.Lines(t)))
}

// Requests reads a recorded file. Bodies are as they were sent.
func Requests(t testing.TB, file string) (list []*http.Request) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for r := bufio.NewReader(bytes.NewReader(b)); ; {
		req, err := http.ReadRequest(r)
		if err == io.EOF {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Fatal(err)
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		list = append(list, req)
	}
}

func isGRPC(r *http.Request) bool { return r.Header.Get("Content-Type") == "application/grpc" }

// overHTTP2 is the transport of gRPC, without TLS.
var overHTTP2 = func() *http.Transport {
	t := &http.Transport{Protocols: new(http.Protocols)}
	t.Protocols.SetUnencryptedHTTP2(true)
	return t
}()

func transportOf(r *http.Request) http.RoundTripper {
	if isGRPC(r) {
		return overHTTP2
	}
	return http.DefaultTransport
}

// proxy passes requests on and writes them down.
type proxy struct {
	to      string
	mu      sync.Mutex
	seen    bytes.Buffer // guarded by mu
	answers bytes.Buffer // guarded by mu
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	writeRequest(&p.seen, r, body)
	out, err := http.NewRequest(r.Method, p.to+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	out.Header = r.Header.Clone()
	resp, err := transportOf(out).RoundTrip(out)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(resp.Body)
	fmt.Fprintf(&p.answers, "%s %s: %d %s\n", r.Method, r.URL.Path, resp.StatusCode, answer)
	for name, values := range resp.Header {
		w.Header()[name] = values
	}
	for name, values := range resp.Trailer {
		w.Header()[http.TrailerPrefix+name] = values
	}
	w.WriteHeader(resp.StatusCode)
	w.Write(answer)
}

// writeRequest writes a request as it came, except for chunks and the host.
func writeRequest(w *bytes.Buffer, r *http.Request, body []byte) {
	fmt.Fprintf(w, "%s %s HTTP/1.1\r\nHost: collector\r\n", r.Method, r.URL.RequestURI())
	var names []string
	for name := range r.Header {
		if name != "Content-Length" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		for _, value := range r.Header[name] {
			fmt.Fprintf(w, "%s: %s\r\n", name, value)
		}
	}
	if len(body) > 0 {
		w.WriteString("Content-Length: " + strconv.Itoa(len(body)) + "\r\n")
	}
	w.WriteString("\r\n")
	w.Write(body)
}

func write(t *testing.T, name string, b []byte) {
	t.Helper()
	if err := os.MkdirAll("testdata", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join("testdata", name), b, 0o644); err != nil {
		t.Fatal(err)
	}
}

func compare(t *testing.T, name string, got []byte) {
	t.Helper()
	want, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s (write it anew with -update):\n got %s\nwant %s", name, got, want)
	}
}
