package receiver

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"time"

	"github.com/rollway/rollway/collector/normalize"
)

// A Backend stores the events of a Receiver and says who may send them. Many
// goroutines call its methods at once. It must not keep a batch, nor the bytes in it.
type Backend interface {
	// Store makes a batch durable and returns when it is. Its context does not end
	// when the client goes away.
	//
	// After an error nothing of the batch is stored, except after one that is
	// ErrNotSynced. Receivers tell senders to try again after ErrFull, ErrUnavailable and
	// os.ErrClosed, the error of a Backend that is closing.
	//
	// A batch with a key may have no lines, if rules have dropped all its events:
	// Store then says whether the key was stored before.
	Store(ctx context.Context, b *normalize.Batch, o StoreOptions) (Stored, error)

	// Policy returns the policy in force. A Receiver calls it once for each request,
	// and once for what has arrived together on a connection.
	Policy() *Policy

	// Reject gets each batch in which events were rejected, with as much of their
	// text as Options.KeepRejected allows (normalize.Batch.DeadLetters).
	Reject(o Origin, b *normalize.Batch)
}

// An Origin says where rejected events came from.
type Origin struct {
	Receiver string // the path or the protocol where they came in
	Tenant   string // whose they are; "": nobody's in particular
	Client   string // who sent them, if they have no tenant: the sender's scope, or an address, of IPv6 its /64; "": many
	Time     time.Time
}

// StoreOptions say how a batch is to be stored.
type StoreOptions struct {
	// Durability is "buffered" (the lines survive the process), "synced" (they
	// survive the machine), or "" for the Backend's default.
	Durability string
	// Key names the batch, so that it is stored once; "": it has no name. Owner is who
	// pays for remembering it.
	Key, Owner string
}

// Stored says how a batch was stored.
type Stored struct {
	First      uint64 // offset of the first line
	Durability string // that the lines have; "": as StoreOptions say
	Duplicate  bool   // the lines were stored before, under the same key
	Records    int    // lines that were stored then, if Duplicate
}

// Errors of Backend.Store, which may wrap them.
var (
	// ErrFull says that there is no room now. It passes.
	ErrFull = errors.New("the store is full")
	// ErrUnavailable says that nothing can be stored until an operator or the store itself
	// mends it.
	ErrUnavailable = errors.New("the store is not available")
	// ErrNotSynced says that the batch is stored, but less durably than asked.
	ErrNotSynced = errors.New("stored, but not made durable")
	// ErrKeyReused refuses a key that another batch has.
	ErrKeyReused = errors.New("the key of another batch")
)

// A StoreFunc is a Backend that lets everybody in and keeps nothing of rejected
// events.
type StoreFunc func(ctx context.Context, b *normalize.Batch, o StoreOptions) (Stored, error)

// Store calls f.
func (f StoreFunc) Store(ctx context.Context, b *normalize.Batch, o StoreOptions) (Stored, error) {
	return f(ctx, b, o)
}

// Policy returns the zero Policy.
func (StoreFunc) Policy() *Policy { return &noPolicy }

// Reject does nothing.
func (StoreFunc) Reject(Origin, *normalize.Batch) {}

var noPolicy Policy

// A Policy says who may send, and what becomes of what is sent. It does not change:
// a request ends under the policy that it began under, even if later ones have
// another.
type Policy struct {
	// Admit returns who a request is from, or refuses it with an error, preferably a
	// *Refusal, before any of its body is read. Default: everybody is admitted.
	Admit func(*http.Request) (Sender, error)

	// Page reports whether Admit is to decide about requests of pages of an origin other
	// than the collector's own. Default: they are refused.
	Page func(origin string) bool

	// Client returns the address of the client whose request, with the header h, peer
	// has sent; peer may be a proxy. Default: peer.
	Client func(peer netip.Addr, h http.Header) netip.Addr

	// Extras are what events get whose sender nobody knows. Default: nothing.
	Extras *normalize.Extras

	// Enricher adds to events and applies rules to them. Default: nothing.
	Enricher normalize.Enricher
}

// page reports whether Admit decides about the page that a request's header names.
func (p *Policy) page(h http.Header) bool {
	return p.Page != nil && p.Page(h.Get("Origin"))
}
