package ingest

import (
	"fmt"
	"strings"

	"github.com/rollway/rollway/bench/internal/measure"
)

// best returns the run of a server that held the most of a load, or nil.
func best(runs []Run, name string, events int) *Run {
	var found *Run
	for i := range runs {
		if r := &runs[i]; r.Server == name && r.Events == events && r.holds() && (found == nil || r.Rate > found.Rate) {
			found = r
		}
	}
	return found
}

// rivalTables writes the tables of ours beside the rivals, if they were measured.
func rivalTables(b *strings.Builder, runs []Run, left []string) {
	if len(runs) > 0 {
		fmt.Fprintf(b, "\n**Beside other collectors, by OTLP, against the targets**, runs of %s on %d connections\n\n%s",
			seconds(runs[0].Seconds), runs[0].Conns, rivalTargets(runs))
	}
	for _, l := range Loads() {
		t := measure.NewTable("server", "what an answer promises", "requests/s", "acknowledged", "errors", "p50", "p95", "p99", "CPU, cores", "requests per CPU second", "resident, most", "missing of events acknowledged", "twice")
		some := false
		for _, r := range runs {
			if r.Events != l.Events {
				continue
			}
			some = true
			missing, twice := "stores nothing", "–"
			if f := r.Found; f != nil {
				missing, twice = fmt.Sprintf("%d of %d", f.Missing, f.Acknowledged), fmt.Sprint(f.Repeated)
			}
			q := r.Sent.Latency
			t.Row(r.Server, promises[r.Server], fmt.Sprint(r.Rate), fmt.Sprintf("%d of %d", r.Sent.Acknowledged, r.Sent.Requests), fmt.Sprint(r.Sent.Errors),
				millis(q.P50), millis(q.P95), millis(q.P99), measure.Number(r.CPU), fmt.Sprintf("%.0f", r.perCore()), mebibytes(r.Resident), missing, twice)
		}
		if some {
			fmt.Fprintf(b, "\n**%d requests/s of %s by OTLP over HTTP, or the part of that which a server holds**\n\n%s", l.Rate, sizeCase(l.Events), t)
		}
	}
	for _, text := range left {
		fmt.Fprintf(b, "\nLeft out: %s\n", strings.Join(strings.Fields(text), " "))
	}
}

// rivalTargets holds ours against each rival that promises the same or less.
func rivalTargets(runs []Run) string {
	t := newTargets()
	for _, l := range Loads() {
		for _, pair := range []struct{ own, rival string }{
			{Buffered, OtelFile}, {Buffered, OtelMemory}, {Buffered, Rotel}, {Synced, OtelSynced},
		} {
			where := fmt.Sprintf("requests per CPU second, %s ÷ %s, %s a request", pair.own, pair.rival, sizeCase(l.Events))
			own, rival := best(runs, pair.own, l.Events), best(runs, pair.rival, l.Events)
			switch {
			case own == nil:
				t.row(where, "ours held no load", "> 1", false)
			case rival != nil:
				ratio := own.perCore() / rival.perCore()
				t.row(where, fmt.Sprintf("%.2f", ratio), "> 1", ratio > 1)
			}
		}
	}
	return t.String()
}
