package published

import (
	"cmp"
	"fmt"
	"time"

	"github.com/rollway/rollway/bench/direct"
	"github.com/rollway/rollway/bench/ingest"
	"github.com/rollway/rollway/bench/internal/plot"
	"github.com/rollway/rollway/bench/internal/report"
	"github.com/rollway/rollway/bench/logger"
	"github.com/rollway/rollway/bench/relay"
	"github.com/rollway/rollway/bench/writers"
)

// frontPicture is the picture of the front page, beside the document.
const frontPicture = "benchmarks.svg"

// A headline is one figure of the front page, ours beside a rival's.
type headline struct {
	what, unit  string
	ours, rival float64
	rivalName   string
	short       string // rivalName in the picture; "": as it is
	more        bool   // more is better
	command     string
	section     string // of the document
}

// Front makes the front page of docs/BENCHMARKS.md from the raw results in a
// folder: ten figures that matter, and a picture of them.
func Front(dir string) (report.Report, error) {
	r, err := load(dir)
	if err != nil {
		return report.Report{}, err
	}
	return report.Make(func() report.Report {
		all := r.headlines()
		number := func(v float64) string {
			if v < 0.1 {
				return fmt.Sprintf("%.2g", v) // small figures keep their digits
			}
			return report.Number(v)
		}
		column := func(head string, cell func(headline) string) report.Column[headline] {
			return report.Column[headline]{Head: head, Cell: cell}
		}
		table := report.Of(all,
			column("figure", func(h headline) string { return h.what }),
			column("Rollway", func(h headline) string { return number(h.ours) + " " + h.unit }),
			column("rival", func(h headline) string { return number(h.rival) + " " + h.unit }),
			column("which is", func(h headline) string { return h.rivalName }),
			column("Rollway ÷ rival", func(h headline) string { return number(h.ours / h.rival) }),
			column("better is", func(h headline) string { return map[bool]string{true: "more", false: "less"}[h.more] }),
			column("command, details", func(h headline) string { return fmt.Sprintf("[`make %s`](%s)", h.command, h.section) }),
		)
		var panels []plot.BarPanel
		for i, h := range all {
			panels = append(panels, plot.BarPanel{Title: fmt.Sprintf("%d. %s", i+1, h.what), Unit: h.unit, Bars: []plot.Bar{
				{Name: "Rollway", Value: h.ours, Low: h.ours, High: h.ours, Own: true},
				{Name: cmp.Or(h.short, h.rivalName), Value: h.rival, Low: h.rival, High: h.rival},
			}})
		}
		return report.Report{
			Text: "\n" + table.String() + fmt.Sprintf("\n%s\n\n![the ten figures as bars](%s)\n\n", r.beside(), frontPicture),
			Pictures: map[string]string{
				frontPicture: plot.Bars("Ten figures of Rollway, each beside a rival's", "", panels),
			},
		}
	})
}

func (r *results) headlines() []headline {
	call := func(what string, c logger.Case, rivals []logger.Library) headline {
		best := logger.Best(r.logger, c, rivals[1:])
		ns := func(library string) float64 { return r.logger.At(c.Name, library, logger.Serial).Ns }
		return headline{what: what, unit: "ns", ours: ns(rivals[0].Name), rival: ns(best), rivalName: best, command: "bench-logger", section: "#the-logger"}
	}
	const slab = "slab 8 × 64 KiB"
	combo, rivalCombo := writers.BestFiles(r.writers)
	ms := func(d time.Duration) float64 { return float64(d) / 1e6 }
	stall := func(name string) float64 {
		return r.latency.At("10000 lines a second", name, "10 producers").Extra["due_p99"] / 1e6
	}
	file := func(name string) float64 { return r.writers.At("file", name, "file").Ns }
	request := func(name string) float64 { return r.requests.At("100 events", name, "serial").Ns / 1e3 }
	perCore := func(name string) float64 {
		best := ingest.Best(r.in.Rivals, name, 1)
		if best == nil {
			report.Miss("%s under load", name)
		}
		return best.PerCore()
	}
	cpu := func(name string) float64 { return relay.CPU(r.relay.At("upload", name, "sockets, TLS")) }
	long := r.headline.Long()
	lost := func(name string) float64 {
		lost, acknowledged := 0, 0
		for _, t := range r.reliability.Tries {
			if t.Fault == "kill -9 at random" && t.Writer == name {
				lost, acknowledged = lost+t.Silent, acknowledged+t.Acked
			}
		}
		if acknowledged == 0 {
			report.Miss("%s killed", name)
		}
		return 100 * float64(lost) / float64(acknowledged)
	}
	return []headline{
		call("a log call with 6 attributes", logger.CaseNamed("attrs-6"), logger.Libraries()),
		call("the same through a *slog.Logger", logger.SlogCase(), logger.SlogHandlers()),
		{what: "ten goroutines log to a file, each line", unit: "ns", ours: file(combo), rival: file(rivalCombo), rivalName: rivalCombo, short: "the best rival", command: "bench-writers", section: "#ten-goroutines-log-to-a-file"},
		{what: "late by, p99, while the destination stalls", unit: "ms", ours: stall(slab), rival: stall("zap BufferedWriteSyncer 256 KiB"), rivalName: "zap, buffered", command: "bench-latency", section: "#latency-while-the-destination-stalls"},
		{what: "acknowledged lines lost by 200 × kill -9", unit: "%", ours: lost("slab persisted"), rival: lost("zap BufferedWriteSyncer"), rivalName: "zap, buffered", command: "bench-reliability", section: "RELIABILITY.md"},
		{what: "records dropped at 300 MB/s", unit: "%", short: "published", ours: 100 * float64(long.Server.Dropped) / float64(max(1, long.Server.Dropped+long.Server.Accepted)), rival: direct.PublishedDropsPct, rivalName: "the publication's own figure", command: "bench-direct", section: "#a-grpc-server-that-logs-300-mb-a-second"},
		{what: "a request of 100 events", unit: "µs", ours: request(ingest.Buffered), rival: request(ingest.Pooled), rivalName: ingest.Pooled, command: "bench-ingest", section: "#taking-events-in"},
		{what: "p99 at 15,000 requests a second", unit: "ms", ours: ms(r.loadOf(ingest.Buffered, 15_000).Sent.Latency.P99), rival: ms(r.loadOf(ingest.Pooled, 15_000).Sent.Latency.P99), rivalName: ingest.Pooled, command: "bench-ingest", section: "#taking-events-in"},
		{what: "OTLP requests for a CPU second", unit: "req", ours: perCore(ingest.Buffered), rival: perCore(ingest.OtelFile), rivalName: "OpenTelemetry Collector", more: true, command: "bench-ingest", section: "#taking-events-in"},
		{what: "CPU of a TLS relay for a GiB", unit: "ms", ours: cpu(relay.Ours), rival: cpu("HAProxy"), rivalName: "HAProxy", command: "bench-relay", section: "RELAY.md"},
	}
}

// beside says what the rivals of the table store, and figures in which rivals are
// or were ahead.
func (r *results) beside() string {
	own, rotel := ingest.Best(r.in.Rivals, ingest.Buffered, 100), ingest.Best(r.in.Rivals, ingest.Rotel, 100)
	if own == nil || rotel == nil {
		report.Miss("Rotel under load")
	}
	raw := r.writers.At("raw", "slab 8 × 64 KiB", "1 on 1").Ns / r.writers.At("raw", "slab design as published 8 × 64 KiB", "1 on 1").Ns
	idle := r.relay.At("idle connections", relay.Ours, "sockets").Extra["bytes"] / r.relay.At("idle connections", "HAProxy", "sockets").Extra["bytes"]
	return fmt.Sprintf("Collectors store what they acknowledge: the OpenTelemetry Collector by file_storage, Rollway in its journal. Rotel, which stores nothing, takes %.0f requests of 100 events for a CPU second, Rollway %.0f.\n"+
		"One goroutine's Write of 256 bytes takes %.2f × that of the published slab design, and an idle plain connection of the relay %.1f × the memory of HAProxy's.",
		rotel.PerCore(), own.PerCore(), raw, idle)
}
