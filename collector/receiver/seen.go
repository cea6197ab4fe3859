package receiver

import (
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/netip"
)

// Seen is what came of a request, of what has arrived together on a connection, or of a
// datagram, for those who count who sends what and who is turned away.
type Seen struct {
	Receiver string     // of a connection or a datagram: the protocol
	Peer     netip.Addr // likewise
	Sender   Sender     // nil: unknown

	Requests         int   // 1 for a request, a datagram, or the beginning of a connection
	Events, Rejected int   // Events include the others
	Bytes            int64 // as sent

	Code   int    // the status of HTTP if the sender is turned away; 0: it is not
	Reason string // why, where no status says it: connections, tls or protocol
	Text   string // of the answer, or what the answer would be
}

// see tells who counts of what has come on a connection.
func (s *stream) see(seen Seen) { s.r.see(s.receiver, s.from, s.space.sender, seen) }

func (r *Receiver) see(receiver string, peer netip.Addr, from Sender, seen Seen) {
	if r.opts.Seen == nil {
		return
	}
	seen.Receiver, seen.Peer, seen.Sender = receiver, peer, from
	r.opts.Seen(seen)
}

// seenRequest tells rw, if it wants to know, what came of a request.
func (w *workspace) seenRequest(rw http.ResponseWriter, f failure) {
	seer, is := rw.(interface{ Seen(Seen) })
	if !is {
		return
	}
	b := &w.batch
	s := Seen{
		Sender: w.sender, Requests: 1, Events: b.Records + b.RejectedTotal + b.DroppedTotal, Rejected: b.RejectedTotal,
		Bytes: w.wire.n, Code: f.code, Text: f.text,
	}
	if b.Withholds() && b.RejectedTotal > 0 {
		s.Text = "withheld, as rules redact events"
	}
	seer.Seen(s)
}

// turnAway logs and tells why a connection ends.
func (s *stream) turnAway(why Seen, args ...any) {
	s.warn(why.Text, args...)
	s.see(why)
}

// refused returns what a Session's error says of the sender.
func refused(err error) Seen {
	s := Seen{Code: http.StatusBadRequest, Text: "the connection is closed: " + err.Error()}
	if refusal := (*Refusal)(nil); errors.As(err, &refusal) {
		s.Code = refusal.Code
	}
	return s
}

// handshakeFailed tells of a connection that ended with err before its TLS handshake was
// done. One that has sent nothing is that of a health check.
func (s *stream) handshakeFailed(err error) {
	if c, is := s.conn.(*tls.Conn); is && !c.ConnectionState().HandshakeComplete && err != io.EOF {
		s.see(Seen{Reason: "tls", Text: err.Error()})
	}
}
