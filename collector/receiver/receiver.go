// Package receiver takes events over HTTP, TCP and UDP, has them normalized and stored,
// and answers for each of them. docs/INGEST.md says what clients may send and what they
// are answered.
//
// # HTTP
//
// ServeHTTP takes POST requests whose body is anything that package normalize reads;
// Handler and GRPC take those of other protocols. A body that starts like gzip, zstd or
// framed snappy, as JSON cannot, is unpacked without a Content-Encoding too. A 2xx is sent
// only after Backend.Store has returned, and nothing is stored of a body that does not
// arrive whole. Answers list at most Limits.MaxRejections rejected events, and count all.
//
// Browsers mark requests with Sec-Fetch-Site and Origin. A request that a page of another
// origin has its visitor's browser send is refused unless Policy.Page knows the origin,
// because the collector usually listens where it trusts everybody: on loopback. Other
// clients send neither header.
//
// # Connections and datagrams
//
// ServeStream takes a StreamProtocol, such as NDJSON, which has no answers, and
// ServePackets datagrams. While the collector is full, the sender's
// writes block. A line is stored soon after its end arrives. What the collector has not
// read when a connection breaks is lost, unless the sender sends it again.
//
// # Ledger
//
// Every event that was read is stored, rejected, failed, a duplicate, or dropped by a rule
// of Policy.Enricher: Received = Stored + Rejected + Failed + Duplicate + Dropped, in every
// snapshot of Stats. To its sender a dropped event is an accepted one.
package receiver

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/rollway/rollway/collector/admission"
	"github.com/rollway/rollway/collector/clients"
	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/pool"
)

// Options of a Receiver; a field that is zero means its default.
type Options struct {
	Admission *admission.Controller // shares memory and processors among senders; default: one of the Receiver's own

	// KeepRejected bounds the bytes of rejected events in one batch that
	// Backend.Reject gets, and by one for each 128 of them the number of events
	// (normalize.Batch.KeepDeadLetters). Default: it gets none.
	KeepRejected int

	Limits      normalize.Limits // on events
	MaxBody     int64            // bytes of one body as sent; default 16 MiB
	MaxUnpacked int64            // bytes of one body unpacked; default 64 MiB
	MaxRatio    int64            // unpacked : sent, looked at beyond 4 MiB unpacked; default 200

	// InFlight bounds the bytes of all bodies that are being worked on. A byte of an
	// unpacked body counts twice, for itself and for its canonical line; lines and
	// rejected events that need more count as they are read. TCP connections share
	// half of it, so that slow ones leave room for requests. At least three times
	// MaxUnpacked, as no sender gets more than two thirds; default 256 MiB.
	InFlight int64

	BodyTimeout time.Duration // for a whole body to arrive; default 30 s

	MaxConns     int           // TCP connections at each listener, more are closed at once; default 1024
	IdleTimeout  time.Duration // for a TCP connection to send something; default 5 min
	DrainTimeout time.Duration // for a Serve method to store what it has read, once its context has ended; default 5 s

	Log *slog.Logger // default: none

	// Seen gets what came on connections and in datagrams. That of a request gets its
	// ResponseWriter, if it has a method Seen(Sender) *clients.Seen. Default: nobody.
	Seen func(clients.Seen)
}

const (
	ratioFloor   = 4 << 20 // unpacked bytes from which MaxRatio counts
	defaultRatio = 200
)

func (o Options) withDefaults() Options {
	o.Limits = o.Limits.WithDefaults()
	o.MaxBody = positive(o.MaxBody, 16<<20)
	o.MaxUnpacked = positive(o.MaxUnpacked, 64<<20)
	o.MaxRatio = positive(o.MaxRatio, defaultRatio)
	o.InFlight = max(positive(o.InFlight, 256<<20), 3*(o.MaxUnpacked+1))
	if o.Admission == nil {
		o.Admission = admission.New()
	}
	o.BodyTimeout = positive(o.BodyTimeout, 30*time.Second)
	o.IdleTimeout = positive(o.IdleTimeout, 5*time.Minute)
	o.DrainTimeout = positive(o.DrainTimeout, 5*time.Second)
	o.MaxConns = positive(o.MaxConns, 1024)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// positive returns v, or else def.
func positive[T int | int64 | time.Duration](v, def T) T {
	if v > 0 {
		return v
	}
	return def
}

// A Receiver takes events. It is safe for concurrent use. It has no goroutine outside of
// its Serve methods and need not be closed.
type Receiver struct {
	backend Backend
	opts    Options
	origins *http.CrossOriginProtection
	nobody  *admission.Principal // pays for what nobody else does
	memory  *admission.Resource  // of Options.InFlight bytes
	streams *admission.Resource  // what TCP connections may take of it
	spaces  pool.Pool[*workspace]
	count   counters
	logged  atomic.Pointer[time.Time] // when logSome last logged

	pending pending

	ctx  context.Context // ends with Stop
	stop context.CancelFunc
}

// New returns a Receiver that stores into b.
func New(b Backend, o Options) *Receiver {
	r := &Receiver{backend: b, opts: o.withDefaults(), origins: http.NewCrossOriginProtection()}
	r.ctx, r.stop = context.WithCancel(context.Background())
	r.spaces.New = r.newWorkspace
	a := r.opts.Admission
	r.nobody = a.Named("", 1)
	r.memory, r.streams = a.Resource(admission.Memory), a.Resource(admission.Streams)
	r.memory.SetLimit(r.opts.InFlight)
	a.Resource(admission.Headers).SetLimit(r.opts.InFlight / 4)
	// The longest line must fit in any case, also while its buffer is grown.
	r.streams.SetLimit(max(r.opts.InFlight/2, min(r.opts.InFlight, 4*int64(r.opts.Limits.MaxEventBytes+1))))
	return r
}
