package relay

import (
	"bytes"
	"context"
	"fmt"
	"time"
)

// trusts reports whether a client is a trusted proxy.
func (r *Relay) trusts(client *peer) bool {
	if len(r.options.TrustProxy) == 0 {
		return false
	}
	from := addrPort(client.socket.RemoteAddr()).Addr()
	for _, p := range r.options.TrustProxy {
		if p.Contains(from) {
			return true
		}
	}
	return false
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
