package ingest

import (
	"net/http"
	"strings"
	"testing"

	"github.com/rollway/rollway/bench/internal/measure"
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

func TestEnrichmentTable(t *testing.T) {
	var b strings.Builder
	enrichmentTable(&b, nil, measure.Summary{})
	if b.Len() > 0 {
		t.Errorf("of nothing: %s", b.String())
	}
	sums := map[measure.Key]measure.Summary{{Case: caseEnriched, Library: "fingerprint", Mode: serial}: {Samples: 9, Ns: 51_000, MinNs: 50_000, MaxNs: 60_000, Allocs: 1}}
	enrichmentTable(&b, sums, measure.Summary{Ns: 50_000})
	if want := "| fingerprint | 51.0 (50.0–60.0) | 10 | 1 | 0 of 9 |\n"; !strings.HasSuffix(b.String(), want) {
		t.Errorf("got %swant at its end %s", b.String(), want)
	}
}
