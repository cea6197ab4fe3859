package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What one collector has rejected is kept, with where and why, and accepted by
// another with other limits.
func TestReplay(t *testing.T) {
	dir := t.TempDir()
	strict := filepath.Join(t.TempDir(), "strict.yaml")
	writeFile(t, strict, "limits: {max_event: 256, max_depth: 4}\n")
	d := serveDaemon(t, "-config", strict, "-data", dir)
	long := `{"msg":"` + strings.Repeat("long ", 100) + `"}`
	body := `{"msg":"fine"}` + "\n" + long + "\n" + `{"msg":` + "\n" + `{"a":{"b":{"c":{"d":1}}}}` + "\n" + `{"msg":"` + "\xff" + `"}` + "\n" + `7`
	if code, answer := d.post(t, body); code != 200 || !strings.Contains(answer, `"accepted":1`) || !strings.Contains(answer, `"rejected_total":5`) {
		t.Fatalf("%d %s", code, answer)
	}
	if code, answer := d.post(t, `[{"msg":"a"},`); code != 400 {
		t.Fatalf("%d %s", code, answer)
	}
	if _, metrics := d.get(t, "/metrics"); !strings.Contains(metrics, "\nrollway_events_rejected_kept_total 6\n") || !strings.Contains(metrics, "\nrollway_events_rejected_lost_total 0\n") {
		t.Error("the metrics do not say that 6 rejected events are kept")
	}
	d.end(t)
	kept := filepath.Join(dir, "rejected", "rejected.ndjson")

	other := serveDaemon(t)
	r := cli(t, "", "replay", "-addr", other.addr, "-dry-run", kept)
	r.want(t, 0, "6 rejected events read, 6 chosen, 3 of them sent as text")
	if lines := other.query(t, ""); len(lines) != 0 {
		t.Errorf("a dry run has sent %q", lines)
	}
	r = cli(t, "", "replay", "-addr", other.addr, "-reason", "too_large", kept)
	r.want(t, 0, "1 event stored, 0 had been stored before")
	if lines := other.query(t, ""); len(lines) != 1 || !strings.Contains(lines[0], "long long") {
		t.Errorf("chosen by reason: %q", lines)
	}
	r = cli(t, "", "replay", "-addr", other.addr, kept)
	r.want(t, 0)
	lines := other.query(t, "")
	all := strings.Join(lines, "\n")
	if len(lines) != 6 || !strings.Contains(r.stderr, "5 events stored, 1 had been stored before") {
		t.Errorf("%d lines, want 6: %s\n%s", len(lines), all, r.stderr)
	}
	for _, want := range []string{
		`"attrs":{"a":{"b":{"c":{"d":1}}}}`, `"msg":"{\"msg\":"`, `"rejected":"syntax"`, "\ufffd", `"msg":"7"`, `"rejected":"not_object"`, `"msg":"[{\"msg\":\"a\"},"`,
	} {
		if !strings.Contains(all, want) {
			t.Errorf("%s is not among\n%s", want, all)
		}
	}
	r = cli(t, "", "replay", "-addr", other.addr, strict)
	r.want(t, 1, "not an event of a dead letter queue")
}

// Events of receivers that were too long are, sent again, the lines that they would
// have been, labels and resource included.
func TestReplayOfReceivers(t *testing.T) {
	dir := t.TempDir()
	strict := filepath.Join(t.TempDir(), "strict.yaml")
	writeFile(t, strict, "limits: {max_event: 256}\n")
	long := strings.Repeat("long ", 100)
	requests := []struct{ path, body string }{
		{"/loki/api/v1/push", `{"streams":[{"stream":{"app":"shop","service_name":"cart"},"values":[["1779972000000000001","` + long + `",{"k":"v"}]]}]}`},
		{"/v1/logs", `{"resourceLogs":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"shop"}},{"key":"host.name","value":{"stringValue":"h"}}]},"scopeLogs":[{"scope":{"name":"cart"},"logRecords":[{"timeUnixNano":"1779972000000000002","body":{"stringValue":"` + long + `"}}]}]}]}`},
	}
	send := func(addr string) {
		for _, r := range requests {
			resp, err := http.Post(addr+r.path, "application/json", strings.NewReader(r.body))
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
		}
	}
	d := serveDaemon(t, "-config", strict, "-data", dir)
	send(d.addr)
	d.end(t)
	direct, again := serveDaemon(t), serveDaemon(t)
	send(direct.addr)
	r := cli(t, "", "replay", "-addr", again.addr, filepath.Join(dir, "rejected", "rejected.ndjson"))
	r.want(t, 0, "2 rejected events read, 2 chosen, 0 of them sent as text")
	want, got := direct.query(t, ""), again.query(t, "")
	if len(want) != 2 || !slices.Equal(got, want) || !strings.Contains(want[0], `"service":"shop","attrs":{"k":"v","service_name":"cart"}`) || !strings.Contains(want[1], `"host.name":"h"`) {
		t.Errorf("sent again:\n%s\nat once:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A dead letter that is sent again is stored once: by a second run, from a copy of the
// file, after a restart of the collector; for a tenant by whatever token of it.
func TestReplayTwice(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string) string {
		t.Helper()
		writeFile(t, path(name), text)
		return path(name)
	}
	write("strict.yaml", "limits: {max_event: 256}\n")
	d := serveDaemon(t, "-config", path("strict.yaml"), "-data", path("strict"))
	long := `{"msg":"` + strings.Repeat("long ", 100) + `"}` + "\n"
	d.post(t, long+long+"7\n7\n") // two and two that are alike
	d.end(t)
	kept := path("strict/rejected/rejected.ndjson")
	text, err := os.ReadFile(kept)
	if err != nil {
		t.Fatal(err)
	}
	copied := write("copy.ndjson", string(text))
	bare := write("bare.ndjson", regexp.MustCompile(`"id":"[0-9A-Z]{26}",`).ReplaceAllString(string(text), ""))

	const one, other, reader = "one-0123456789abcdef", "two-0123456789abcdef", "rdr-0123456789abcdef"
	write("tokens.yaml", "- {name: one, secret: "+one+", tenant: shop}\n- {name: same, secret: "+one+"-2, tenant: shop}\n"+
		"- {name: two, secret: "+other+", tenant: bank}\n- {name: r, secret: "+reader+", may: read}\n")
	write("lenient.yaml", fmt.Sprintf("access: {tokens: %q}\n", path("tokens.yaml")))
	serve := func() *daemon { return serveDaemon(t, "-config", path("lenient.yaml"), "-data", path("lenient")) }
	d = serve()
	replay := func(token, file, want string, lines int) {
		t.Helper()
		t.Setenv("ROLLWAY_TOKEN", token)
		r := cli(t, "", "replay", "-addr", d.addr, file)
		r.want(t, 0, want)
		t.Setenv("ROLLWAY_TOKEN", reader)
		r = cli(t, "", "query", "-addr", d.addr, "-limit", "1000")
		r.want(t, 0)
		if n := strings.Count(r.stdout, "\n"); n != lines {
			t.Errorf("%d lines are stored, want %d", n, lines)
		}
	}
	replay(one, kept, "4 events stored, 0 had been stored before", 4)
	replay(one, kept, "0 events stored, 4 had been stored before", 4)
	replay(one+"-2", copied, "0 events stored, 4 had been stored before", 4)
	replay(one, bare, "4 events stored, 0 had been stored before", 8) // nobody knows that it is the same
	replay(one, bare, "0 events stored, 4 had been stored before", 8)
	d.end(t)
	d = serve()
	replay(one, kept, "0 events stored, 4 had been stored before", 8)
	replay(one, bare, "0 events stored, 4 had been stored before", 8)
	replay(other, kept, "4 events stored, 0 had been stored before", 12)
	replay(other, kept, "0 events stored, 4 had been stored before", 12)
}

// What a collector rejects again it adds to the file that is being read, which
// does not make the run endless.
func TestReplayToTheSame(t *testing.T) {
	dir := t.TempDir()
	strict := filepath.Join(t.TempDir(), "strict.yaml")
	writeFile(t, strict, "limits: {max_event: 256}\n")
	d := serveDaemon(t, "-config", strict, "-data", dir)
	long := `{"msg":"` + strings.Repeat("long ", 100) + `"}` + "\n"
	d.post(t, long+long)
	kept := filepath.Join(dir, "rejected", "rejected.ndjson")
	r := cli(t, "", "replay", "-addr", d.addr, kept)
	r.want(t, 1)
	if !strings.Contains(r.stderr, "2 rejected events read") || !strings.Contains(r.stderr, "2 events not accepted") || !strings.Contains(r.stderr, kept+":2: ") {
		t.Error(r.stderr)
	}
	text, err := os.ReadFile(kept)
	if err != nil || strings.Count(string(text), "\n") != 4 {
		t.Errorf("%v, %d dead letters, want 4", err, strings.Count(string(text), "\n"))
	}
}
