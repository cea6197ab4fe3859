package relay

import (
	"fmt"
	"io"
	"strconv"

	"github.com/rollway/rollway/internal/promtext"
)

// WriteMetrics writes the Stats in the text format of Prometheus, for an answer to
// a scraper. labels are names and values by turns, such as "relay", "edge"; all
// samples get them. Times are in seconds. The error names a label that is not
// allowed, or is out's.
func (s Stats) WriteMetrics(out io.Writer, labels ...string) error {
	p, err := promtext.New("rollway_relay_", labels, "mode", "direction", "upstream", "address", "le")
	if err != nil {
		return fmt.Errorf("relay: write metrics: %w", err)
	}
	p.Counter("connections_accepted_total", "Connections taken.", s.Accepted)
	p.Gauge("connections_active", "Connections being set up, copied or closed.", float64(s.Active))
	p.Gauge("connections_max", "Connections beyond which more are refused; negative: no bound.", float64(s.MaxConns))
	p.Family("connections_closed_total", "counter", "Connections that have ended, by what ended them.")
	for reason := ReasonDone; reason < reasons; reason++ {
		p.Sample("connections_closed_total", float64(s.Closed[reason]), "reason", reason.String())
	}
	p.Family("connections_copied_total", "counter", "Connections that got as far as being copied, by how bulk would be.")
	p.Sample("connections_copied_total", float64(s.Spliced), "mode", "splice")
	p.Sample("connections_copied_total", float64(s.Buffered), "mode", "buffers")
	p.Family("bytes_total", "counter", "Bytes that upstreams (up) and clients (down) have taken.")
	p.Sample("bytes_total", float64(s.BytesUp), "direction", "up")
	p.Sample("bytes_total", float64(s.BytesDown), "direction", "down")
	p.Counter("accept_errors_total", "Times a connection could not be taken, as for want of descriptors.", s.AcceptErrors)
	p.Counter("dial_errors_total", "Attempts to connect to an upstream that failed; another one may have been reached.", s.DialErrors)
	p.Counter("records_unlogged_total", "Records that the log did not take, or not in time.", s.Unlogged)
	p.Gauge("pipes", "Pipes open.", float64(s.Pipes))
	p.Gauge("pipes_in_use", "Pipes that hold bytes in flight.", float64(s.PipesInUse))
	p.Gauge("directions_waiting", "Directions whose destination takes nothing now.", float64(s.Waiting))
	p.Gauge("buffers_in_use", "Buffers that hold bytes in flight.", float64(s.BuffersInUse))
	writeUpstreams(p, s.Upstreams)
	s.firstByte.write(p)
	_, err = p.WriteTo(out)
	return err
}

func writeUpstreams(p *promtext.Page, list []UpstreamStats) {
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
		p.Family(f.name, f.kind, f.help)
		for i := range list {
			p.Sample(f.name, f.value(&list[i]), "upstream", list[i].Upstream, "address", list[i].Address)
		}
	}
}

func (d durations) write(p *promtext.Page) {
	const name = "first_byte_seconds"
	p.Family(name, "histogram", "Time from taking a connection to the first byte for its client.")
	total := uint64(0)
	for i, n := range d.counts {
		le := "+Inf"
		if i < len(firstByteBounds) {
			le = strconv.FormatFloat(firstByteBounds[i].Seconds(), 'f', -1, 64)
		}
		total += n
		p.Sample(name+"_bucket", float64(total), "le", le)
	}
	p.Sample(name+"_sum", d.sum.Seconds())
	p.Sample(name+"_count", float64(total))
}
