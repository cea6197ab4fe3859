package relay

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// WriteMetrics writes the Stats in Prometheus's text format.
func (r *Relay) WriteMetrics(w io.Writer) error {
	s := r.Stats()
	m := metrics{bufio.NewWriter(w)}
	m.head("connections_accepted_total", "counter", "Connections taken.")
	m.value("connections_accepted_total", "", float64(s.Accepted))
	m.head("connections_active", "gauge", "Connections being set up, copied or closed.")
	m.value("connections_active", "", float64(s.Active))
	m.head("connections_max", "gauge", "Connections beyond which more are refused; negative: no bound.")
	m.value("connections_max", "", float64(s.MaxConns))
	m.head("connections_closed_total", "counter", "Connections that have ended, by what ended them.")
	for reason := ReasonDone; reason < reasons; reason++ {
		m.value("connections_closed_total", label("reason", reason.String()), float64(s.Closed[reason]))
	}
	m.head("connections_copied_total", "counter", "Connections that got as far as being copied, by how.")
	m.value("connections_copied_total", label("mode", "splice"), float64(s.Spliced))
	m.value("connections_copied_total", label("mode", "buffers"), float64(s.Buffered))
	m.head("bytes_total", "counter", "Bytes that upstreams (up) and clients (down) have taken.")
	m.value("bytes_total", label("direction", "up"), float64(s.BytesUp))
	m.value("bytes_total", label("direction", "down"), float64(s.BytesDown))
	m.head("accept_errors_total", "counter", "Times a connection could not be taken, as for want of descriptors.")
	m.value("accept_errors_total", "", float64(s.AcceptErrors))
	m.head("dial_errors_total", "counter", "Attempts to connect to an upstream that failed; another one may have been reached.")
	m.value("dial_errors_total", "", float64(s.DialErrors))
	m.head("pipes", "gauge", "Pipes open.")
	m.value("pipes", "", float64(s.Pipes))
	m.head("pipes_in_use", "gauge", "Pipes that hold bytes in flight.")
	m.value("pipes_in_use", "", float64(s.PipesInUse))
	m.head("buffers_in_use", "gauge", "Buffers that hold bytes in flight.")
	m.value("buffers_in_use", "", float64(s.BuffersInUse))
	m.upstreams(s.Upstreams)
	m.firstByte(s.FirstByte)
	return m.w.Flush()
}

// metrics writes; the error of w comes back from Flush.
type metrics struct{ w *bufio.Writer }

const metricPrefix = "rollway_relay_"

func (m metrics) head(name, kind, help string) {
	fmt.Fprintf(m.w, "# HELP %[1]s%[2]s %[3]s\n# TYPE %[1]s%[2]s %[4]s\n", metricPrefix, name, help, kind)
}

func (m metrics) value(name, labels string, v float64) {
	fmt.Fprintf(m.w, "%s%s%s %s\n", metricPrefix, name, labels, strconv.FormatFloat(v, 'f', -1, 64))
}

// label is a set of labels, given as name and value by turns.
func label(pairs ...string) string {
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
	var b strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		fmt.Fprintf(&b, `,%s="%s"`, pairs[i], escape.Replace(pairs[i+1]))
	}
	return "{" + b.String()[1:] + "}"
}

func (m metrics) upstreams(list []UpstreamStats) {
	for _, f := range []struct {
		name, kind, help string
		value            func(u *UpstreamStats) float64
	}{
		{"upstream_down", "gauge", "1 while an address of an upstream is avoided.", func(u *UpstreamStats) float64 {
			if u.Down {
				return 1
			}
			return 0
		}},
		{"upstream_connections_active", "gauge", "Connections to an address of an upstream.", func(u *UpstreamStats) float64 { return float64(u.Active) }},
		{"upstream_dials_total", "counter", "Attempts to connect to an address, checks of health among them.", func(u *UpstreamStats) float64 { return float64(u.Dials) }},
		{"upstream_dial_errors_total", "counter", "Those of them that failed.", func(u *UpstreamStats) float64 { return float64(u.DialErrors) }},
	} {
		if len(list) == 0 {
			return
		}
		m.head(f.name, f.kind, f.help)
		for i := range list {
			m.value(f.name, label("upstream", list[i].Upstream, "address", list[i].Address), f.value(&list[i]))
		}
	}
}

func (m metrics) firstByte(h Histogram) {
	const name = "first_byte_seconds"
	m.head(name, "histogram", "Time from taking a connection to the first byte for its client.")
	total := uint64(0)
	for i, bound := range h.Bounds {
		total += h.Counts[i]
		m.value(name+"_bucket", label("le", strconv.FormatFloat(bound.Seconds(), 'f', -1, 64)), float64(total))
	}
	total += h.Counts[len(h.Bounds)]
	m.value(name+"_bucket", label("le", "+Inf"), float64(total))
	m.value(name+"_sum", "", h.Sum.Seconds())
	m.value(name+"_count", "", float64(total))
}
