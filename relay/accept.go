package relay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/rollway/rollway/internal/aside"
)

// accept takes connections until the listener is closed.
func (r *Relay) accept(ctx context.Context, l net.Listener) error {
	const longest = time.Second
	overTLS := false
	if own, ok := l.(*Listener); ok {
		overTLS = own.TLS()
	}
	pause := time.Duration(0)
	for {
		socket, err := l.Accept()
		switch {
		case err == nil:
			pause = 0
			r.accepted(socket, overTLS)
		case ctx.Err() != nil, r.isClosing():
			return errClosed
		case errors.Is(err, net.ErrClosed):
			return err
		default: // out of descriptors or memory, most likely
			r.counts.acceptErrors.Add(1)
			pause = min(max(2*pause, 5*time.Millisecond), longest)
			r.limited.log(slog.LevelError, "cannot accept a connection", slog.Any("error", err))
			aside.Await(r.stopped.Done(), pause)
		}
	}
}

func (r *Relay) isClosing() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closing
}

// accepted sets a connection up in a goroutine of its own, whose stack handshakes and
// dials make large and which ends before bytes are copied.
func (r *Relay) accepted(socket net.Conn, overTLS bool) {
	r.counts.accepted.Add(1)
	if reason := r.beginSetup(r.options.MaxConns); reason != 0 {
		r.refuse(newPeer(socket), reason)
		if reason == ReasonLimit {
			r.limited.log(slog.LevelWarn, "connections are refused: there are as many as MaxConns allows", slog.Int("max_conns", r.options.MaxConns))
		}
		return
	}
	start := time.Now()
	go func() {
		if !r.setUp(newPeer(socket), overTLS, start) {
			r.endSetup()
		}
	}()
}

// refuse resets a client that is not served.
func (r *Relay) refuse(client peer, reason Reason) {
	client.close(true)
	r.counts.closed[reason].Add(1)
}

// setUp prepares a client, connects an upstream and starts to copy. It returns false if
// one of these fails.
func (r *Relay) setUp(client peer, overTLS bool, start time.Time) bool {
	var from netip.Addr // counted in r.sources, if valid
	refuse := func(reason Reason, level slog.Level, msg string, args ...any) bool {
		if from.IsValid() {
			r.sources.release(from)
		}
		r.refuse(client, reason)
		r.limited.log(level, msg, append(args, slog.String("client", client.name()))...)
		return false
	}
	// Clients of a trusted proxy are counted once their address is known.
	admitted := r.trusts(&client) || r.admit(&client, &from)
	if admitted {
		if reason, err := r.prepareClient(&client, overTLS); err != nil {
			return refuse(reason, slog.LevelWarn, "a client got no further than "+reason.String(), slog.Any("error", err))
		}
		admitted = client.origin == nil || r.admit(&client, &from)
	}
	if !admitted {
		return refuse(ReasonSourceLimit, slog.LevelWarn, "connections of a source are refused: it has as many as MaxConnsPerSource allows", slog.Int("max_conns_per_source", r.options.MaxConnsPerSource))
	}
	upstream, endpoint, err := r.dial(r.stopped, r.upstreams.route(client.serverName()), &client)
	if err != nil {
		return refuse(ReasonDial, slog.LevelError, "no upstream can be reached", slog.Any("error", err))
	}
	c := r.join(client, upstream, start)
	c.endpoint, c.source = endpoint, from
	c.run()
	return true
}

// admit counts a client under its address and sets from to that. It returns false if
// there are too many.
func (r *Relay) admit(client *peer, from *netip.Addr) bool {
	most := r.options.MaxConnsPerSource
	a := source(client.addresses().from.Addr())
	if most == 0 || !a.IsValid() {
		return true
	}
	if !r.sources.acquire(a, most) {
		return false
	}
	*from = a
	return true
}

// trusts reports whether a client is a trusted proxy.
func (r *Relay) trusts(client *peer) bool {
	from := addrPort(client.socket.RemoteAddr()).Addr()
	return slices.ContainsFunc(r.options.TrustProxy, func(p netip.Prefix) bool { return p.Contains(from) })
}

// readProxy reads the PROXY header of a trusted client, until ctx ends. The bytes after it
// are in client.first.
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
