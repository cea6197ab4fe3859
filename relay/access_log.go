package relay

import (
	"crypto/tls"
	"log/slog"
	"time"
)

// name is the peer's address in records: the client that a trusted
// proxy speaks for, if there is one.
func (s *peer) name() string {
	if s.origin != nil && s.origin.from.IsValid() {
		return s.origin.from.String()
	}
	return s.socket.RemoteAddr().String()
}

// copies says how the bytes of a connection that has ended went: by splice if any
// did, either way.
func (c *conn) copies() string {
	if c.up.spliced || c.down.spliced {
		return "splice"
	}
	return "buffers"
}

// logAccess writes the record of a connection that has ended.
func (r *Relay) logAccess(c *conn) {
	if r.options.Access == nil {
		return
	}
	attrs := []slog.Attr{
		slog.String("client", c.client.name()),
		slog.String("upstream", c.upstream.name()),
		slog.String("reason", Reason(c.reason.Load()).String()),
		slog.Uint64("bytes_up", c.up.bytes.Load()),
		slog.Uint64("bytes_down", c.down.bytes.Load()),
		slog.Duration("duration", time.Since(c.start)),
		slog.String("copy", c.copies()),
	}
	if c.firstByte > 0 {
		attrs = append(attrs, slog.Duration("first_byte", c.firstByte))
	}
	if t, ok := c.client.conn.(*tls.Conn); ok {
		state := t.ConnectionState()
		attrs = append(attrs, slog.String("tls", tls.VersionName(state.Version)))
		if state.ServerName != "" {
			attrs = append(attrs, slog.String("server_name", state.ServerName))
		}
		if len(state.PeerCertificates) > 0 {
			attrs = append(attrs, slog.String("client_cert", state.PeerCertificates[0].Subject.String()))
		}
	}
	r.options.Access.LogAttrs(background, slog.LevelInfo, "connection", attrs...)
}
