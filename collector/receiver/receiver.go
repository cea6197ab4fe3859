// Package receiver is the front of the collector: it takes events over HTTP and
// over TCP, has them normalized and stored, and answers for each of them.
//
// # HTTP
//
// ServeHTTP takes POST requests whose body is anything package normalize
// reads; Content-Type is not looked at. Content-Encoding is identity, gzip,
// zstd, deflate (with zlib's header or without), snappy (in blocks or
// framed) or br; a body that starts like gzip, zstd or framed snappy is unpacked
// without the header too, since JSON cannot start so. Every answer is a JSON
// object:
//
//	200 {"accepted":2,"first_offset":17}       stored
//	200 {"accepted":3,"first_offset":17,"dropped":1}   two stored, one dropped by a rule of the collector
//	200 {"accepted":1,"rejected":[{"index":1,"line":2,"offset":40,"reason":"syntax","detail":"…"}],"rejected_total":1}
//	400 {"error":"…","accepted":0,"rejected":[…],"rejected_total":1}   nothing of it can be stored as it is
//	401, 403 not admitted, or a web page of another origin sent it
//	405 not POST   408 the body came too slowly
//	413 too large, packed or unpacked          415 unknown Content-Encoding
//	422 the Idempotency-Key is that of another request
//	429 the sender has used up its rate, with Retry-After
//	500 could not be stored, or a fault        503 full, with Retry-After: nothing was stored, send it again
//
// X-Durability: synced or buffered asks for a durability; answers of 200 carry
// the one that the events have. Idempotency-Key: a name of at most
// 255 bytes lets a request be sent again: it is stored once and every answer is
// as the first, with Idempotent-Replayed: true. X-Idempotency: body does the same
// for requests of the same path, query and body. Idempotency-After: the key of
// another request of the sender, which is stored first if it is under way.
//
// At most Limits.MaxRejections rejected events are listed, to Fluent Bit what it has
// room for; all are counted.
// A 2xx is sent only after Backend.Store has returned. A body that did not arrive
// whole is not stored in part.
//
// Browsers mark requests with Sec-Fetch-Site and Origin. One that a page of
// another origin makes its visitor's browser send is refused, because the
// collector usually listens where it trusts everybody: on loopback. Other
// clients send neither header and are not concerned.
//
// # TCP
//
// ServeTCP takes NDJSON. There are no answers: whoever needs one uses HTTP. A
// sender sees that the collector is full in that its writes block. A line is
// stored soon after its end arrived. What a sender wrote but the collector had
// not read when the connection broke is lost unless the sender sends it again.
//
// ServeStream does the same for any other StreamProtocol, and ServePackets for
// datagrams. A StreamProtocol may have
// answers: they are sent once the events are stored.
//
// # Ledger
//
// Every event that was read is received, and then stored, rejected, failed, a
// duplicate, or dropped by a rule of Policy.Enricher: Received = Stored + Rejected +
// Failed + Duplicate + Dropped, in every snapshot of Stats. To its sender a dropped
// event is an accepted one.
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

	// InFlight bounds the bytes that all bodies being worked on may take up,
	// where a byte of an unpacked body counts twice, for itself and for its
	// canonical line, and what lines and rejected events come to beyond that is
	// taken while they are read. TCP connections share half of it, so that slow ones leave
	// room for requests. At least twice MaxUnpacked; default 256 MiB.
	InFlight int64

	BodyTimeout time.Duration // for a whole body to arrive; default 30 s

	MaxConns     int           // TCP connections at a time at each listener, more are closed at once; default 1024
	IdleTimeout  time.Duration // for a TCP connection to send something; default 5 min
	DrainTimeout time.Duration // after its context ended, for a Serve method to get what it has read stored; default 5 s

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

// A Receiver takes events in. It is safe for concurrent use; it owns no
// goroutine outside of its Serve methods and needs no closing.
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
