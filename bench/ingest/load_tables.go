package ingest

import (
	"fmt"
	"strings"
	"time"

	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/bench/internal/plot"
)

// Targets under load.
const (
	maxP99Buffered = 10 * time.Millisecond
	maxP99Synced   = 25 * time.Millisecond
)

// FilePlot is the name of the picture of the servers' memory.
const FilePlot = Kind + ".svg"

func (run Run) load() string {
	return fmt.Sprintf("%d requests/s of %s", run.Rate, sizeCase(run.Events))
}

func millis(d time.Duration) string {
	return measure.Number(float64(d)/float64(time.Millisecond)) + " ms"
}

func mebibytes(n int64) string { return measure.Number(float64(n)/(1<<20)) + " MiB" }

// loadTables writes the tables of the runs.
func loadTables(b *strings.Builder, runs []Run) error {
	if len(runs) == 0 {
		return fmt.Errorf("servers under load: %w", errMissing)
	}
	fmt.Fprintf(b, "\n**Servers under load against the targets**, runs of %s on %d connections, the first %s of each not timed\n\n%s",
		seconds(runs[0].Seconds), runs[0].Conns, seconds(runs[0].Warm), loadTargets(runs))
	for _, l := range Loads() {
		t := measure.NewTable("server", "sent of due", "acknowledged", "errors", "mean", "p50", "p95", "p99", "p99.9", "max")
		u := measure.NewTable("server", "CPU, cores", "generator's", "others', % of a core", "resident, most", "heap, most", "GC cycles", "sent late by, p99", "events acknowledged", "missing", "twice", "not acknowledged, there")
		for _, r := range runs {
			if r.Rate != l.Rate || r.Events != l.Events {
				continue
			}
			s, q := r.Sent, r.Sent.Latency
			t.Row(r.Server, fmt.Sprintf("%d of %d", s.Sent, s.Requests), fmt.Sprint(s.Acknowledged), fmt.Sprint(s.Errors),
				millis(q.Mean), millis(q.P50), millis(q.P95), millis(q.P99), millis(q.P999), millis(q.Max))
			row := []string{r.Server, measure.Number(r.CPU), measure.Number(r.GenCPU), fmt.Sprintf("%.0f", r.Others),
				mebibytes(r.Resident), mebibytes(r.HeapPeak), fmt.Sprint(r.GCCycles), millis(s.Lag.P99)}
			if f := r.Found; f != nil {
				row = append(row, fmt.Sprint(f.Acknowledged), fmt.Sprint(f.Missing), fmt.Sprint(f.Repeated), fmt.Sprint(f.Unasked))
			} else {
				row = append(row, "stores nothing", "–", "–", "–")
			}
			u.Row(row...)
		}
		fmt.Fprintf(b, "\n**%d requests/s of %s**: from when a request was due to its answer\n\n%s\n%s", l.Rate, sizeCase(l.Events), t, u)
	}
	fmt.Fprintf(b, "\n![resident memory of the servers over time](results/%s)\n", FilePlot)
	return nil
}

func seconds(s float64) string { return measure.Number(s) + " s" }

func loadTargets(runs []Run) string {
	t := newTargets()
	for _, r := range runs {
		limit := maxP99Buffered
		switch r.Server {
		case Buffered:
		case Synced:
			limit = maxP99Synced
		default:
			continue
		}
		where := r.Server + ", " + r.load()
		t.row("p99, "+where, millis(r.Sent.Latency.P99), "≤ "+millis(limit), r.Sent.Latency.P99 <= limit)
		t.row("errors, "+where, fmt.Sprint(r.Sent.Errors), "0", r.Sent.Errors == 0)
		if f := r.Found; f != nil {
			wrong := f.Missing + f.Repeated + f.Foreign
			t.row("events acknowledged and missing, there twice, or never sent, "+where, fmt.Sprintf("%d of %d", wrong, f.Acknowledged), "0", wrong == 0 && f.Acknowledged > 0)
		}
	}
	return t.String()
}

// Plot draws the resident memory of the servers over time as SVG.
func Plot(r *Results) string {
	var panels []plot.LinePanel
	for _, l := range Loads() {
		panel := plot.LinePanel{Title: fmt.Sprintf("%d requests/s of %s", l.Rate, sizeCase(l.Events))}
		for _, run := range r.Runs {
			if run.Rate == l.Rate && run.Events == l.Events {
				panel.Lines = append(panel.Lines, curve(run))
			}
		}
		panels = append(panels, panel)
	}
	return plot.Lines("Resident memory of the servers", "seconds", "MiB", panels)
}

// curve has at most a dozen points, each the most of its part of the run: as
// many as can be told apart.
func curve(r Run) plot.Line {
	const points = 12
	line := plot.Line{Name: r.Server}
	for i := range points {
		part := r.Series[i*len(r.Series)/points : (i+1)*len(r.Series)/points]
		if len(part) == 0 {
			continue
		}
		most := int64(0)
		for _, p := range part {
			most = max(most, p.Resident)
		}
		end := r.Seconds * float64(i+1) / points // the same for all servers
		line.X, line.Y = append(line.X, end), append(line.Y, float64(most)/(1<<20))
	}
	return line
}
