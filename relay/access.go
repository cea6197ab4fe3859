package relay

import (
	"log/slog"
	"time"
)

// logAccess writes the record of a connection that has ended.
func (r *Relay) logAccess(c *conn) {
	if r.options.Access == nil {
		return
	}
	mode := "buffers"
	if c.up.spliceable() {
		mode = "splice"
	}
	r.options.Access.LogAttrs(noContext, slog.LevelInfo, "connection",
		slog.String("client", c.client.socket.RemoteAddr().String()),
		slog.String("upstream", c.upstream.socket.RemoteAddr().String()),
		slog.String("reason", Reason(c.reason.Load()).String()),
		slog.Uint64("bytes_up", c.up.bytes.Load()),
		slog.Uint64("bytes_down", c.down.bytes.Load()),
		slog.Duration("duration", time.Since(c.start)),
		slog.String("copy", mode),
	)
}
