package query

import (
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/journal"
	"github.com/rollway/rollway/internal/disktest"
	"github.com/rollway/rollway/internal/testkit"
)

// A regular expression that takes long for one line rests in it: the query ends in time, by its
// filter, by the columns of a packed block and by a pipe.
func TestSlowExpressionEnds(t *testing.T) {
	testkit.NoRace(t, "it bounds a time")
	const slow = `(?i)(.*a){150}q`
	for _, packed := range []bool{false, true} {
		s := openStore(t, journal.Options{Disk: disktest.NewMem(), SegmentBytes: 1 << 20, Pack: packed})
		for i := range 40 {
			s.add(t, testLine(i, "INFO", "shop"))
		}
		long := strings.Replace(testLine(50, "INFO", "shop"), `"attrs":{`, `"attrs":{"long":"`+strings.Repeat("a1 ", 300_000)+`",`, 1)
		s.add(t, long)
		if packed {
			s.add(t, strings.Repeat(testLine(60, "INFO", "x"), 1), long) // seals the segment
			waitFor(t, "packing", func() bool { return s.Stats().PackedSegments > 0 })
		}
		_, base := serve(t, s, Options{SearchTime: 50 * time.Millisecond})
		for _, q := range []string{`long=~"` + slow + `"`, `| parse long ~"(?P<x>` + slow + `)" | stats count() by x`} {
			begin := time.Now()
			resp, body, err := ask(t, base, "q", q)
			if took := time.Since(begin); took > 20*time.Second || resp.StatusCode == 200 && err == nil && resp.Trailer.Get("Rollway-Error") == "" {
				t.Errorf("packed %v: %.30s took %v: %d %.200s %v, %v", packed, q, took, resp.StatusCode, body, err, resp.Trailer)
			}
		}
	}
}
