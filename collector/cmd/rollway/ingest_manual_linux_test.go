package main

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/testkit"
)

const ingestManual = "../../../docs/INGEST.md"

var (
	manualTime = regexp.MustCompile(`"(time|last)":"[^"]*"`)
	manualID   = regexp.MustCompile(`"id":"01[0-9A-Z]{24}"`)
	manualRuns = regexp.MustCompile(`"took":\d+|\r|http://127\.0\.0\.1:\d+, running since .*`)
)

// alike is output without what differs from run to run: times of receipt, where
// and since when the collector runs, how long it took.
func alike(out string) string {
	out = manualTime.ReplaceAllStringFunc(out, func(s string) string {
		if strings.Contains(s, "2026-05-28T12:40:00") { // the examples' own
			return s
		}
		return s[:len(`"time":"`)] + `2026-11-22T04:30:00.000000000Z"`
	})
	out = manualID.ReplaceAllString(out, `"id":"01KM9V2Z0G4Y6X8V9T2B5C7DEF"`)
	return manualRuns.ReplaceAllStringFunc(out, func(s string) string {
		switch s[0] {
		case '"':
			return `"took":0`
		case 'h':
			return "http://127.0.0.1:4318, running since 2026-11-22 04:29:58"
		}
		return ""
	})
}

// Each example of docs/INGEST.md prints what the page shows.
func TestIngestManual(t *testing.T) {
	for _, program := range []string{"sh", "curl", "gzip", "logger", "grep"} {
		testkit.Program(t, program)
	}
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "rollway.yaml"), "limits: {max_past: 0}\n") // the examples grow old
	d, err := startDaemon(dir, nil, "-config", "rollway.yaml", "-listen-syslog", "tcp://127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.kill)
	syslog := regexp.MustCompile(`(?m)^  syslog +tcp 127\.0\.0\.1:(\d+)`).FindStringSubmatch(d.stdout.String())
	if syslog == nil {
		t.Fatalf("no address of syslog in\n%s", d.stdout.String())
	}
	run := func(line string) string {
		script := strings.NewReplacer("http://127.0.0.1:4318", d.addr, "-P 5514", "-P "+syslog[1]).Replace(line)
		if strings.HasPrefix(line, "rollway query") {
			script += " -addr " + d.addr
		}
		cmd := exec.Command("sh", "-c", script)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v", line, err)
		}
		return alike(string(out))
	}
	checkManual(t, ingestManual, 10, func(command, want string) string {
		got := run(command)
		// An event sent by syslog is stored some time later.
		for end := time.Now().Add(20 * time.Second); got != want && strings.HasPrefix(command, "rollway query") && time.Now().Before(end) && !*update; time.Sleep(20 * time.Millisecond) {
			got = run(command)
		}
		return got
	})
}

// Each way that the manual has for a token to be sent is understood.
func TestIngestManualTokens(t *testing.T) {
	text, err := os.ReadFile(ingestManual)
	if err != nil {
		t.Fatal(err)
	}
	const secret = "0123456789abcdef0123456789abcdef"
	tokens := filepath.Join(t.TempDir(), "tokens.yaml")
	writeFile(t, tokens, "- {name: w, secret: "+secret+"}\n")
	cfg := filepath.Join(t.TempDir(), "rollway.yaml")
	writeFile(t, cfg, fmt.Sprintf("access: {tokens: %q}\n", tokens))
	d := serveDaemon(t, "-config", cfg, "-data", filepath.Join(t.TempDir(), "data"))
	_, table, _ := strings.Cut(string(text), "\n| sent | by |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	encoded := regexp.MustCompile(`base64\(([^)]*)\)`)
	ways := 0
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(table, -1) {
		ways++
		way := encoded.ReplaceAllStringFunc(strings.ReplaceAll(m[1], "SECRET", secret), func(s string) string {
			return base64.StdEncoding.EncodeToString([]byte(encoded.FindStringSubmatch(s)[1]))
		})
		for _, suffix := range []string{"", "x"} { // the secret, and another
			way := strings.ReplaceAll(way, secret, secret+suffix)
			if suffix != "" && strings.Contains(m[1], "base64") {
				continue
			}
			query, isQuery := strings.CutPrefix(way, "?")
			target := d.addr + "/api/logs"
			if isQuery {
				target += "?" + query
			}
			req, err := http.NewRequest("POST", target, strings.NewReader(`{"msg":"by token"}`))
			if err != nil {
				t.Fatal(err)
			}
			if name, value, is := strings.Cut(way, ": "); is && !isQuery {
				req.Header.Set(name, value)
			}
			code, body := received(t)(http.DefaultClient.Do(req))
			if suffix == "" && code != 200 || suffix != "" && code != 401 {
				t.Errorf("%s: %d %s", way, code, body)
			}
		}
	}
	if ways != 9 {
		t.Errorf("%d ways found", ways)
	}
}
