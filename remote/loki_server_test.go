package remote_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/fetch"
	"github.com/rollway/rollway/internal/testkit"
)

// lokiProgram returns the path of Grafana Loki. It is built, which takes minutes, only if
// nothing may be skipped; otherwise it has to be there.
func lokiProgram(t *testing.T) string {
	t.Helper()
	program, err := fetch.Loki(testkit.All())
	if err != nil {
		testkit.Missing(t, "Loki, which is built with REQUIRE=all: "+err.Error())
	}
	return program
}

// A lokiServer is a real Loki, all of it in one process, which keeps its data
// when it is started again.
type lokiServer struct {
	url     string
	program string
	dir     string
	cmd     *exec.Cmd
	log     bytes.Buffer
	exited  chan struct{}
}

// lokiConfig allows lines of up to 2,000 bytes and up to a week old.
const lokiConfig = `
auth_enabled: true
server: {http_listen_address: 127.0.0.1, http_listen_port: %d, grpc_listen_address: 127.0.0.1, grpc_listen_port: 0, log_level: warn}
common:
  instance_addr: 127.0.0.1
  path_prefix: %q
  replication_factor: 1
  ring: {kvstore: {store: inmemory}}
  storage: {filesystem: {chunks_directory: %q, rules_directory: %q}}
schema_config:
  configs: [{from: 2020-01-01, store: tsdb, object_store: filesystem, schema: v13, index: {prefix: index_, period: 24h}}]
ingester: {lifecycler: {min_ready_duration: 0s, join_after: 0s}}
querier: {query_ingesters_within: 0}
frontend: {scheduler_dns_lookup_period: 200ms}
frontend_worker: {dns_lookup_duration: 200ms}
analytics: {reporting_enabled: false}
runtime_config: {file: %q}
limits_config: {max_line_size: 2000, reject_old_samples: true, reject_old_samples_max_age: 168h, max_entries_limit_per_query: 100000}
`

const lokiOverrides = `overrides: {slow: {ingestion_rate_mb: 0.005, ingestion_burst_size_mb: 0.05}}`

func startLokiServer(t *testing.T) *lokiServer {
	t.Helper()
	port := freePort(t)
	s := &lokiServer{url: fmt.Sprintf("http://127.0.0.1:%d", port), program: lokiProgram(t), dir: t.TempDir()}
	path := func(name string) string { return filepath.Join(s.dir, name) }
	for name, text := range map[string]string{
		"config.yaml":    fmt.Sprintf(lokiConfig, port, path("data"), path("chunks"), path("rules"), path("overrides.yaml")),
		"overrides.yaml": lokiOverrides,
	} {
		if err := os.WriteFile(path(name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		s.kill()
		if t.Failed() {
			t.Logf("Loki said: %.5000s", s.log.String())
		}
	})
	s.start(t)
	return s
}

// start returns when Loki is ready.
func (s *lokiServer) start(t *testing.T) {
	t.Helper()
	s.cmd = exec.Command(s.program, "-config.file="+filepath.Join(s.dir, "config.yaml"))
	s.cmd.Dir = s.dir
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	s.exited = exited
	cmd := s.cmd
	go func() {
		cmd.Wait()
		close(exited)
	}()
	for end := time.Now().Add(5 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		select {
		case <-exited:
			t.Fatalf("Loki ended: %v", cmd.ProcessState)
		default:
		}
		if resp, err := http.Get(s.url + "/ready"); err == nil {
			resp.Body.Close() // unread, so the connection goes
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Now().After(end) {
			t.Fatal("Loki does not get ready")
		}
	}
}

// kill ends Loki at once.
func (s *lokiServer) kill() {
	if s.cmd != nil {
		s.cmd.Process.Kill()
		<-s.exited
		s.cmd = nil
	}
}

// A lokiStream is what a query finds of one stream.
type lokiStream struct {
	Stream map[string]string
	Values [][2]string
}

// query returns what a tenant has stored since from, oldest first.
func (s *lokiServer) query(t *testing.T, tenant, query string, from time.Time) (streams []lokiStream) {
	t.Helper()
	q := url.Values{"query": {query}, "limit": {"100000"}, "direction": {"forward"}, "start": {fmt.Sprint(from.UnixNano())}}
	q.Set("end", fmt.Sprint(time.Now().Add(time.Minute).UnixNano()))
	req, err := http.NewRequest("GET", s.url+"/loki/api/v1/query_range?"+q.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Scope-OrgID", tenant)
	req.Close = true // a kept connection may be one to a process that was killed
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	var answer struct{ Data struct{ Result []lokiStream } }
	if err := json.Unmarshal(b, &answer); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("query %s: %d %.300s, %v", query, resp.StatusCode, b, err)
	}
	return answer.Data.Result
}

// lines counts what a tenant has stored since from, by line.
func (s *lokiServer) lines(t *testing.T, tenant string, from time.Time) map[string]int {
	t.Helper()
	found := map[string]int{}
	for _, stream := range s.query(t, tenant, `{app="shop"}`, from) {
		for _, v := range stream.Values {
			found[v[1]]++
		}
	}
	return found
}
