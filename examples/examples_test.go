package examples

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// build compiles one of the programs.
func build(t *testing.T, program string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), program+".exe")
	if out, err := exec.Command("go", "build", "-o", binary, "./"+program).CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return binary
}

var anyTime = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z`)

// checkLines compares lines with the ones wanted, in which TIME is any time
// and LINE any line number.
func checkLines(t *testing.T, got string, want ...string) {
	t.Helper()
	got = anyTime.ReplaceAllString(got, "TIME")
	got = regexp.MustCompile(`\w+/main\.go:\d+`).ReplaceAllString(got, "main.go:LINE")
	if want := strings.Join(want, "\n") + "\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// README shows this program; `dev readme` runs it and compares what it prints.
func TestHello(t *testing.T) {
	program, err := os.ReadFile("hello/main.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if block := "```go\n" + string(program) + "```\n"; !bytes.Contains(page, []byte(block)) {
		t.Errorf("README.md does not have\n%s", block)
	}
	if n := bytes.Count(page, []byte("\n")); n > 150 {
		t.Errorf("README.md has %d lines: move what is not for the first hour into docs", n)
	}
	var stderr bytes.Buffer
	cmd := exec.Command(build(t, "hello"))
	cmd.Env, cmd.Stderr = append(os.Environ(), "ROLLWAY_FILE=", "ROLLWAY_REMOTE=", "ROLLWAY_LEVEL="), &stderr
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	checkLines(t, stderr.String(),
		`{"time":"TIME","level":"INFO","msg":"charged","service":"payment-api","attrs":{"customer":"cus_123","retry":2}}`,
		`{"time":"TIME","level":"WARN","msg":"through log/slog as well","service":"payment-api","source":"main.go:LINE","attrs":{"card":"expires soon"}}`,
	)
}

func TestRouter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "service.log")
	var stderr bytes.Buffer
	cmd := exec.Command(build(t, "router"), "-file", path)
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	inFile, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	checkLines(t, regexp.MustCompile(`"pid":\d+`).ReplaceAllString(string(inFile), `"pid":PID`),
		`{"time":"TIME","level":"INFO","msg":"started","attrs":{"pid":PID}}`,
		`{"time":"TIME","level":"INFO","msg":"charged","logger":"orders","attrs":{"region":"eu-west","order":0,"took":12000000}}`,
		`{"time":"TIME","level":"INFO","msg":"charged","logger":"orders","attrs":{"region":"eu-west","order":1,"took":12000000}}`,
		`{"time":"TIME","level":"INFO","msg":"charged","logger":"orders","attrs":{"region":"eu-west","order":2,"took":12000000}}`,
		`{"time":"TIME","level":"WARN","msg":"card expires soon","logger":"orders","source":"main.go:LINE","attrs":{"region":"eu-west","customer":"cus_123"}}`,
		`{"time":"TIME","level":"ERROR","msg":"failed to charge","logger":"orders","source":"main.go:LINE","error":"card declined","attrs":{"region":"eu-west"}}`,
	)
	console := stderr.String()
	if lines := strings.Count(console, "\n"); lines != 2 {
		t.Errorf("%d lines on the console, want 2:\n%s", lines, console)
	}
	for _, want := range []string{"WARN", "card expires soon", "customer=cus_123", "ERROR", "failed to charge", "card declined"} {
		if !strings.Contains(console, want) {
			t.Errorf("no %q on the console:\n%s", want, console)
		}
	}
}

// TestService plays the collector, uses the service and stops it.
func TestService(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no signal that asks another process to stop")
	}
	var mu sync.Mutex
	var received bytes.Buffer
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPost || r.URL.Path != "/api/logs" {
			t.Errorf("%s %s: %v", r.Method, r.URL, err)
		}
		mu.Lock()
		defer mu.Unlock()
		received.Write(body)
		_, _ = io.WriteString(w, `{}`)
	}))
	defer collector.Close()

	var stderr bytes.Buffer
	cmd := exec.Command(build(t, "service"), "-listen", "127.0.0.1:0", "-collector", collector.URL+"/api/logs", "-spill", t.TempDir())
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() })
	defer kill.Stop()
	first, err := bufio.NewReader(stdout).ReadString('\n')
	address, ok := strings.CutPrefix(strings.TrimSpace(first), "listening on ")
	if err != nil || !ok {
		t.Fatalf("it said %q, %v; %s", first, err, &stderr)
	}

	for body, want := range map[string]int{"4200": http.StatusOK, "many": http.StatusBadRequest, strings.Repeat("9", 33): http.StatusRequestEntityTooLarge} {
		answer, err := http.Post(address+"/charge", "text/plain", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("charge of %q: %s", body, answer.Status)
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after an interrupt: %v; it said %s", err, &stderr)
	}
	if s := stderr.String(); strings.Count(s, "\n") != 1 || !strings.Contains(s, "refused") {
		t.Errorf("on the console: %q", s)
	}

	mu.Lock()
	defer mu.Unlock()
	messages := map[string]map[string]any{}
	var order []string
	for line := range bytes.Lines(received.Bytes()) {
		var event map[string]any
		if err := json.Unmarshal(line, &event); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if event["service"] != "payments" {
			t.Errorf("service is %v", event["service"])
		}
		message, _ := event["msg"].(string)
		messages[message] = event
		order = append(order, message)
	}
	if len(order) != 4 || order[0] != "started" || order[3] != "stopping" {
		t.Errorf("the collector got %q", order)
	}
	if attrs, _ := messages["charged"]["attrs"].(map[string]any); attrs["cents"] != 4200.0 {
		t.Errorf("charged: %v", messages["charged"])
	}
	if messages["refused"]["level"] != "WARN" {
		t.Errorf("refused: %v", messages["refused"])
	}
}

// TestBulk scrapes the program, moves its file away as logrotate does, and
// stops it: each record that it says was written is in one of the files.
func TestBulk(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no signal that asks another process to stop")
	}
	path := filepath.Join(t.TempDir(), "bulk.log")
	var stderr bytes.Buffer
	cmd := exec.Command(build(t, "bulk"), "-path", path, "-listen", "127.0.0.1:0", "-threads", "4", "-rate", "400", "-record", "1000", "-buffer", "65536")
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout := bufio.NewReader(out)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() })
	defer kill.Stop()
	first, err := stdout.ReadString('\n')
	address, ok := strings.CutPrefix(strings.TrimSpace(first), "metrics at ")
	if err != nil || !ok {
		t.Fatalf("it said %q, %v; %s", first, err, &stderr)
	}
	shows := func(metric *regexp.Regexp) {
		t.Helper()
		for until := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
			answer, err := http.Get(address)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(answer.Body)
			answer.Body.Close()
			if err != nil || time.Now().After(until) {
				t.Fatalf("no %v, %v:\n%s", metric, err, text)
			}
			if metric.Match(text) {
				return
			}
		}
	}
	shows(regexp.MustCompile(`(?m)^rollway_slab_lines_written_total\{log="payment"\} [1-9]`))
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	shows(regexp.MustCompile(`(?m)^rollway_file_reopens_total\{log="payment"\} [1-9]`))
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(stdout)
	if err := errors.Join(err, cmd.Wait()); err != nil {
		t.Fatalf("after an interrupt: %v; it said %s", err, &stderr)
	}
	var accepted, written, dropped, pending int
	if _, err := fmt.Sscanf(string(rest), "accepted %d, written %d, dropped %d, pending %d", &accepted, &written, &dropped, &pending); err != nil || accepted != written+dropped || pending != 0 {
		t.Errorf("it said %q, %v", rest, err)
	}
	found := 0
	for _, name := range []string{path + ".1", path} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(data) {
			if bytes.HasPrefix(line, []byte(`{"body":"x`)) && len(bytes.TrimRight(line, " \n")) == 1000 {
				found++
			}
		}
	}
	if found != written {
		t.Errorf("%d records in the files, written %d", found, written)
	}
}
