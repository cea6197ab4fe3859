package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzRejectedFile reads any file as one of rejected events: each line is counted,
// chosen ones become at least a line of JSON each, and of a line that is no letter
// the error says which.
func FuzzRejectedFile(f *testing.F) {
	f.Add([]byte(`{"time":"2026-05-28T12:40:00Z","door":"/api/logs","reason":"syntax","event":"{\"a\":}"}`+"\n"), "", "", false)
	f.Add([]byte(`{"door":"/v1/logs","tenant":"shop","reason":"too_large","base64":"KgIKAA==","context":"{}"}`+"\n"+`{"reason":"syntax","withheld":true}`), "too_large", "shop", true)
	f.Add([]byte(`{"door":"syslog","reason":"too_large","event":"<14>1 - h a - - - x","context":"192.0.2.7"}`+"\n"+`{"door":"Fluent forward","reason":"unsupported","base64":"?"}`+"\n7"), "", "", true)
	f.Add([]byte(`{"door":"/_bulk","reason":"too_deep","event":"{\"a\":[[]]}","cut":true,"context_cut":true}`+"\n"+`{"door":"/loki/api/v1/push","reason":"x","whole":true,"event":"{}"}`+"\n\n"), "", "", false)
	f.Fuzz(func(t *testing.T, data []byte, reason, tenant string, hasTenant bool) {
		name := filepath.Join(t.TempDir(), "rejected.ndjson")
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		var tally replayTally
		var out bytes.Buffer
		err := tally.files(&out, replayOptions{reason: reason, tenant: tenant, hasTenant: hasTenant}, []string{name})
		lines := bytes.Count(data, []byte("\n"))
		if len(data) > 0 && data[len(data)-1] != '\n' {
			lines++
		}
		if err == nil && tally.read != lines || err != nil && (tally.read >= lines && tally.chosen == 0 || !strings.Contains(err.Error(), name+":")) {
			t.Fatalf("%d of %d lines read: %v", tally.read, lines, err)
		}
		failed := 0
		if err != nil && !strings.Contains(err.Error(), "not a rejected event") {
			failed = 1 // the one chosen last
		}
		written := 0
		for line := range bytes.Lines(out.Bytes()) {
			written++
			if !json.Valid(line) || line[0] != '{' && line[0] != '[' {
				t.Fatalf("%q is sent for %q", line, data)
			}
		}
		if written < tally.chosen-failed || tally.chosen+tally.withheld > tally.read || tally.texts > tally.chosen || tally.bare > tally.chosen || tally.chosen == 0 && written > 0 {
			t.Fatalf("%+v, %d lines are sent for %q: %v", tally, written, data, err)
		}
	})
}
