// Package receivertest tests the receivers of a whole collector with real clients: it
// fetches them from their registries, records what they send into the testdata folders
// of the receivers and compares the lines that it becomes.
package receivertest

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollway/rollway/collector"
	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/collector/receiver/decodetest"
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
	cfg.Hosts = "collector" // as recorded requests call it
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
	return &Server{c, c.Scheme() + "://" + c.Addr().String(), http.DefaultClient}
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

// masks are what differs from run to run in the lines of a receiver's clients, by the
// folder of the receiver.
var masks = map[string]Mask{
	"elastic": {"_id"}, // which a client makes of the time
	"loki":    {"pid", "host", "stack"},
	"otlp":    {"observed_time", "resource", "process.pid", "pid", "host", "stack", "exception.stacktrace"},
	"sentry": {"contexts", "stack", "error.fingerprint", "sdk", "modules", "breadcrumbs", "mechanism", "thread_id", "thread.id", "process.pid",
		"process.executable.name", "process.runtime.name", "process.runtime.version", "code.file.path", "code.line.number", "sentry.timestamp.sequence"},
	"splunk":       nil,
	"receivertest": nil,
}

func maskOf(name string) Mask { return masks[path.Dir(name)] }

// golden is the file of a client, which is named by the folder of its receiver and a
// name of its own.
func golden(client, extension string) string {
	dir, name := path.Split(client)
	return filepath.Join("..", dir, "testdata", name+extension)
}

// Client has a real client send to a collector. What became of it is compared with its
// golden file; with -update it is written there, and the requests themselves beside it.
func Client(t *testing.T, name string, client func(url string)) {
	t.Helper()
	recorded(t, name, func(_ *Server, url string) bool {
		client(url)
		return true
	})
}

// recorded is Client. A client that is not here says false, and what it once sent
// is sent in its place.
func recorded(t *testing.T, name string, client func(s *Server, url string) bool) {
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
		replay(t, name, s)
		return
	}
	lines := maskOf(name).Lines(t, s.Lines(t))
	p.mu.Lock()
	defer p.mu.Unlock()
	if *update {
		write(t, golden(name, ".request"), p.seen.Bytes())
		write(t, golden(name, ".lines"), lines)
		return
	}
	compare(t, golden(name, ".lines"), lines)
	if t.Failed() {
		t.Logf("the client sent\n%.5000s\nand got\n%s", p.seen.String(), p.answers.String())
	}
}

// TestReplay sends again what clients once sent, over HTTP and over other connections.
func TestReplay(t *testing.T) {
	for dir := range masks {
		for _, name := range requests(t, dir) {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				replay(t, name, Run(t, nil))
			})
		}
	}
	for dir, again := range map[string]func(t *testing.T, sent []byte) string{"forward": replayForward, "syslog": replaySyslog} {
		for _, name := range requests(t, dir) {
			Stream(t, name, nil, again)
		}
	}
}

// requests are the clients of a receiver.
func requests(t *testing.T, dir string) (names []string) {
	files, err := filepath.Glob(golden(dir+"/*", ".request"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no requests of %s (%v)", dir, err)
	}
	for _, file := range files {
		names = append(names, dir+"/"+strings.TrimSuffix(filepath.Base(file), ".request"))
	}
	return names
}

// Stream compares what a client has sent over a connection that is not HTTP, made lines
// by replay, with its golden file; with -update both files are first made of sent, if
// that is not nil.
func Stream(t *testing.T, client string, sent []byte, replay func(t *testing.T, sent []byte) string) {
	t.Helper()
	if *update && sent != nil {
		write(t, golden(client, ".request"), sent)
		write(t, golden(client, ".lines"), []byte(replay(t, sent)))
	}
	kept, err := os.ReadFile(golden(client, ".request"))
	if err != nil {
		t.Fatal(err)
	}
	compare(t, golden(client, ".lines"), []byte(replay(t, kept)))
}

// replay sends what a client once sent to s.
func replay(t *testing.T, name string, s *Server) {
	t.Helper()
	for _, req := range decodetest.Requests(t, golden(name, ".request")) {
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
	compare(t, golden(name, ".lines"), maskOf(name).Lines(t, s.Lines(t)))
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

func write(t *testing.T, file string, b []byte) {
	t.Helper()
	if err := os.WriteFile(file, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

func compare(t *testing.T, file string, got []byte) {
	t.Helper()
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case bytes.Equal(got, want):
	case *update:
		write(t, file, got)
	default:
		t.Errorf("%s (write it anew with -update):\n got %s\nwant %s", file, got, want)
	}
}
