//go:build !race

// Without the race detector: phuslu/log's AsyncWriter sets itself up at its
// first Write without a lock, which the detector reports.

package writers

import (
	"io"
	"log"
	"os"
	"testing"

	"github.com/rollway/rollway/bench/internal/measure"
)

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // zerolog's diode prints a line for each collision
	os.Exit(m.Run())
}

func TestNoWriterTearsRepeatsOrReorders(t *testing.T) {
	if err := Check(5_000); err != nil {
		t.Error(err)
	}
}

// TestEverySubjectRuns: each verifies its lines and fails if one is missing.
func TestEverySubjectRuns(t *testing.T) {
	dir := t.TempDir()
	for name, subjects := range map[string][]measure.Subject{"raw": RawSubjects(), "file": FileSubjects(dir), "published": PublishedSubjects(dir)} {
		samples, err := measure.Measure(io.Discard, measure.Plan{Rounds: 1, Ops: 2_000}, subjects)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, s := range samples {
			if n := s.Extra["line_bytes"]; name == "file" && (n < LineBytes-4 || n > LineBytes) {
				t.Errorf("%s: lines of %.1f bytes, want %d", s.Library, n, LineBytes)
			}
		}
	}
}
