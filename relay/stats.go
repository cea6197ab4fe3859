package relay

import (
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rollway/rollway/internal/promtext"
)

// Stats are the counts of a Relay since it was made. At any moment Accepted = Active +
// those in Closed.
type Stats struct {
	Accepted uint64
	Active   int // being set up, copied, or closed
	MaxConns int // what bounds them; negative: nothing
	Closed   map[Reason]uint64
	Spliced  uint64 // connections whose bulk, if any comes, is copied in the kernel
	Buffered uint64 // connections that are copied through buffers whatever comes

	BytesUp, BytesDown uint64 // taken by upstreams, by clients

	DialErrors   uint64 // attempts that failed; the next upstream may have been tried
	AcceptErrors uint64
	Unlogged     uint64 // records that Log and Access did not take, or not in time

	Pipes, PipesInUse, BuffersInUse int

	Waiting int // directions whose destination accepts nothing now

	Upstreams []UpstreamStats

	firstByte promtext.Buckets // from accepting to the first byte for the client
}

// UpstreamStats are the counts of one address of an upstream.
type UpstreamStats struct {
	Upstream   string // the URL
	Address    string
	Down       bool // it is avoided for now
	Active     int
	Dials      uint64 // attempts, checks of health among them
	DialErrors uint64
}

// counts are what Stats is made from.
type counts struct {
	accepted, spliced, buffered, dialErrors, acceptErrors atomic.Uint64

	bytesUp, bytesDown atomic.Uint64
	closed             [reasons]atomic.Uint64
	firstByte          promtext.Histogram
}

// Stats returns the counts. It never waits for a connection.
func (r *Relay) Stats() Stats {
	s := Stats{
		MaxConns:     r.options.MaxConns,
		Closed:       map[Reason]uint64{},
		Spliced:      r.counts.spliced.Load(),
		Buffered:     r.counts.buffered.Load(),
		BytesUp:      r.counts.bytesUp.Load(),
		BytesDown:    r.counts.bytesDown.Load(),
		DialErrors:   r.counts.dialErrors.Load(),
		AcceptErrors: r.counts.acceptErrors.Load(),
		BuffersInUse: int(r.buffers.inUse.Load()),
		firstByte:    r.counts.firstByte.Snapshot(firstByteBounds...),
	}
	s.Pipes, s.PipesInUse = r.pipes.count()
	s.Waiting = int(r.budget.waiting.Load())
	for _, q := range r.options.logQueues {
		_, unlogged := q.count()
		s.Unlogged += unlogged
	}
	ended := uint64(0)
	for reason := ReasonDone; reason < reasons; reason++ {
		if n := r.counts.closed[reason].Load(); n > 0 {
			s.Closed[reason] = n
			ended += n
		}
	}
	s.Accepted = r.counts.accepted.Load()
	s.Active = int(s.Accepted - ended)
	s.Upstreams = r.upstreams.stats()
	return s
}

func (u *upstreams) stats() (list []UpstreamStats) {
	now := time.Now()
	for _, up := range u.all {
		for _, e := range up.list() {
			list = append(list, UpstreamStats{
				Upstream:   up.String(),
				Address:    e.addr,
				Down:       e.isDown(now),
				Active:     int(e.active.Load()),
				Dials:      e.dials.Load(),
				DialErrors: e.errors.Load(),
			})
		}
	}
	return list
}

// A Reason says why a connection ended. The first cause counts.
type Reason int

const (
	_                     Reason = iota
	ReasonDone                   // both sides ended their streams
	ReasonClientReset            // the client reset, or was gone
	ReasonUpstreamReset          // the upstream reset, or was gone
	ReasonClientError            // another error of the client's side
	ReasonUpstreamError          // another error of the upstream's side
	ReasonDial                   // no upstream could be reached
	ReasonHandshake              // the client's TLS handshake failed
	ReasonProxyHeader            // a proxy's header was missing or malformed
	ReasonLimit                  // refused by MaxConns
	ReasonSourceLimit            // refused by MaxConnsPerSource
	ReasonIdle                   // no byte moved for IdleTimeout
	ReasonClientStalled          // the client took nothing for StallTimeout
	ReasonUpstreamStalled        // the upstream did
	ReasonDrained                // ended in order, by draining
	ReasonDrainCut               // cut off, as draining took too long
	reasons
)

var reasonNames = strings.Fields(`unknown done client_reset upstream_reset client_error upstream_error dial handshake
	proxy_header limit source_limit idle client_stalled upstream_stalled drained drain_cut`)

// String is the reason as metrics and records name it.
func (r Reason) String() string {
	if r <= 0 || r >= reasons {
		r = 0
	}
	return reasonNames[r]
}

// Error makes a Reason what Join returns.
func (r Reason) Error() string { return "relayed connection ended: " + r.String() }

var firstByteBounds = []time.Duration{
	100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond,
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 5 * time.Second, 30 * time.Second,
}

// WriteMetrics writes the Stats in the text format of Prometheus. labels are names and
// values by turns, such as "relay", "edge", for all samples. Times are in seconds. The
// error names a label that is not allowed, or is out's.
func (s Stats) WriteMetrics(out io.Writer, labels ...string) error {
	var closed []promtext.Sample
	for reason := ReasonDone; reason < reasons; reason++ {
		closed = append(closed, promtext.Of(s.Closed[reason], reason.String()))
	}
	return promtext.Write(out, "relay", labels, promtext.Table{
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
}

func upstreamMetrics(u UpstreamStats) ([]string, promtext.Table) {
	return []string{u.Upstream, u.Address}, promtext.Table{
		promtext.Flag("upstream_down", "1 while an address of an upstream is avoided.", u.Down),
		promtext.Gauge("upstream_connections_active", "Connections to an address of an upstream.", u.Active),
		promtext.Counter("upstream_dials_total", "Attempts to connect to an address, including health checks.", u.Dials),
		promtext.Counter("upstream_dial_errors_total", "Those of them that failed.", u.DialErrors),
	}
}
