package receivertest

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/remote"
)

// TestRemote has this project's own writer for Loki send canonical lines, which
// come out as they went in except for the label of the service.
func TestRemote(t *testing.T) {
	s := Run(t, nil)
	w, err := remote.Open("loki+"+s.URL, remote.Options{Timeout: time.Minute, Header: http.Header{"X-Scope-OrgID": {"shop"}}, Loki: remote.Loki{Labels: map[string]string{"app": "shop"}}})
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	at := time.Now().UTC().Truncate(time.Microsecond)
	for i, level := range strings.Fields("TRACE DEBUG DEBUG+2 INFO INFO+2 WARN ERROR ERROR+1 PANIC FATAL FATAL+2") {
		line, err := json.Marshal(map[string]any{"n": i, "text": "quoted \"and\"\nmore", "deep": []any{1, map[string]any{"k": nil}}})
		if err != nil {
			t.Fatal(err)
		}
		front := `{"time":"` + at.Add(time.Duration(i)*time.Microsecond).Format("2006-01-02T15:04:05.000000000Z") + `","level":"` + level + `","msg":"m"`
		want = append(want, front+`,"service":"shop","attrs":`+string(line)+`}`)
		if _, err := w.Write([]byte(front + `,"attrs":` + string(line) + "}\n")); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, line := range s.Lines(t) {
		got[line] = true
	}
	for _, line := range want {
		if !got[line] {
			t.Errorf("missing %s\nin %q", line, s.Lines(t))
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d lines, want %d", len(got), len(want))
	}
}

// TestLokiFluentBit has Fluent Bit send, or where it is not, what it once sent.
func TestLokiFluentBit(t *testing.T) {
	const head = "    name loki\n    host HOST\n    port PORT\n"
	Agents(t, FluentBit, map[string]string{
		"loki/fluent-bit":          head,
		"loki/fluent-bit-metadata": head + "    labels job=shop, $level\n    structured_metadata $n, host=web-1\n    structured_metadata_map_keys $nested\n    tenant_id one\n    compress gzip\n",
		"loki/fluent-bit-line":     head + "    line_format key_value\n    remove_keys tags, nested\n",
	})
}
