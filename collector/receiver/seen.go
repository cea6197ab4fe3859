package receiver

import (
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/netip"

	"github.com/rollway/rollway/collector/admission"
	"github.com/rollway/rollway/collector/clients"
)

// see tells Options.Seen what has come from peer.
func (r *Receiver) see(receiver string, peer netip.Addr, from Sender, s clients.Seen) {
	if r.opts.Seen == nil || !peer.IsValid() {
		return
	}
	s.Receiver, s.Addr = receiver, peer
	if from != nil {
		s.Tenant = from.Tenant()
	}
	r.opts.Seen(s)
}

// seen returns what is in the batch, which ended with err.
func (w *workspace) seen(err error) clients.Seen {
	b := &w.batch
	s := clients.Seen{Events: b.Events(), Rejected: b.RejectedTotal, Bytes: w.wire.n}
	if err != nil {
		s.Refused, s.Text = clients.Reason(http.StatusInternalServerError), err.Error()
	}
	return s
}

// seenRequest tells rw, if it wants to know, what came of a request.
func (w *workspace) seenRequest(rw http.ResponseWriter, f failure) {
	seer, is := rw.(interface{ Seen(Sender) *clients.Seen })
	if !is {
		return
	}
	s, b := seer.Seen(w.sender), &w.batch
	s.Requests, s.Events, s.Rejected, s.Bytes = 1, b.Records+b.RejectedTotal+b.DroppedTotal, b.RejectedTotal, w.wire.n
	if t := &w.outcome.total; t.Bytes > 0 {
		s.Events, s.Rejected, s.Bytes = t.Events, t.Rejected, t.Bytes
	}
	s.Refused, s.Text = clients.Reason(f.code), f.text
	if b.Withholds() && s.Rejected > 0 {
		s.Text = "withheld, as rules redact events"
	}
}

// turnAway logs and tells why a connection ends.
func (s *stream) turnAway(code int, text string, args ...any) {
	s.warn(text, args...)
	s.why = failure{code: code, text: text, close: true}
	reason := clients.Protocol
	if code > 0 {
		reason = clients.Reason(code)
	}
	s.see(clients.Seen{Refused: reason, Text: text})
}

// see tells what has come; of a request its answer will.
func (f *batcher) see(s clients.Seen) {
	if f.request == nil {
		f.r.see(f.receiver, f.from, f.space.sender, s)
		return
	}
	f.total.Events += s.Events
	f.total.Rejected += s.Rejected
	f.total.Bytes += s.Bytes
}

// failed turns a connection away for the error of its Session.
func (s *stream) failed(err error) {
	code := http.StatusBadRequest
	if refusal := (*Refusal)(nil); errors.As(err, &refusal) {
		code = refusal.Code
	}
	s.turnAway(code, "the connection is closed: "+err.Error())
}

// ended tells of a connection that ended with err in its TLS handshake. One that has sent
// nothing is a health check.
func (s *stream) ended(err error) {
	admitted, is := s.conn.(*admission.Conn)
	if !is || err == nil || err == io.EOF {
		return
	}
	if c, is := admitted.Conn.(*tls.Conn); is && !c.ConnectionState().HandshakeComplete {
		s.see(clients.Seen{Refused: clients.Handshake, Text: err.Error()})
	}
}
