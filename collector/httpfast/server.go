package httpfast

import (
	"cmp"
	"log"
	"net"
	"net/http"
	"time"
)

// Options of a Server. All but Route, Limit and ErrorLog are required.
type Options struct {
	// Handler answers requests. It is called with the whole body in memory, which
	// it may read, or take by the body's method Whole() []byte, on a goroutine
	// that serves others afterwards: see WillBlock.
	Handler http.Handler
	// Takes reports whether Handler is to answer a request here. It is asked
	// once for each header block of a connection and gets a request without a
	// body. What it does not take is handed over. It is also asked whether the
	// answer to a request that came to net/http is one that Handler gives as a
	// whole, after which the connection can come back.
	Takes func(*http.Request) bool
	// Route returns who answers the requests with a header block that was taken, in
	// place of Handler; nil: Handler. It is asked as Takes is. Default: nil for all.
	Route func(*http.Request) http.Handler

	// Limit is asked about each connection, and told when it has ended, whoever
	// has served it; nil: there may be any number.
	Limit Limiter

	HeaderTimeout time.Duration // for the first byte of a new connection
	ReadTimeout   time.Duration // for a body; what is not there by then, or by half a second, is handed over
	WriteTimeout  time.Duration // for an answer to be taken
	IdleTimeout   time.Duration // for the next request

	ErrorLog *log.Logger // default: the standard one

	wait time.Duration // for tests: in place of half a second
}

// A Limiter counts connections. It is safe for concurrent use.
type Limiter interface {
	Take() bool // one more is open; false: it must not be
	Give()      // one is open no more

	// Refuse closes a connection that Take did not let in. It does not wait.
	Refuse(net.Conn)
}

// Stats counts since New.
type Stats struct {
	Connections uint64 // accepted, and let in by Options.Limit
	HandedOver  uint64 // to the listener of Rest, each time
	TakenBack   uint64 // from there
	Requests    uint64 // answered here
}

// route is Route, with Handler for who has none.
func (o *Options) route(r *http.Request) http.Handler {
	if o.Route != nil {
		if h := o.Route(r); h != nil {
			return h
		}
	}
	return o.Handler
}

// ended tells Limit of a connection that is open no more.
func (o *Options) ended() {
	if o.Limit != nil {
		o.Limit.Give()
	}
}

// patience is how long a body may take to arrive before its connection is
// handed over.
const patience = 500 * time.Millisecond

func (o *Options) patience() time.Duration { return min(cmp.Or(o.wait, patience), o.ReadTimeout) }

// sweepEvery is how often deadlines are looked at: by so much they are late.
func (o *Options) sweepEvery() time.Duration {
	least := min(o.HeaderTimeout, o.patience(), o.WriteTimeout, o.IdleTimeout)
	return min(max(least/4, 5*time.Millisecond), time.Second)
}

func (o *Options) logf(format string, args ...any) {
	if o.ErrorLog == nil {
		log.Printf(format, args...)
		return
	}
	o.ErrorLog.Printf(format, args...)
}
