package collector

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/collector/health"
	"github.com/rollway/rollway/collector/journal"
	"github.com/rollway/rollway/internal/testkit"
)

// running is a collector that a test runs.
type running struct {
	*Collector
	url  string
	log  *testkit.Buffer
	stop func() error // ends it and returns what Run returned
}

func testConfig(t *testing.T) config.Config {
	cfg := config.Default()
	cfg.Listen, cfg.Data = "127.0.0.1:0", filepath.Join(t.TempDir(), "data")
	cfg.Timeouts.Linger = 0 // clients of tests keep their connections
	return cfg
}

func run(t *testing.T, cfg config.Config) *running {
	t.Helper()
	log := &testkit.Buffer{}
	c, err := New(cfg, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	var runErr error
	go func() {
		defer close(done)
		runErr = c.Run(ctx)
	}()
	r := &running{Collector: c, url: "http://" + c.Addr().String(), log: log, stop: func() error {
		cancel()
		<-done
		return runErr
	}}
	t.Cleanup(func() { r.stop() })
	return r
}

// do makes a request without a token.
func (r *running) do(t *testing.T, method, path, body string) (int, http.Header, string) {
	t.Helper()
	return r.ask(t, http.DefaultClient, method, path, "", body)
}

func TestEndpoints(t *testing.T) {
	r := run(t, testConfig(t))
	for _, tt := range []struct {
		method, path, body string
		code               int
		contentType, want  string
	}{
		{"POST", "/api/logs", `{"msg":"hello","n":1}`, 200, "application/json", `{"accepted":1,"first_offset":0}`},
		{"POST", "/api/logs", `[{"msg":"a"},{"msg":"b"}]`, 200, "application/json", `{"accepted":2,"first_offset":1}`},
		{"GET", "/api/query?q=hello", "", 200, "application/x-ndjson", `"msg":"hello","attrs":{"n":1}}`},
		{"GET", "/api/query?last=1", "", 200, "application/x-ndjson", `"msg":"b"}`},
		{"GET", "/api/hits?since=1h&by=", "", 200, "application/json", `"count":3}],"scanned":3,"matched":3}`},
		{"GET", "/api/stats?q=%7C+stats+count()", "", 200, "application/json", `{"columns":["count"],"rows":[[3]],"scanned":3,"matched":3}`},
		{"GET", "/api/fields?q=hello", "", 200, "application/json", `{"name":"n","count":1,"types":{"number":1},"values":1}`},
		{"GET", "/api/facets?field=n", "", 200, "application/json", `"values":[{"value":null,"count":2},{"value":1,"count":1}]`},
		{"POST", "/api/hits", "", 405, "application/json", "use GET"},
		{"GET", "/healthz", "", 200, "application/json", `"status":"alive"}`},
		{"GET", "/readyz", "", 200, "application/json", `{"status":"ready"}`},
		{"GET", "/metrics", "", 200, "text/plain", "rollway_events_stored_total 3\n"},
		{"GET", "/", "", 200, "text/plain", "POST /api/logs"},
		{"GET", "/api", "", 404, "application/json", `"endpoints":["POST /api/logs",`},
		{"POST", "/v1/traces", "{}", 404, "application/json", `there is no \"/v1/traces\" here`},
		{"GET", "/nowhere", "", 404, "application/json", `,"POST /loki/api/v1/push"]`},
		{"POST", "/", `{"msg":"x"}`, 405, "application/json", "send them to /api/logs"},
		{"POST", "/v1/logs", "{}", 200, "application/json", "{}"},
		{"PUT", "/api/logs", "{}", 405, "application/json", "send events with POST"},
		{"POST", "/api/query", "", 405, "application/json", "use GET"},
		{"DELETE", "/readyz", "", 405, "application/json", "use GET"},
	} {
		code, header, body := r.do(t, tt.method, tt.path, tt.body)
		if code != tt.code || !strings.HasPrefix(header.Get("Content-Type"), tt.contentType) || !strings.Contains(body, tt.want) {
			t.Errorf("%s %s: %d %s %.300s", tt.method, tt.path, code, header.Get("Content-Type"), body)
		}
		if code == 405 && header.Get("Allow") == "" {
			t.Errorf("%s %s: no Allow", tt.method, tt.path)
		}
	}
	if code, _, body := r.do(t, "HEAD", "/healthz", ""); code != 200 || body != "" {
		t.Errorf("HEAD /healthz: %d %q", code, body)
	}
	if r.Scheme() == "https" { // also once net/http has made a place for TLS in its server
		t.Error("plain HTTP is taken for TLS")
	}
	if err := r.stop(); err != nil {
		t.Errorf("Run: %v", err)
	}
	if err := r.Run(context.Background()); err == nil {
		t.Error("Run ran twice")
	}
	for line := range strings.Lines(r.log.String()) {
		if !strings.Contains(line, "clients are turned away") {
			t.Errorf("the log says %s", line)
		}
	}
}

// What is found by its path alone is what the patterns find.
func TestRoutes(t *testing.T) {
	routes := run(t, testConfig(t)).handler(nil).(*routes)
	if len(routes.exact) < 20 || routes.exact[logsPath] == nil {
		t.Fatalf("%d endpoints", len(routes.exact))
	}
	for path := range routes.exact {
		for _, method := range []string{"GET", "POST", "PUT", "OPTIONS", "DELETE"} {
			r := httptest.NewRequest(method, path, nil)
			if _, pattern := routes.mux.Handler(r); pattern != path {
				t.Errorf("%s %s is for %s", method, path, pattern)
			}
		}
	}
}

// Elasticsearch takes its paths with a slash at their end too, and Fluent Bit with a
// pipeline sends there.
func TestBulkPaths(t *testing.T) {
	r := run(t, testConfig(t))
	for _, path := range []string{"/_bulk", "/_bulk/", "/shop/_bulk", "/shop/_bulk/", "/elastic/_bulk", "/elastic/_bulk/", "/elastic/shop/_bulk", "/elastic/shop/_bulk/?pipeline=p"} {
		index := ""
		if strings.Contains(path, "shop") {
			index = "shop"
		}
		for _, method := range []string{"POST", "PUT"} {
			code, _, answer := r.do(t, method, path, "{\"create\":{}}\n{\"message\":\"m\"}\n")
			if want := `"errors":false,"items":[{"create":{"_index":"` + index + `",`; code != 200 || !strings.Contains(answer, want) {
				t.Errorf("%s %s: %d %s, want %s", method, path, code, answer, want)
			}
		}
	}
}

// One document comes to paths with its index, and its id.
func TestDocumentPaths(t *testing.T) {
	r := run(t, testConfig(t))
	for path, id := range map[string]string{"/shop/_doc": "", "/shop/_doc/a": "a", "/shop/_create/b": "b", "/elastic/shop/_doc": "", "/elastic/shop/_doc/c": "c", "/elastic/shop/_create/d": "d"} {
		code, _, answer := r.do(t, "PUT", path, `{"message":"m"}`)
		if want := `{"_index":"shop","_id":"` + id; code != 201 || !strings.HasPrefix(answer, want) {
			t.Errorf("%s: %d %s, want %s", path, code, answer, want)
		}
	}
	if code, _, answer := r.do(t, "POST", "/api/_doc/store", "{}"); code == 201 {
		t.Errorf("an event of Sentry's project _doc became a document: %s", answer)
	}
}

// Every event is counted once: received = stored + rejected + failed, and the
// journal has what is stored.
func TestMetrics(t *testing.T) {
	r := run(t, testConfig(t))
	for _, body := range []string{`{"msg":"a"}`, "{\"msg\":\"b\"}\nnot JSON\n{\"msg\":\"c\"}\n", `[1,{"msg":"d"}]`, "", strings.Repeat("[", 100)} {
		r.do(t, "POST", "/api/logs", body)
	}
	r.do(t, "GET", "/api/query", "")
	_, _, text := r.do(t, "GET", "/metrics", "")
	value := func(name string) (sum float64) {
		found := false
		for _, m := range regexp.MustCompile(`(?m)^`+name+`(?:\{[^}]*\})? (\S+)$`).FindAllStringSubmatch(text, -1) {
			f, err := strconv.ParseFloat(m[1], 64)
			if err != nil {
				t.Fatal(err)
			}
			sum, found = sum+f, true
		}
		if !found {
			t.Errorf("no metric %s", name)
		}
		return sum
	}
	received, stored := value("rollway_events_received_total"), value("rollway_events_stored_total")
	rejected, failed := value("rollway_events_rejected_total"), value("rollway_events_failed_total")
	if received != stored+rejected+failed || stored != 4 || rejected != 3 || value("rollway_journal_next_offset") != 4 {
		t.Errorf("received %v, stored %v, rejected %v, failed %v, journal %v", received, stored, rejected, failed, value("rollway_journal_next_offset"))
	}
	if n := value("rollway_ingest_requests_total"); n != 5 {
		t.Errorf("%v requests, want 5", n)
	}
	if n := value("rollway_http_request_duration_seconds_count"); n != 6 {
		t.Errorf("%v durations, want 6", n)
	}
	for _, name := range []string{"rollway_ready", "go_goroutines", "rollway_journal_fsyncs_total", "rollway_lines_scanned_total"} {
		value(name)
	}
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "rollway_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

func TestReady(t *testing.T) {
	r := run(t, testConfig(t))
	ready := func(code int, want string) {
		t.Helper()
		got, _, body := r.do(t, "GET", "/readyz", "")
		if got != code || !strings.Contains(body, want) {
			t.Errorf("/readyz: %d %s; want %d and %q", got, body, code, want)
		}
	}
	ready(200, "ready")
	// An append failed, but the disk takes a probe: whatever it was is over.
	r.health.Note(fmt.Errorf("append: %w", journal.ErrFull))
	ready(200, "ready")
	// The disk takes no probe either.
	full := health.New(health.Options{Data: filepath.Join(t.TempDir(), "none")})
	full.Start()
	full.Note(fmt.Errorf("append: %w", journal.ErrFull))
	if err := full.Ready(); err == nil || !strings.HasPrefix(err.Error(), "the last lines could not be stored (append: journal is full), nor can a probe: open ") {
		t.Errorf("not ready: %v", err)
	}
	// The folder is gone.
	if err := os.Rename(r.config.Data, r.config.Data+".gone"); err != nil {
		t.Fatal(err)
	}
	ready(503, "was removed or replaced")
	if err := os.Rename(r.config.Data+".gone", r.config.Data); err != nil {
		t.Fatal(err)
	}
	ready(200, "ready")
	if files, err := filepath.Glob(filepath.Join(r.config.Data, ".probe-*")); err != nil || len(files) > 0 {
		t.Errorf("probes are left: %v, %v", files, err)
	}
	r.health.Note(nil)
	r.health.Stop()
	ready(503, "shutting down")
}

// At journal.max_size new lines are refused, and the collector says why it is
// not ready, until retention makes room.
func TestMaxSize(t *testing.T) {
	cfg := testConfig(t)
	cfg.Journal.SegmentSize, cfg.Journal.MaxSize = config.MiB, config.MiB
	r := run(t, cfg)
	body, code, answer, stored := `{"msg":"`+strings.Repeat("x", 100_000)+`"}`, 200, "", 0
	for ; code == 200 && stored < 100; stored++ {
		code, _, answer = r.do(t, "POST", "/api/logs", body)
	}
	stored--
	if code != 503 || !strings.Contains(answer, "the journal is full") || stored < 5 {
		t.Fatalf("after %d: %d %s", stored, code, answer)
	}
	if code, _, body := r.do(t, "GET", "/readyz", ""); r.Stats().Journal.Bytes >= int64(cfg.Journal.MaxSize) && (code != 503 || !strings.Contains(body, "journal.max_size (1MiB)")) {
		t.Errorf("/readyz: %d %s", code, body)
	}
	if s := r.Stats(); s.Receive.Failed != 1 || s.Receive.Stored != uint64(stored) || s.Journal.Full == 0 {
		t.Errorf("stats: %+v", s)
	}
	if !strings.Contains(r.log.String(), "store is full") {
		t.Errorf("the log says\n%s", r.log.String())
	}
}

func TestSynced(t *testing.T) {
	cfg := testConfig(t)
	cfg.Journal.Durability = config.Synced
	r := run(t, cfg)
	if code, _, body := r.do(t, "POST", "/api/logs", `{"msg":"a"}`); code != 200 {
		t.Fatalf("%d %s", code, body)
	}
	if s := r.Stats().Journal; s.Fsyncs == 0 || s.Synced != 1 {
		t.Errorf("after a synced answer: %d fsyncs, synced to offset %d", s.Fsyncs, s.Synced)
	}
}

// A request that does not end is cut off once its time is over.
func TestStopInTime(t *testing.T) {
	cfg := testConfig(t)
	cfg.Timeouts.Shutdown = 200 * time.Millisecond
	r := run(t, cfg)
	conn, err := net.Dial("tcp", r.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "POST /api/logs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{\"msg\":")
	for end := time.Now().Add(time.Minute); r.Stats().Receive.InFlight == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the request did not arrive within a minute")
		}
	}
	began := time.Now()
	if err := r.stop(); err != nil {
		t.Errorf("Run: %v", err)
	}
	if took := time.Since(began); took < 200*time.Millisecond || took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
	if !strings.Contains(r.log.String(), "some requests were cut off") {
		t.Errorf("the log says\n%s", r.log.String())
	}
}

// A New that fails keeps no port, file or lock.
func TestFailedNewGivesBack(t *testing.T) {
	first, err := New(testConfig(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	addr := first.Addr().String()
	if err := errors.Join(first.Close(), first.Close()); err != nil {
		t.Fatal(err)
	}
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()

	cfg := testConfig(t)
	cfg.Listen, cfg.ListenTCP = addr, busy.Addr().String()
	if _, err := New(cfg, nil); err == nil || !strings.Contains(err.Error(), "(listen_tcp)") {
		t.Errorf("New on a busy TCP port: %v", err)
	}
	cfg.ListenTCP = ""
	data := cfg.Data
	cfg.Data = filepath.Join(data, "file")
	if err := os.MkdirAll(data, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cfg.Data, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(cfg, nil); err == nil || !strings.Contains(err.Error(), "cannot be used") {
		t.Errorf("New on a file as folder: %v", err)
	}
	cfg.Limits.MaxEvent = 2 * cfg.Limits.MaxUnpacked
	if _, err := New(cfg, nil); err == nil || !strings.Contains(err.Error(), "limits.max_event") {
		t.Errorf("New with settings that contradict each other: %v", err)
	}
	cfg = config.Default()
	cfg.Listen, cfg.Data = addr, data
	last, err := New(cfg, nil)
	if err != nil {
		t.Fatalf("after all that: %v", err)
	}
	if err := last.Close(); err != nil {
		t.Error(err)
	}
}

// Reading is for those who address the collector by an IP address, localhost or
// a name it was told; nobody else's page can make its name point here.
func TestHosts(t *testing.T) {
	cfg := testConfig(t)
	cfg.Hosts = "logs.internal logs"
	r := run(t, cfg)
	eventually(t, func() bool { return r.health.Ready() == nil })
	for host, want := range map[string]int{"logs.internal:4318": 200, "LOGS": 200, "localhost": 200, "192.0.2.1": 200, "[2001:db8::1]:4318": 200, "evil.example": 403} {
		for path, code := range map[string]int{"/api/query": want, "/api/ledger": want, "/api/rejected": want, "/api/clients": want, "/metrics": want, "/healthz": 200, "/readyz": 200} {
			req, err := http.NewRequest("GET", r.url+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Host = host
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode != code || code == 403 && !strings.Contains(string(text), "add the name to hosts") {
				t.Errorf("GET %s at %s: %d, want %d: %s", path, host, resp.StatusCode, code, text)
			}
		}
	}
}

// The timeouts of requests do not end a tail that is quiet, nor the next request
// on a connection that was.
func TestTailOutlivesTimeouts(t *testing.T) {
	cfg := testConfig(t)
	const timeout = 3 * time.Second // a busy machine must keep it
	cfg.Timeouts.Read, cfg.Timeouts.Write, cfg.Timeouts.ReadHeader = timeout, timeout, timeout
	r := run(t, cfg)
	resp, err := http.Get(r.url + "/api/tail")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for n := range 2 {
		if n > 0 {
			time.Sleep(timeout + timeout/2) // more than any of the timeouts; a longer sleep changes nothing
		}
		if code, _, body := r.do(t, "POST", "/api/logs", fmt.Sprintf(`{"msg":"line %d"}`, n)); code != 200 {
			t.Fatalf("%d %s", code, body)
		}
	}
	got := make([]byte, 0, 4096)
	for !bytes.Contains(got, []byte("line 1")) {
		n, err := resp.Body.Read(got[len(got):cap(got)])
		got = got[:len(got)+n]
		if err != nil {
			t.Fatalf("the tail ends with %v after\n%s", err, got)
		}
	}
	if !bytes.Contains(got, []byte("line 0")) {
		t.Errorf("got\n%s", got)
	}
}
