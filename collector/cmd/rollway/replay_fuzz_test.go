package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/deadletter"
	"github.com/rollway/rollway/collector/reread"
)

// FuzzRejectedFile reads any file as one of rejected events: each line is counted,
// chosen ones become at least a line of JSON each, and of a line that is no dead letter
// the error says which.
func FuzzRejectedFile(f *testing.F) {
	f.Add([]byte(`{"time":"2026-05-28T12:40:00Z","receiver":"/api/logs","reason":"syntax","event":"{\"a\":}"}`+"\n"), "", "", false)
	f.Add([]byte(`{"receiver":"/v1/logs","tenant":"shop","reason":"too_large","base64":"KgIKAA==","context":"{}"}`+"\n"+`{"reason":"syntax","withheld":true}`), "too_large", "shop", true)
	f.Add([]byte(`{"receiver":"syslog","reason":"too_large","event":"<14>1 - h a - - - x","context":"192.0.2.7"}`+"\n"+`{"receiver":"Fluent forward","reason":"unsupported","base64":"?"}`+"\n7"), "", "", true)
	f.Add([]byte(`{"receiver":"/_bulk","reason":"too_deep","event":"{\"a\":[[]]}","cut":true,"context_cut":true}`+"\n"+`{"receiver":"/loki/api/v1/push","reason":"x","whole":true,"event":"{}"}`+"\n\n"), "", "", false)
	f.Fuzz(func(t *testing.T, data []byte, reason, tenant string, hasTenant bool) {
		name := filepath.Join(t.TempDir(), "rejected.ndjson")
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer null.Close()
		filter := deadletter.Filter{Reason: reason}
		if hasTenant {
			filter.Tenant = &tenant
		}
		r := &replayer{sender: sender{call: &call{stdout: newStream(null)}, options: sendOptions{dryRun: true}}, options: replayOptions{filter: filter}, same: map[string]int{}}
		err = r.file(t.Context(), name, name, nil)
		lines := bytes.Count(data, []byte("\n"))
		if len(data) > 0 && data[len(data)-1] != '\n' {
			lines++
		}
		if err == nil && r.read != lines && (r.read != lines-1 || bytes.HasSuffix(data, []byte("\n"))) || err != nil && (r.read > lines || !strings.Contains(err.Error(), name+":")) {
			t.Fatalf("%d of %d lines read: %v", r.read, lines, err)
		}
		if r.chosen+r.withheld+r.marked > r.read || r.texts > r.chosen || r.bare > r.chosen {
			t.Fatalf("%d read, %d chosen, %d withheld, %d as text, %d bare of %q", r.read, r.chosen, r.withheld, r.texts, r.bare, data)
		}
		keys := map[string]bool{}
		for line := range bytes.Lines(data) {
			var l deadletter.Entry
			if json.Unmarshal(line, &l) != nil || l.Reason == "" {
				break
			}
			key := r.key(&l, line)
			if keys[key] && l.ID == "" {
				t.Fatalf("two dead letters of %q have the key %s", data, key)
			}
			keys[key] = true
			body, _, err := reread.Line(&l, reread.NoLimits)
			if err != nil {
				continue
			}
			for event := range bytes.Lines(bytes.ToValidUTF8(body, []byte("\uFFFD"))) {
				if !json.Valid(event) || event[0] != '{' && event[0] != '[' {
					t.Fatalf("%q is sent for %q", event, line)
				}
			}
		}
	})
}
