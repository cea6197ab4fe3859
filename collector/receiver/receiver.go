// Package receiver is the front of the collector. It takes events over HTTP, TCP and
// UDP, has them normalized and stored, and answers for each of them.
//
// # HTTP
//
// ServeHTTP takes POST requests whose body is anything that package normalize reads. It
// does not look at Content-Type. Content-Encoding is identity, gzip, zstd, deflate (with
// zlib's header or without), snappy (in blocks or framed) or br. A body that starts like
// gzip, zstd or framed snappy, as JSON cannot, is unpacked without the header too. Every
// answer is a JSON object:
//
//	200 {"accepted":2,"first_offset":17}       stored
//	200 {"accepted":3,"first_offset":17,"dropped":1}   two stored, one dropped by a rule
//	200 {"accepted":1,"rejected":[{"index":1,"line":2,"offset":40,"reason":"syntax","detail":"…"}],"rejected_total":1}
//	400 {"error":"…","accepted":0,"rejected":[…],"rejected_total":1}   nothing of it can be stored as it is
//	401, 403 not admitted, or a web page of another origin sent it
//	405 not POST   408 the body came too slowly
//	413 too large, packed or unpacked          415 unknown Content-Encoding
//	422 the Idempotency-Key is that of another request
//	429 the sender has used up its rate, with Retry-After
//	500 could not be stored, or a fault        503 full, with Retry-After: nothing was stored, send it again
//
// Answers list at most Limits.MaxRejections rejected events, and count all. A 2xx is sent
// only after Backend.Store has returned. Nothing is stored of a body that does not arrive
// whole. The headers about durability and idempotency are in idempotency.go.
//
// Browsers mark requests with Sec-Fetch-Site and Origin. A request that a page of another
// origin has its visitor's browser send is refused, because the collector usually listens
// where it trusts everybody: on loopback. Other clients send neither header.
//
// # Connections and datagrams
//
// ServeTCP takes NDJSON, without answers. While the collector is full, the sender's
// writes block. A line is stored soon after its end arrives. What the collector has not
// read when a connection breaks is lost, unless the sender sends it again.
//
// ServeStream does the same for any other StreamProtocol, which may have answers, and
// ServePackets for datagrams.
//
// # Ledger
//
// Every event that was read is stored, rejected, failed, a duplicate, or dropped by a rule
// of Policy.Enricher: Received = Stored + Rejected + Failed + Duplicate + Dropped, in every
// snapshot of Stats. To its sender a dropped event is an accepted one.
package receiver

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/pool"
)

// Options of a Receiver; a field that is zero means its default.
type Options struct {
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
	// half of it, so that slow ones leave room for requests. At least twice
	// MaxUnpacked; default 256 MiB.
	InFlight int64

	BodyTimeout time.Duration // for a whole body to arrive; default 30 s

	MaxConns     int           // TCP connections at each listener, more are closed at once; default 1024
	IdleTimeout  time.Duration // for a TCP connection to send something; default 5 min
	DrainTimeout time.Duration // for a Serve method to store what it has read, once its context has ended; default 5 s

	Log *slog.Logger // default: none
}

const ratioFloor = 4 << 20 // unpacked bytes from which MaxRatio counts

func (o Options) withDefaults() Options {
	def := func(v *int64, d int64) {
		if *v <= 0 {
			*v = d
		}
	}
	defTime := func(v *time.Duration, d time.Duration) {
		if *v <= 0 {
			*v = d
		}
	}
	o.Limits = o.Limits.WithDefaults()
	def(&o.MaxBody, 16<<20)
	def(&o.MaxUnpacked, 64<<20)
	def(&o.MaxRatio, 200)
	def(&o.InFlight, 256<<20)
	o.InFlight = max(o.InFlight, 2*(o.MaxUnpacked+1))
	defTime(&o.BodyTimeout, 30*time.Second)
	defTime(&o.IdleTimeout, 5*time.Minute)
	defTime(&o.DrainTimeout, 5*time.Second)
	if o.MaxConns <= 0 {
		o.MaxConns = 1024
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// A Receiver takes events. It is safe for concurrent use. It has no goroutine outside of
// its Serve methods and need not be closed.
type Receiver struct {
	backend Backend
	opts    Options
	origins *http.CrossOriginProtection
	budget  budget
	streams budget // what TCP connections may take of budget
	others  budget // what others than bodies may
	spaces  pool.Pool[*workspace]
	count   counters
	logged  limiter

	pending pending
}

// New returns a Receiver that stores into b.
func New(b Backend, o Options) *Receiver {
	r := &Receiver{backend: b, opts: o.withDefaults(), origins: http.NewCrossOriginProtection()}
	r.spaces.New = r.newWorkspace
	r.budget.limit = r.opts.InFlight
	r.others.limit = r.opts.InFlight / 4
	// The longest line must fit in any case, also while its buffer is grown.
	r.streams.limit = max(r.opts.InFlight/2, min(r.opts.InFlight, 4*int64(r.opts.Limits.MaxEventBytes+1)))
	return r
}
