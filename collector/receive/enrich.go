package receive

import (
	"net/http"
	"net/netip"
)

// enrich has what is in force now done to the events that w gets next, which are
// from peer.
func (r *Receiver) enrich(w *work, peer netip.Addr) {
	if r.opts.Enrich == nil {
		return
	}
	e := r.opts.Enrich()
	w.norm.SetEnricher(e, peer)
	w.batch.WithholdText(e != nil && e.Withholds())
}

// client is the address of whose request it is.
func (r *Receiver) client(req *http.Request) netip.Addr {
	peer := remote(req)
	if r.opts.Client == nil {
		return peer
	}
	return r.opts.Client(peer, req.Header)
}

// remote is the address that a request is from, the zero Addr if it has none.
func remote(req *http.Request) netip.Addr {
	if req.RemoteAddr == "" {
		return netip.Addr{} // an error would be allocated
	}
	at, _ := netip.ParseAddrPort(req.RemoteAddr)
	return at.Addr()
}
