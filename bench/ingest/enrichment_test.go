package ingest

import (
	"net/http"
	"strings"
	"testing"
)

// TestEnrichments: each is done to the events, and leaves none out.
func TestEnrichments(t *testing.T) {
	holds := map[string]string{
		"nothing configured":               `"attrs":{"customer_id":"cus_123",`,
		"two fields, host, ULID, tenant":   `"attrs":{"tenant":"shop","env":"prod","region_of":"eu-1","received_by":"collector-1","ulid":"`,
		"fingerprint":                      `"fingerprint":"`,
		"client, look-up among 3 networks": `"client_ip":"10.1.2.3","site":"muc"`,
		"redact a key that is there":       `"customer_id":"[REDACTED]"`,
	}
	for _, e := range enrichments() {
		run, err := e.subject(t.TempDir()).Prepare()
		if err != nil {
			t.Fatalf("%s: %v", e.name, err)
		}
		run.Loop(0, 3)
		_, err = run.Verify(3)
		run.Discard()
		if err != nil {
			t.Errorf("%s: %v", e.name, err)
		}
		o, err := e.own()
		if err != nil {
			t.Fatal(err)
		}
		if line := o.line(t); !strings.Contains(line, holds[e.name]) {
			t.Errorf("%s: %s", e.name, line)
		}
	}
}

// line returns the line of an event.
func (o own) line(t *testing.T) string {
	t.Helper()
	h, j, err := o.open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	x, err := newExchange(1)
	if err != nil {
		t.Fatal(err)
	}
	if code := x.serve(h, 0); code != http.StatusOK {
		t.Fatal(code)
	}
	r := j.NewReader(0)
	defer r.Close()
	frame, ok, err := r.TryNext()
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	return string(frame.Lines)
}
