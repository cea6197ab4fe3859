// Package examples runs the programs below it and checks what they write.
package examples

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestZap(t *testing.T)     { check(t, "zap", "msg") }
func TestZerolog(t *testing.T) { check(t, "zerolog", "message") }

func check(t *testing.T, program, messageKey string) {
	binary := filepath.Join(t.TempDir(), program+".exe")
	if out, err := exec.Command("go", "build", "-o", binary, "./"+program).CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(binary)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil || stderr.Len() > 0 {
		t.Fatalf("%v, it said %q", err, &stderr)
	}
	var got []map[string]any
	for line := range bytes.Lines(stdout.Bytes()) {
		var event map[string]any
		if err := json.Unmarshal(line, &event); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		got = append(got, event)
	}
	if len(got) != 2 {
		t.Fatalf("%d lines, want 2: %s", len(got), &stdout)
	}
	if e := got[0]; e[messageKey] != "charged" || e["level"] != "info" || e["customer"] != "cus_123" || e["retry"] != 2.0 {
		t.Errorf("first line: %v", e)
	}
	if e := got[1]; e[messageKey] != "card expires soon" || e["level"] != "warn" || e["month"] != 12.0 {
		t.Errorf("second line: %v", e)
	}
}
