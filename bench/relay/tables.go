package relay

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/rollway/rollway/bench/internal/measure"
)

// figures are the summaries with ways to ask for them.
type figures map[measure.Key]measure.Summary

var errNoSamples = errors.New("no samples: measure again")

// get returns a summary; ok is false where a relay was not measured.
func (f figures) get(where, library, mode string) (measure.Summary, bool) {
	s, ok := f[measure.Key{Case: where, Library: library, Mode: mode}]
	return s, ok
}

const perGiB = float64(1<<30) / 1e6 // ns for each byte to ms for a GiB

func cpuMs(s measure.Summary) float64 { return s.CPUNs * perGiB }
func mbps(s measure.Summary) float64  { return 1000 / s.Ns }

// Tables makes the part of the document that is measured.
func (r *Results) Tables() (string, error) {
	f := figures(r.summarize())
	text := "\n" + r.circumstances()
	targets := func(f figures) (string, error) { return bars(f, r.cpuRatio) }
	for _, section := range []func(figures) (string, error){targets, bulkTable, idleTable, latencyTable, pictureLinks, publishedTables} {
		made, err := section(f)
		if err != nil {
			return "", err
		}
		text += made
	}
	return text + "\n", nil
}

func (r *Results) circumstances() string {
	var b strings.Builder
	if len(r.Parts) > 0 {
		m := r.Parts[0].Machine
		fmt.Fprintf(&b, "%s, GOMAXPROCS=%d, %s, %d cores, %s; raw results: [relay.json](results/relay.json).", r.Parts[0].Go, m.GOMAXPROCS, m.CPU, m.Cores, m.System)
	}
	b.WriteString(" Other relays:")
	for _, name := range slices.Sorted(maps.Keys(r.Programs)) {
		b.WriteString(" " + r.Programs[name] + ";")
	}
	text := strings.TrimSuffix(b.String(), ";") + ".\n\n"
	t := measure.NewTable("part", "date", "commit", "rounds", "seconds", "samples", "of them while others used > 20 % of a core")
	for _, p := range r.Parts {
		noisy := 0
		for _, s := range p.Samples {
			if s.OthersPct > 20 {
				noisy++
			}
		}
		t.Row("`bench relay -only "+p.Group+"`", p.Date, p.Commit, fmt.Sprint(p.Rounds), measure.Count(math.Round(p.Seconds)), fmt.Sprint(len(p.Samples)), fmt.Sprint(noisy))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Missing)) {
		text += fmt.Sprintf("Not measured: %s, for want of %s.\n\n", name, r.Missing[name])
	}
	return text + t.String()
}

func verdict(ok bool) string {
	if ok {
		return "yes"
	}
	return "**no**"
}

// best is the least value among the relays that were measured.
func best(names []string, value func(name string) (float64, bool)) (name string, least float64) {
	least = math.Inf(1)
	for _, n := range names {
		if v, ok := value(n); ok && v < least {
			name, least = n, v
		}
	}
	return name, least
}

// goPeers are those of the bars.
var goPeers = []string{Splice, poolName(4), poolName(16), poolName(64)}

var haproxies = []string{"HAProxy", "HAProxy, splice"}

// bars holds our relay against what it set out to reach.
func bars(f figures, cpuRatio func(where, a, b, mode string) float64) (string, error) {
	t := measure.NewTable("figure", "ours", "target", "reached")
	row := func(title, own, target string, ok bool) { t.Row(title, own, target, verdict(ok)) }
	for _, dir := range []string{caseUpload, caseDownload} {
		value := func(mode string) func(string) (float64, bool) {
			return func(name string) (float64, bool) {
				s, ok := f.get(dir, name, mode)
				return cpuMs(s), ok
			}
		}
		own, ok := value(modeRaw)(Ours)
		splice, ok2 := value(modeRaw)(Splice)
		if !ok || !ok2 {
			return "", fmt.Errorf("%s: %w", dir, errNoSamples)
		}
		row("plain "+dir+", CPU per GiB", ms(own), fmt.Sprintf("≤ 1.05 × io.Copy by splice, %s (is %.2f)", ms(splice), own/splice), own <= 1.05*splice)
		if name, least := best(haproxies, value(modeRaw)); name != "" {
			row("plain "+dir+", CPU per GiB", ms(own), "< "+name+", "+ms(least), own < least)
		}
		if own, ok := value(modeTLS)(Ours); ok {
			name, least := best(goPeers, value(modeTLS))
			row("TLS "+dir+", CPU per GiB", ms(own), "≤ "+name+", "+ms(least), own <= least)
		}
	}
	for _, mode := range []string{modeRaw, modeTLS} {
		for _, test := range []string{caseMTUUp, caseMTUDown, caseSmallUp, caseSmallDown} {
			own, ok := f.get(test, Ours, mode)
			if !ok {
				continue
			}
			// The least of many noisy medians is no relay: each is compared with by rounds.
			rival, most := "", 0.0
			for _, c := range contenders() {
				if ratio := cpuRatio(test, Ours, c.name, mode); !c.job.Own && ratio > most {
					rival, most = c.name, ratio
				}
			}
			if rival != "" {
				s, _ := f.get(test, rival, mode)
				row(wire(mode)+": "+test+", CPU per GiB", ms(cpuMs(own)), fmt.Sprintf("≤ 1.1 × the best, which is %s, %s (is %.2f, the median of rounds)", rival, ms(cpuMs(s)), most), most <= 1.1)
			}
		}
	}
	for _, bar := range []struct {
		mode, title string
		kib, fds    float64
	}{{modeRaw, "plain", 10, 2}, {modeTLS, "TLS", 35, 2}} {
		if s, ok := f.get(caseIdle, Ours, bar.mode); ok {
			title := fmt.Sprintf("%s, each of %.0f idle connections", bar.title, s.Extra["conns"])
			row(title, kib(s.Extra["bytes"]), fmt.Sprintf("≤ %.0f KiB", bar.kib), s.Extra["bytes"] <= bar.kib*1024)
			row(title, descriptors(s)+" descriptors", "≤ "+measure.Count(bar.fds), math.Round(10*s.Extra["descriptors"]) <= 10*bar.fds)
		}
	}
	for _, mode := range []string{modeRaw, modeTLS} {
		s, ok := f.get(caseLatency, Ours, mode)
		base, ok2 := f.get(caseLatency, direct, mode)
		if !ok || !ok2 {
			continue
		}
		for _, q := range []struct {
			name, title string
			bound       float64
		}{{"p50", "p50", 30e3}, {"p99", "p99", 100e3}} {
			added := s.Extra[q.name] - base.Extra[q.name]
			row(wire(mode)+": added latency, "+q.title, micros(added), "≤ "+micros(q.bound), added <= q.bound)
		}
	}
	return "\n### Against the targets\n\n" + t.String(), nil
}

// wire names a mode in a row of its own.
func wire(mode string) string { return map[string]string{modeRaw: "plain", modeTLS: "TLS"}[mode] }

func ms(v float64) string     { return measure.Number(v) + " ms" }
func micros(v float64) string { return measure.Number(v/1000) + " µs" }
func kib(v float64) string    { return measure.Number(v/1024) + " KiB" }
func mib(v float64) string    { return measure.Number(v / (1 << 20)) }
func mb(v float64) string     { return measure.Number(v / 1e6) }

func descriptors(s measure.Summary) string {
	return measure.Count(math.Round(10*s.Extra["descriptors"]) / 10)
}

// names lists all relays in order.
func names() []string {
	var all []string
	for _, c := range contenders() {
		all = append(all, c.name)
	}
	return all
}

// rows adds a row for each relay that was measured; cells returns nil if not.
func rows(t *measure.Table, cells func(name string) []string) {
	for _, name := range names() {
		if c := cells(name); c != nil {
			t.Row(append([]string{name}, c...)...)
		}
	}
}

func bulkTable(f figures) (string, error) {
	text := "\n### Bulk\n\nOne connection, writes of 64 KiB. CPU is that of the relay's process: medians; the picture has the least and the most. HAProxy, nginx, socat and stunnel run with the buffers they come with. Reads are calls of read(2); other relays use recv(2), which the kernel does not count.\n"
	for _, mode := range []string{modeRaw, modeTLS} {
		t := measure.NewTable("relay", "upload MB/s", "CPU ms per GiB", "reads per GiB", "download MB/s", "CPU ms per GiB", "reads per GiB")
		rows(t, func(name string) []string {
			var cells []string
			for _, dir := range []string{caseUpload, caseDownload} {
				s, ok := f.get(dir, name, mode)
				if !ok {
					return nil
				}
				cells = append(cells, measure.Number(mbps(s)), measure.Number(cpuMs(s)), reads(s))
			}
			return cells
		})
		text += "\n**" + modeTitle(mode) + "**\n\n" + t.String()
	}
	return text, nil
}

func modeTitle(mode string) string {
	return map[string]string{modeRaw: "Plain on both sides", modeTLS: "TLS from the client (1.3, AES-128-GCM), plain to the upstream"}[mode]
}

func reads(s measure.Summary) string {
	if v, ok := s.Extra["reads_gib"]; ok {
		return fmt.Sprintf("%.0f", v)
	}
	return "–"
}

func idleTable(f figures) (string, error) {
	t := measure.NewTable("relay", "connections", "plain: memory each", "descriptors each", "connections", "TLS: memory each", "descriptors each")
	rows(t, func(name string) []string {
		var cells []string
		any := false
		for _, mode := range []string{modeRaw, modeTLS} {
			s, ok := f.get(caseIdle, name, mode)
			if !ok {
				cells = append(cells, "–", "–", "–")
				continue
			}
			any = true
			cells = append(cells, measure.Count(s.Extra["conns"]), kib(s.Extra["bytes"]), descriptors(s))
		}
		if !any {
			return nil
		}
		return cells
	})
	return "\n### Idle connections\n\nEach has passed on 200 bytes in both directions. Memory is the growth of the process's share of what is resident (PSS), of all its processes; the kernel's own for sockets and pipes is not in it. Where there are fewer connections, the relay would have run out of the 20,000 descriptors, or starts a process for each.\n\n" + t.String(), nil
}

func latencyTable(f figures) (string, error) {
	t := measure.NewTable("relay", "plain: p50 µs", "p99 µs", "added p50", "added p99", "TLS: p50 µs", "p99 µs", "added p50", "added p99")
	one := func(name string) []string {
		var cells []string
		any := false
		for _, mode := range []string{modeRaw, modeTLS} {
			s, ok := f.get(caseLatency, name, mode)
			base, ok2 := f.get(caseLatency, direct, mode)
			if !ok || !ok2 {
				cells = append(cells, "–", "–", "–", "–")
				continue
			}
			any = true
			for _, from := range []map[string]float64{{}, base.Extra} {
				for _, q := range []string{"p50", "p99"} {
					cells = append(cells, measure.Number((s.Extra[q]-from[q])/1000))
				}
			}
		}
		if !any {
			return nil
		}
		return cells
	}
	if cells := one(direct); cells != nil {
		t.Row(append([]string{"none: the client talks to the upstream"}, cells...)...)
	}
	rows(t, one)
	return "\n### Latency\n\nA message of 200 bytes to the upstream and back, the next when it is there, on one connection.\n\n" + t.String(), nil
}
