package receiver

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/rollway/rollway/collector/admission"
	"github.com/rollway/rollway/collector/normalize"
)

// A Sender is who a request is from, as Policy.Admit knows it. One value
// serves all requests of a sender at once.
type Sender interface {
	// Scope names whom the sender's idempotency keys belong to, so that nobody
	// meets those of another: letters, digits, dots, hyphens, underscores.
	Scope() string
	// Wait returns how long the sender is to wait before it sends again; 0 or
	// less: it may send now.
	Wait(now time.Time) time.Duration
	// Charge tells what came: bytes of an unpacked body, and its events.
	Charge(now time.Time, bytes, events int)
	// Durability is what the sender gets unless it asks for one itself; "":
	// the store's default.
	Durability() string
	// Tenant is whose the sender's events are; "": nobody's in particular.
	Tenant() string
	// Extras are what the sender's events get; nil: nothing.
	Extras() *normalize.Extras
	// Principal pays for what the sender uses.
	Principal() *admission.Principal
}

// admit finds out who sends req and whether it may.
func (r *endpoint) admit(w *workspace, req *http.Request) failure {
	w.conn = admission.ConnOf(req.Context())
	var sender Sender
	if w.policy.Admit != nil {
		var err error
		if sender, err = w.policy.Admit(req); err != nil {
			f := failure{code: http.StatusForbidden, close: true, text: err.Error()}
			if refusal := (*Refusal)(nil); errors.As(err, &refusal) {
				f.code = refusal.Code
			}
			return f
		}
	}
	if sender == nil {
		if w.conn != nil {
			w.lent = w.conn.Client(w.client(req))
			w.charge(w.lent)
		}
		return failure{}
	}
	w.setSender(sender)
	if w.conn != nil {
		w.conn.Charge(w.principal)
	}
	if wait := sender.Wait(time.Now()); wait > 0 {
		return failure{code: http.StatusTooManyRequests, close: req.ContentLength != 0, wait: wait,
			text: fmt.Sprintf("more was sent than this token may send; nothing of this request was stored, send it again after %d s", seconds(wait))}
	}
	ask := &w.options
	if ask.Durability == "" {
		ask.Durability = sender.Durability()
	}
	if ask.Key != "" {
		ask.Key = w.scoped(ask.Key)
	}
	if w.after != "" {
		w.after = w.scoped(w.after)
	}
	return failure{}
}

// setSender says whose the events of a connection or a socket are; nil: nobody knows.
func (w *workspace) setSender(from Sender) {
	if from != nil {
		w.sender = from
		w.charge(from.Principal())
	}
}

// seconds rounds up, as Retry-After wants it.
func seconds(d time.Duration) int { return max(1, int(math.Ceil(d.Seconds()))) }

// keepRejected hands the rejected events of a request or connection to the backend, once.
// Those of a repeated request were handed over when it first came. req is nil for a
// connection from an address, which has none if there are many.
func (r *Receiver) keepRejected(w *workspace, receiver string, req *http.Request, from netip.Addr) {
	if w.batch.RejectedTotal == 0 || w.stored.Duplicate {
		return
	}
	o := Origin{Receiver: receiver, Time: time.Now(), Tenant: w.tenant()}
	switch {
	case o.Tenant != "":
	case w.sender != nil:
		o.Client = w.sender.Scope()
	case req != nil:
		o.Client = network(w.client(req))
	default:
		o.Client = network(from)
	}
	r.backend.Reject(o, &w.batch)
}

// network is the text of an address, of IPv6 of its /64; "" if there is none.
func network(a netip.Addr) string {
	if a = a.Unmap(); a.Is4() || !a.IsValid() || a.IsLoopback() {
		return strings.TrimPrefix(a.WithZone("").String(), "invalid IP")
	}
	p, _ := a.WithZone("").Prefix(64) // it is long enough
	return p.String()
}

// tenant is whose the events are; "": nobody's.
func (w *workspace) tenant() string {
	if w.sender == nil {
		return ""
	}
	return w.sender.Tenant()
}

// enrich has done to the events that w gets next, which are from peer, what its
// policy says.
func (w *workspace) enrich(peer netip.Addr) {
	e, extras := w.policy.Enricher, w.policy.Extras
	if w.sender != nil {
		extras = w.sender.Extras()
	}
	w.norm.SetExtras(extras)
	w.norm.SetEnricher(e, peer)
	w.batch.WithholdText(e != nil && e.Withholds())
}

// enrichFrom is enrich for the events of a request.
func (w *workspace) enrichFrom(req *http.Request) {
	peer := netip.Addr{}
	if w.policy.Enricher != nil { // else nobody asks
		peer = w.client(req)
	}
	w.enrich(peer)
}

// client is the address of whose request it is; the zero Addr if it has none.
func (w *workspace) client(req *http.Request) netip.Addr {
	peer := admission.PeerOf(req)
	if w.policy.Client == nil {
		return peer
	}
	return w.policy.Client(peer, req.Header)
}
