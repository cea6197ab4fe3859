package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/testkit"
)

// A target is a collector to attack. After each attack it must be unharmed.
type target struct {
	*daemon
	t      *testing.T
	data   string
	token  string // of the victim and of those who look; empty: none
	bound  int64  // of resident memory
	client *http.Client
	before vitals
}

// vitals are what leaks if something does.
type vitals struct{ descriptors, goroutines, threads int }

// mostResident is what docs/INGEST.md has a collector plan for, with 64 MiB in flight and
// conns connections with unusual headers.
func mostResident(conns int) int64 { return 210<<20 + int64(conns)*40<<10 }

// newTarget serves with 64 MiB in flight and more of a configuration.
func newTarget(t *testing.T, config string, args ...string) *target {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "rollway.yaml")
	if !strings.Contains(config, "limits:") {
		config += "limits: {in_flight: 64MiB, max_unpacked: 16MiB}\n"
	}
	writeText(t, path, config)
	a := &target{t: t, client: &http.Client{Timeout: 30 * time.Second}, data: filepath.Join(dir, "data"), bound: mostResident(100)}
	a.daemon = serveDaemon(t, append([]string{"-config", path, "-data", a.data}, args...)...)
	return a
}

// ready notes what the target is like before an attack.
func (a *target) ready() *target {
	a.t.Helper()
	a.victim(1)
	a.before = a.vitals()
	return a
}

// request sends a request as the victim does, on a connection of its own.
func (a *target) request(method, path, body string) (int, string) {
	a.t.Helper()
	req, err := http.NewRequest(method, a.addr+path, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	if a.token != "" {
		req.Header.Set("Authorization", "Bearer "+a.token)
	}
	req.Close = true
	return received(a.t)(a.client.Do(req))
}

// victim posts n events, one a request, which all have to pass, and returns how long the
// slowest took.
func (a *target) victim(n int) (slowest time.Duration) {
	a.t.Helper()
	for range n {
		begin := time.Now()
		if code, body := a.request("POST", "/api/logs", `{"msg":"of a victim"}`); code != 200 {
			a.t.Fatalf("a victim's POST: %d %s", code, body)
		}
		slowest = max(slowest, time.Since(begin))
	}
	return slowest
}

func (a *target) vitals() (v vitals) {
	a.t.Helper()
	_, text := a.request("GET", "/metrics", "")
	for name, of := range map[string]*int{"process_open_fds": &v.descriptors, "go_goroutines": &v.goroutines, "go_threads": &v.threads} {
		*of = int(metric(a.t, text, name))
	}
	return v
}

// metric returns the sum of all series of a metric.
func metric(t *testing.T, text, name string) (sum float64) {
	t.Helper()
	found := false
	for line := range strings.Lines(text) {
		rest, is := strings.CutPrefix(line, name)
		if !is || rest[0] != ' ' && rest[0] != '{' {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(rest[strings.LastIndexByte(rest, ' ')+1:]), 64)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		sum, found = sum+v, true
	}
	if !found {
		t.Fatalf("no metric %s", name)
	}
	return sum
}

// Slack of a target: connections of clients that are just closing, and threads. While other processes
// want the processors, too, the Go runtime gives the turn of a thread that waits for one at the end of a read
// or write of a socket to another thread, which it starts if none is idle, and keeps. Floods by 2 to 200 peers
// had it start at most 14, not more by more peers; a thread for each slow peer would be 40 or more.
const (
	moreDescriptors = 4
	moreGoroutines  = 10
	moreThreads     = 30
)

// unharmed checks what must be true after any attack, and returns it in words: the process
// lives, answers a victim and probes, has given back what it took, and its ledger is equal.
func (a *target) unharmed() string {
	a.t.Helper()
	if err := a.cmd.Process.Signal(syscall.Signal(0)); err != nil {
		a.t.Fatalf("the collector does not live: %v", err)
	}
	slowest := a.victim(20)
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		if code, body := a.request("GET", path, ""); code != 200 {
			a.t.Errorf("%s: %d %.200s", path, code, body)
		}
	}
	now := a.settled()
	if a.before != (vitals{}) && (now.descriptors > a.before.descriptors+moreDescriptors || now.goroutines > a.before.goroutines+moreGoroutines || now.threads > a.before.threads+moreThreads) {
		a.t.Errorf("a leak: %+v before, %+v after", a.before, now)
	}
	peak := residentPeak(a.t, a.cmd.Process.Pid)
	if !testkit.Race(a.t, "it compares resident memory") && peak > a.bound {
		a.t.Errorf("%d MiB were resident, %d are documented", peak>>20, a.bound>>20)
	}
	a.reconcile()
	left := ""
	if a.before != (vitals{}) {
		left = fmt.Sprintf("descriptors %+d, goroutines %+d, threads %+d, ", now.descriptors-a.before.descriptors, now.goroutines-a.before.goroutines, now.threads-a.before.threads)
	}
	return fmt.Sprintf("ledger equal, then POST ≤ %v, %s%d MiB", slowest.Round(100*time.Microsecond), left, peak>>20)
}

// settled returns what the target is like once it has given back what it took. It waits for as
// long as the target reads on what has arrived.
func (a *target) settled() (now vitals) {
	a.t.Helper()
	now = a.vitals()
	for quiet, read := time.Now(), 0.0; a.before != (vitals{}) && time.Since(quiet) < 30*time.Second; now = a.vitals() {
		if now.descriptors <= a.before.descriptors+moreDescriptors && now.goroutines <= a.before.goroutines+moreGoroutines {
			break
		}
		_, text := a.request("GET", "/metrics", "")
		if n := metric(a.t, text, "rollway_received_bytes_total"); n != read {
			quiet, read = time.Now(), n
		}
		time.Sleep(20 * time.Millisecond)
	}
	return now
}

// reconcile compares the counts with the journal.
func (a *target) reconcile() {
	a.t.Helper()
	if out, err := a.rollway("reconcile", "-addr", a.addr, a.data); err != nil {
		a.t.Errorf("reconcile: %v\n%s", err, out)
	}
}

// rollway runs a command in a process of its own, with the target's token.
func (a *target) rollway(args ...string) (string, error) {
	cmd := exec.Command("rollway", args...)
	cmd.Env = append(os.Environ(), tokenEnv+"="+a.token)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// lines returns what a query finds.
func (a *target) lines(query string) []string {
	a.t.Helper()
	out, err := a.rollway("query", "-addr", a.addr, query)
	if err != nil {
		a.t.Fatalf("query %s: %v\n%.1000s", query, err, out)
	}
	lines := strings.FieldsFunc(out, func(r rune) bool { return r == '\n' })
	return slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, hintOfNothing) })
}

// hintOfNothing begins what the command says instead of lines.
const hintOfNothing = "nothing was found: "

// residentPeak is the most memory that a process has had, in bytes.
func residentPeak(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	number, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	kib, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}
