package receiver

import (
	"net/http"
	"net/netip"
)

// enrich has done to the events that w gets next, which are from peer, what its
// policy says.
func (w *workspace) enrich(peer netip.Addr) {
	e := w.policy.Enricher
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

// client is the address of whose request it is.
func (w *workspace) client(req *http.Request) netip.Addr {
	peer := remote(req)
	if w.policy.Client == nil {
		return peer
	}
	return w.policy.Client(peer, req.Header)
}

// remote is the address that a request is from, the zero Addr if it has none.
func remote(req *http.Request) netip.Addr {
	if req.RemoteAddr == "" {
		return netip.Addr{} // an error would be allocated
	}
	at, _ := netip.ParseAddrPort(req.RemoteAddr)
	return at.Addr()
}
