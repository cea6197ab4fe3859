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
	mean := 0.0
	if s.Writes > 0 {
		mean = s.WriteTime.Seconds() / float64(s.Writes)
	}
	l := s.DroppedByLevel
	err := promtext.Write(out, "rollway_slab_", labels, promtext.Ledger(s.Ledger), promtext.Table{
		promtext.Counters("lines_dropped_by_level_total", "Lines lost, by level.", []string{"level"},
			promtext.Of(l.Debug, "debug"), promtext.Of(l.Info, "info"), promtext.Of(l.Warn, "warn"),
			promtext.Of(l.Error, "error"), promtext.Of(l.Unknown, "unknown")),
		promtext.Counter("lines_failed_over_total", "Lines that the failover has taken.", s.FailedOver),
		promtext.Counter("lines_recovered_total", "Lines left by earlier processes.", s.Recovered),
		promtext.Counter("accepted_bytes_total", "Bytes of the accepted lines.", s.BytesAccepted),
		promtext.Counter("written_bytes_total", "Bytes that the destinations have taken.", s.Bytes),
		promtext.Summary("write_duration_seconds", "Time of the calls of a destination's Write.", s.WriteTime, s.Writes),
		promtext.Gauge("write_duration_mean_seconds", "Mean of these times.", mean),
		promtext.Seconds("write_duration_max_seconds", "Longest of these times, or the age of a call in progress.", s.WriteMax),
		promtext.Counter("write_errors_total", "Calls that failed.", s.Errors),
		promtext.Seconds("stalled_seconds", "How long a call of a destination has been overdue, or 0.", s.Stalled),
		promtext.Seconds("oldest_line_age_seconds", "Age of the oldest pending line, or 0.", s.OldestAge),
		promtext.Gauge("memory_bytes", "Bytes of the slabs, which are fixed.", s.Memory),
		promtext.Gauge("slabs", "Slabs.", s.Slabs),
		promtext.Gauge("slabs_free", "Slabs not in use.", s.SlabsFree),
		promtext.Gauge("slabs_peak", "Most slabs in use at one time.", s.SlabsPeak),
		promtext.Gauge("waiting", "Calls that wait for room.", s.Waiting),
		promtext.Flag("failing_over", "1 while the failover is in use.", s.FailingOver),
	}, promtext.Failure(s.Failing, s.LastErrorTime))
	if err != nil {
		return fmt.Errorf("slab: write metrics: %w", err)
	}
	return nil
}
