package relay

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// trusts reports whether a client is a trusted proxy.
func (r *Relay) trusts(client *peer) bool {
	from := addrPort(client.socket.RemoteAddr()).Addr()
	return slices.ContainsFunc(r.options.TrustProxy, func(p netip.Prefix) bool { return p.Contains(from) })
}

// readProxy reads the PROXY header of a trusted client, until ctx ends. The
// bytes after it are in client.first.
func (r *Relay) readProxy(ctx context.Context, client *peer) error {
	unhook := context.AfterFunc(ctx, func() { _ = client.socket.SetReadDeadline(time.Unix(1, 0)) })
	defer unhook()
	b := r.buffers.get()
	defer r.buffers.put(b)
	for have := 0; ; {
		n, err := client.socket.Read(b.b[have:])
		have += n
		o, size, parseErr := parseProxy(b.b[:have])
		switch {
		case parseErr == nil:
			client.origin = &o
			if size < have {
				client.first = bytes.Clone(b.b[size:have])
			}
			return ctx.Err()
		case parseErr != errShortProxy:
			return parseErr
		case err != nil:
			return fmt.Errorf("%w: %w", errShortProxy, err)
		}
	}
}
