package rollway

import (
	"io"

	"github.com/rollway/rollway/internal/promtext"
)

// WriteMetrics writes the Stats in the text format of Prometheus, for an answer to
// a scraper. labels are alternating names and values, such as "log", "audit"; all
// samples get them. Counters begin at 0 with the Logger. The error names a label
// that is not allowed, or is out's.
func (s Stats) WriteMetrics(out io.Writer, labels ...string) error {
	return promtext.Write(out, "logger", labels, promtext.Table{
		promtext.Counter("records_sampled_total", "Records that sampling left out and reported.", s.Sampled),
	}, promtext.Each(s.Outputs, []string{"output"}, func(o OutputStats) ([]string, promtext.Table) {
		return []string{o.Name}, append(promtext.Ledger(o.Ledger), promtext.Failure(o.Failing, o.LastErrorTime)...)
	}))
}
