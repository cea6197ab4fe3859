package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/deadletter"
	"github.com/rollway/rollway/internal/disk"
)

// What one collector has rejected is kept, with where and why, and accepted by
// another with other limits.
func TestReplay(t *testing.T) {
	dir := t.TempDir()
	strict := filepath.Join(t.TempDir(), "strict.yaml")
	writeFile(t, strict, "limits: {max_event: 256, max_depth: 4}\n")
	d := serveDaemon(t, "-config", strict, "-data", dir)
	long := `{"msg":"` + strings.Repeat("long ", 100) + `"}`
	body := `{"msg":"fine"}` + "\n" + long + "\n" + `{"msg":` + "\n" + `{"a":{"b":{"c":{"d":1}}}}` + "\n" + `"` + "\xff" + `"` + "\n" + `7`
	if code, answer := d.post(t, body); code != 200 || !strings.Contains(answer, `"accepted":1`) || !strings.Contains(answer, `"rejected_total":5`) {
		t.Fatalf("%d %s", code, answer)
	}
	if code, answer := d.post(t, `[{"msg":"a"},`); code != 400 {
		t.Fatalf("%d %s", code, answer)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if _, metrics := d.get(t, "/metrics"); strings.Contains(metrics, "\nrollway_dead_letters_kept_events 6\n") && strings.Contains(metrics, "\nrollway_dead_letters_dropped_events_total{reason=\"disk\"} 0\n") {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the metrics do not say that 6 rejected events are kept")
		}
	}
	d.end(t)
	kept := dir

	other := serveDaemon(t)
	r := cli(t, "", "replay", "-addr", other.addr, "-dry-run", kept)
	r.want(t, 0, "6 dead letters read, 6 chosen, 4 of them sent as text")
	if lines := other.query(t, ""); len(lines) != 0 || strings.Count(r.stdout, "\n") != 6 || !strings.Contains(r.stdout, long+"\n") {
		t.Errorf("a dry run has sent %q and printed %s", lines, r.stdout)
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
		`"attrs":{"a":{"b":{"c":{"d":1}}}}`, `"msg":"{\"msg\":"`, `"rejected":"syntax"`, `\ufffd`, `"msg":"7"`, `"rejected":"not_object"`, `"msg":"[{\"msg\":\"a\"},"`,
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
	r := cli(t, "", "replay", "-addr", again.addr, filepath.Join(dir, "rejected"))
	r.want(t, 0, "2 dead letters read, 2 chosen, 0 of them sent as text")
	want, got := direct.query(t, ""), again.query(t, "")
	if len(want) != 2 || !slices.Equal(got, want) || !strings.Contains(want[0], `"service":"shop","attrs":{"k":"v","service_name":"cart"}`) || !strings.Contains(want[1], `"host":"h"`) {
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
	d.post(t, long+long+"7\n7\n") // two and two that are alike: one dead letter each
	d.end(t)
	kept := path("strict/rejected")
	var text []byte
	files, err := deadletter.Files(disk.Real{}, kept)
	for _, name := range files {
		part, errPart := os.ReadFile(name)
		text, err = append(text, part...), errors.Join(err, errPart)
	}
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
	replay(one, kept, "2 events stored, 0 had been stored before", 2)
	replay(one, kept, "0 events stored, 2 had been stored before", 2)
	replay(one+"-2", copied, "0 events stored, 2 had been stored before", 2)
	replay(one, bare, "2 events stored, 0 had been stored before", 4) // nobody knows that it is the same
	replay(one, bare, "0 events stored, 2 had been stored before", 4)
	d.end(t)
	d = serve()
	replay(one, kept, "0 events stored, 2 had been stored before", 4)
	replay(one, bare, "0 events stored, 2 had been stored before", 4)
	replay(other, kept, "2 events stored, 0 had been stored before", 6)
	replay(other, kept, "0 events stored, 2 had been stored before", 6)
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
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if _, kept := d.get(t, "/api/rejected"); kept != "" {
			break
		}
	}
	r := cli(t, "", "replay", "-addr", d.addr, dir)
	r.want(t, 1, "1 dead letter read", "1 event not accepted", ".ndjson:1: ")
	r = cli(t, "", "replay", "-addr", d.addr, "-mark")
	r.want(t, 1, "1 dead letter read", "1 event not accepted", "/api/rejected:1: ")
	d.end(t)
	files, err := deadletter.Files(disk.Real{}, filepath.Join(dir, "rejected"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil || strings.Count(string(text), "\n") != 1 || !strings.Contains(string(text), `"count":           4,`) || !strings.Contains(string(text), `"replayed":false`) {
		t.Errorf("%v, %s", err, text)
	}
}

// The dead letters of a collector are found by filters, sent to it, and those that it has
// stored are marked: they are not sent again unless asked for. A token of a tenant has to do
// with its own.
func TestReplayFromCollector(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	const a, b, reader = "aaa-0123456789abcdef", "bbb-0123456789abcdef", "rdr-0123456789abcdef"
	writeFile(t, path("tokens.yaml"), "- {name: a, secret: "+a+", tenant: shop, may: [write, read]}\n- {name: b, secret: "+b+", tenant: bank, may: [write, read]}\n- {name: r, secret: "+reader+", tenant: shop, may: read}\n")
	config := func(limits string) string {
		name := path("config.yaml")
		writeFile(t, name, fmt.Sprintf("access: {tokens: %q}\nlimits: {max_event: %s}\n", path("tokens.yaml"), limits))
		return name
	}
	d := serveDaemon(t, "-config", config("256"), "-data", path("data"))
	long := func(text string) string { return `{"msg":"` + strings.Repeat(text+" ", 100) + `"}` }
	post := func(token, to, body string) {
		t.Helper()
		req, err := http.NewRequest("POST", d.addr+to, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	post(a, "/api/logs", long("one")+"\n"+long("two")+"\n7\n")
	post(a, "/_bulk", "{\"create\":{}}\n"+long("three")+"\n")
	post(b, "/api/logs", long("four")+"\n")
	d.end(t)
	d = serveDaemon(t, "-config", config("1MiB"), "-data", path("data"))
	replay := func(token string, code int, texts []string, args ...string) {
		t.Helper()
		t.Setenv("ROLLWAY_TOKEN", token)
		cli(t, "", append([]string{"replay", "-addr", d.addr}, args...)...).want(t, code, texts...)
	}
	replay(a, 0, []string{"3 dead letters read, 3 chosen", "3 events stored"}, "-reason", "too_large", "-mark")
	replay(a, 0, []string{"3 dead letters read, 0 chosen", "3 not sent, as they are marked"}, "-reason", "too_large", "-mark")
	replay(a, 0, []string{"1 dead letter read, 1 chosen", "1 had been stored before"}, "-receiver", "/_bulk", "-again")
	replay(a, 0, []string{"3 dead letters read, 1 chosen"}, "-text", "o", "-dry-run", "-until", "0s", "-since", "1h", "-receiver", "/api/logs", "-tenant", "shop", "-reason", "")
	replay(a, 1, []string{"403"}, "-tenant", "bank")
	replay(a, 0, []string{"0 dead letters read"}, "-until", "1h")
	replay(reader, 0, []string{"4 dead letters read, 1 chosen"}, "-dry-run")
	replay(b, 0, []string{"1 dead letter read, 1 chosen", "1 event stored"}, "-mark")
	d.end(t)
	cli(t, "", "replay", "-dry-run", path("data")).want(t, 0, "5 dead letters read, 1 chosen, 1 of them sent as text", "4 not sent")
}
