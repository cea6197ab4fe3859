package receiver

import (
	"net/http"
	"net/netip"
)

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
	at, _ := netip.ParseAddrPort(req.RemoteAddr)
	if w.policy.Client == nil {
		return at.Addr()
	}
	return w.policy.Client(at.Addr(), req.Header)
}
