package relay

import (
	"fmt"
	"io"
	"time"

	"github.com/rollway/rollway/internal/promtext"
)

var firstByteBounds = []time.Duration{
	100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond,
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 5 * time.Second, 30 * time.Second,
}

// WriteMetrics writes the Stats in the text format of Prometheus, for an answer to
// a scraper. labels are names and values by turns, such as "relay", "edge"; all
// samples get them. Times are in seconds. The error names a label that is not
// allowed, or is out's.
func (s Stats) WriteMetrics(out io.Writer, labels ...string) error {
	var closed []promtext.Sample
	for reason := ReasonDone; reason < reasons; reason++ {
		closed = append(closed, promtext.Of(s.Closed[reason], reason.String()))
	}
	err := promtext.Write(out, "rollway_relay_", labels, promtext.Table{
		promtext.Counter("connections_accepted_total", "Connections accepted.", s.Accepted),
		promtext.Gauge("connections_active", "Connections being set up, copied or closed.", s.Active),
		promtext.Gauge("connections_max", "Connections beyond which more are refused; negative: no bound.", s.MaxConns),
		promtext.Counters("connections_closed_total", "Connections that have ended, by what ended them.", []string{"reason"}, closed...),
		promtext.Counters("connections_copied_total", "Connections that got as far as being copied, by how bulk would be.", []string{"mode"},
			promtext.Of(s.Spliced, "splice"), promtext.Of(s.Buffered, "buffers")),
		promtext.Counters("bytes_total", "Bytes that upstreams (up) and clients (down) have taken.", []string{"direction"},
			promtext.Of(s.BytesUp, "up"), promtext.Of(s.BytesDown, "down")),
		promtext.Counter("accept_errors_total", "Connections that could not be accepted, as for lack of descriptors.", s.AcceptErrors),
		promtext.Counter("dial_errors_total", "Attempts to connect to an upstream that failed; another one may have been reached.", s.DialErrors),
		promtext.Counter("records_unlogged_total", "Records that the log did not take, or not in time.", s.Unlogged),
		promtext.Gauge("pipes", "Pipes open.", s.Pipes),
		promtext.Gauge("pipes_in_use", "Pipes that hold bytes in flight.", s.PipesInUse),
		promtext.Gauge("directions_waiting", "Directions whose destination takes nothing now.", s.Waiting),
		promtext.Gauge("buffers_in_use", "Buffers that hold bytes in flight.", s.BuffersInUse),
		promtext.Durations("first_byte_seconds", "Time from accepting a connection to the first byte for its client.", s.firstByte),
	}, promtext.Each(s.Upstreams, []string{"upstream", "address"}, upstreamMetrics))
	if err != nil {
		return fmt.Errorf("relay: write metrics: %w", err)
	}
	return nil
}

func upstreamMetrics(u UpstreamStats) ([]string, promtext.Table) {
	return []string{u.Upstream, u.Address}, promtext.Table{
		promtext.Flag("upstream_down", "1 while an address of an upstream is avoided.", u.Down),
		promtext.Gauge("upstream_connections_active", "Connections to an address of an upstream.", u.Active),
		promtext.Counter("upstream_dials_total", "Attempts to connect to an address, including health checks.", u.Dials),
		promtext.Counter("upstream_dial_errors_total", "Those of them that failed.", u.DialErrors),
	}
}
