package slab

import (
	"fmt"
	"io"

	"github.com/rollway/rollway/internal/promtext"
)

// WriteMetrics writes s in the text format of Prometheus, for an answer to a
// scraper. labels are names and values by turns, such as "log", "audit"; all
// samples get them. Counters begin at 0 with the Writer, times are in seconds.
// The error names a label that is not allowed, or is out's.
func (s Stats) WriteMetrics(out io.Writer, labels ...string) error {
	p, err := promtext.New("rollway_slab_", labels, "level")
	if err != nil {
		return fmt.Errorf("slab: write metrics: %w", err)
	}
	p.Ledger(s.Ledger)
	p.Family("lines_dropped_by_level_total", "counter", "Lines lost, by level.")
	for _, l := range [...]struct {
		level string
		n     uint64
	}{
		{"debug", s.DroppedByLevel.Debug}, {"info", s.DroppedByLevel.Info}, {"warn", s.DroppedByLevel.Warn},
		{"error", s.DroppedByLevel.Error}, {"unknown", s.DroppedByLevel.Unknown},
	} {
		p.Sample("lines_dropped_by_level_total", float64(l.n), "level", l.level)
	}
	p.Counter("lines_failed_over_total", "Lines that the failover has taken.", s.FailedOver)
	p.Counter("lines_recovered_total", "Lines left by earlier processes.", s.Recovered)
	p.Counter("accepted_bytes_total", "Bytes of the accepted lines.", s.BytesAccepted)
	p.Counter("written_bytes_total", "Bytes that the destinations have taken.", s.Bytes)
	p.Family("write_duration_seconds", "summary", "Time of the calls of a destination's Write.")
	p.Sample("write_duration_seconds_sum", s.WriteTime.Seconds())
	p.Sample("write_duration_seconds_count", float64(s.Writes))
	mean := 0.0
	if s.Writes > 0 {
		mean = s.WriteTime.Seconds() / float64(s.Writes)
	}
	p.Gauge("write_duration_mean_seconds", "Mean of these times.", mean)
	p.Gauge("write_duration_max_seconds", "Longest of these times, or the age of a call under way.", s.WriteMax.Seconds())
	p.Counter("write_errors_total", "Calls that failed.", s.Errors)
	p.Gauge("stalled_seconds", "How long a call of a destination has lasted that should have returned, or 0.", s.Stalled.Seconds())
	p.Gauge("oldest_line_age_seconds", "Age of the oldest pending line, or 0.", s.OldestAge.Seconds())
	p.Gauge("memory_bytes", "Bytes of the slabs, which are fixed.", float64(s.Memory))
	p.Gauge("slabs", "Slabs.", float64(s.Slabs))
	p.Gauge("slabs_free", "Slabs in no use.", float64(s.SlabsFree))
	p.Gauge("slabs_peak", "Most slabs in use at one time.", float64(s.SlabsPeak))
	p.Gauge("waiting", "Calls that wait for room.", float64(s.Waiting))
	p.Flag("failing_over", "1 while the failover is in use.", s.FailingOver)
	p.Failure(s.Failing, s.LastErrorTime)
	_, err = p.WriteTo(out)
	return err
}
