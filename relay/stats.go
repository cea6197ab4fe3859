package relay

import (
	"sync/atomic"
	"time"

	"github.com/rollway/rollway/internal/promtext"
)

// Stats are the counts of a Relay since it was made. At any moment Accepted =
// Active + those in Closed, except for connections that are just being counted.
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
