package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What one collector has rejected is kept, with where and why, and accepted by
// another with other limits.
func TestReplay(t *testing.T) {
	dir := t.TempDir()
	strict := filepath.Join(t.TempDir(), "strict.yaml")
	if err := os.WriteFile(strict, []byte("limits: {max_event: 256, max_depth: 4}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
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
	if err := d.stop(); err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(dir, "rejected", "rejected.ndjson")

	other := serveDaemon(t)
	r := cli(t, "", "replay", "-addr", other.addr, "-dry-run", kept)
	r.want(t, 0)
	if !strings.Contains(r.stderr, "6 rejected events read, 6 chosen, 3 of them sent as text") {
		t.Errorf("dry run says %s", r.stderr)
	}
	if lines := other.query(t, ""); len(lines) != 0 {
		t.Errorf("a dry run has sent %q", lines)
	}
	r = cli(t, "", "replay", "-addr", other.addr, "-reason", "too_large", kept)
	r.want(t, 0)
	if lines := other.query(t, ""); len(lines) != 1 || !strings.Contains(lines[0], "long long") {
		t.Errorf("chosen by reason: %q", lines)
	}
	r = cli(t, "", "replay", "-addr", other.addr, kept)
	r.want(t, 0)
	lines := other.query(t, "")
	all := strings.Join(lines, "\n")
	if len(lines) != 7 {
		t.Errorf("%d lines, want 1 and 6: %s", len(lines), all)
	}
	for _, want := range []string{
		`"attrs":{"a":{"b":{"c":{"d":1}}}}`, `"msg":"{\"msg\":"`, `"rejected":"syntax"`, "\ufffd", `"msg":"7"`, `"rejected":"not_object"`, `"msg":"[{\"msg\":\"a\"},"`,
	} {
		if !strings.Contains(all, want) {
			t.Errorf("%s is not among\n%s", want, all)
		}
	}
	r = cli(t, "", "replay", "-addr", other.addr, strict)
	r.want(t, 1)
	if !strings.Contains(r.stderr, "not a rejected event") {
		t.Errorf("a file of something else: %s", r.stderr)
	}
}
