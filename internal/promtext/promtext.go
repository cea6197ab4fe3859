// Package promtext publishes the Stats of this repository's packages: a table of
// metrics, written in the text format of Prometheus, and a histogram of durations.
// https://prometheus.io/docs/instrumenting/exposition_formats/
package promtext

import (
	"slices"
	"strconv"
	"time"

	"github.com/rollway/rollway/line"
)

// A Table lists metrics in the order in which Write writes them.
type Table []Metric

// A Metric is one row of a table: a name, and one sample or several with labels.
type Metric struct {
	name, kind, help string
	labels           []string // names of the labels of all samples
	samples          []Sample
}

// A Sample is one value of a metric.
type Sample struct {
	suffix string // after the metric's name
	value  float64
	labels []string // values of the metric's labels
}

// Of returns a sample of a metric with labels: its value, then those of the labels.
func Of[N int | int64 | uint64 | float64](n N, labels ...string) Sample {
	return Sample{value: float64(n), labels: labels}
}

// Counter returns a metric that only grows. Its name ends in _total.
func Counter(name, help string, n uint64) Metric { return Counters(name, help, nil, Of(n)) }

// Counters returns a counter with one sample for each combination of labels.
func Counters(name, help string, labels []string, samples ...Sample) Metric {
	return Metric{name, "counter", help, labels, samples}
}

// Gauge returns a metric that grows and falls.
func Gauge[N int | int64 | uint64 | float64](name, help string, n N) Metric {
	return Gauges(name, help, nil, Of(n))
}

// Gauges returns a gauge with one sample for each combination of labels.
func Gauges(name, help string, labels []string, samples ...Sample) Metric {
	return Metric{name, "gauge", help, labels, samples}
}

// Seconds returns a gauge of a duration.
func Seconds(name, help string, d time.Duration) Metric { return Gauge(name, help, d.Seconds()) }

// Flag returns a gauge that is 0 or 1.
func Flag(name, help string, on bool) Metric {
	if on {
		return Gauge(name, help, 1)
	}
	return Gauge(name, help, 0)
}

// Summary returns the sum and the number of some durations.
func Summary(name, help string, sum time.Duration, n uint64) Metric {
	return Metric{name, "summary", help, nil, []Sample{
		{suffix: "_sum", value: sum.Seconds()},
		{suffix: "_count", value: float64(n)},
	}}
}

// Durations returns what a Histogram has counted.
func Durations(name, help string, b Buckets) Metric {
	m := Metric{name, "histogram", help, []string{"le"}, nil}
	for i, bound := range b.Bounds {
		le := strconv.FormatFloat(bound.Seconds(), 'f', -1, 64)
		m.samples = append(m.samples, Sample{"_bucket", float64(b.Counts[i]), []string{le}})
	}
	m.samples = append(m.samples,
		Sample{"_bucket", float64(b.Count), []string{"+Inf"}},
		Sample{suffix: "_sum", value: b.Sum.Seconds()},
		Sample{suffix: "_count", value: float64(b.Count)})
	return m
}

// Ledger returns what became of the lines that a writer accepted.
func Ledger(l line.Ledger) Table {
	d := l.Dropped
	return Table{
		Counter("lines_accepted_total", "Lines accepted, including those dropped later.", l.Accepted),
		Counter("lines_written_total", "Lines that the destination has taken.", l.Written),
		Counters("lines_dropped_total", "Lines lost, by reason.", []string{"reason"},
			Of(d.Full, "full"), Of(d.TooLarge, "too_large"), Of(d.GaveUp, "gave_up"), Of(d.Refused, "refused"),
			Of(d.Expired, "expired"), Of(d.Damaged, "damaged"), Of(d.Shutdown, "shutdown")),
		Gauge("lines_pending", "Lines neither written nor dropped yet.", l.Pending),
		Counter("lines_rejected_total", "Lines given after Close.", l.Rejected),
	}
}

// Failure returns whether a destination fails, and when it last did unless last is zero.
func Failure(failing bool, last time.Time) Table {
	t := Table{Flag("failing", "1 while the destination fails or hangs.", failing)}
	if !last.IsZero() {
		t = append(t, Gauge("last_error_timestamp_seconds", "When the destination failed last.", float64(last.UnixMilli())/1e3))
	}
	return t
}

// Visit calls f for each sample of the counters and gauges: for a program that publishes
// them by a library.
func (t Table) Visit(f func(name, help string, counter bool, labels, values []string, v float64)) {
	for _, m := range t {
		for _, s := range m.samples {
			f(m.name, m.help, m.kind == "counter", m.labels, s.labels, s.value)
		}
	}
}

// Each returns one table for all items: the metrics that table returns for an item,
// with the labels and the values that table returns for them.
func Each[T any](items []T, labels []string, table func(T) (values []string, t Table)) (all Table) {
	for _, item := range items {
		values, t := table(item)
		for _, m := range t {
			i := slices.IndexFunc(all, func(have Metric) bool { return have.name == m.name })
			if i < 0 {
				i = len(all)
				all = append(all, Metric{m.name, m.kind, m.help, slices.Concat(labels, m.labels), nil})
			}
			for _, s := range m.samples {
				s.labels = slices.Concat(values, s.labels)
				all[i].samples = append(all[i].samples, s)
			}
		}
	}
	return all
}
