package relay

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"time"
)

// tlsConfig is what handshakes with an upstream use. It stays the same until the
// files change, so that sessions are resumed.
func (up *upstream) tlsConfig() *tls.Config {
	base := up.clientTLS.config.Load()
	up.mu.Lock()
	defer up.mu.Unlock()
	if up.base == base {
		return up.config
	}
	c := base.Clone()
	if c.ServerName == "" {
		c.ServerName = up.host
	}
	if c.ClientSessionCache == nil {
		c.ClientSessionCache = tls.NewLRUClientSessionCache(0)
	}
	up.base, up.config = base, c
	return c
}

// handshake runs TLS over the socket of s. If ctx ends first, its error is that of ctx.
func (s *peer) handshake(ctx context.Context, over func(net.Conn) *tls.Conn) error {
	w := newTLSSocket(s.socket, s.raw, s.first)
	s.first = nil
	t := over(w)
	if err := t.HandshakeContext(ctx); err != nil {
		return err
	}
	s.conn = t
	if canWait && s.raw != nil {
		s.tlsSocket, w.blocking = w, false
	}
	return nil
}

// route returns the upstreams for the name that a client asked for.
func (u *upstreams) route(name string) *group {
	if len(u.routes) == 0 || name == "" {
		return &u.to
	}
	name = canonicalName(name)
	if g := u.routes[name]; g != nil {
		return g
	}
	if _, parent, ok := strings.Cut(name, "."); ok {
		if g := u.routes["*."+parent]; g != nil {
			return g
		}
	}
	return &u.to
}

func canonicalName(name string) string { return strings.TrimSuffix(strings.ToLower(name), ".") }

func validRoute(name string) bool {
	name = strings.TrimPrefix(name, "*.")
	return name != "" && !strings.ContainsAny(name, "*/: ")
}

// serverName returns the name that a TLS client asked for.
func (s *peer) serverName() string {
	if t, ok := s.conn.(*tls.Conn); ok {
		return t.ConnectionState().ServerName
	}
	return ""
}

// prepareClient reads a client's PROXY header and does its TLS handshake, both within
// HandshakeTimeout.
func (r *Relay) prepareClient(client *peer, overTLS bool) (Reason, error) {
	trusted := r.trusts(client)
	own, already := client.conn.(*tls.Conn) // of a listener that is not ours
	if !trusted && !overTLS && !already {
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(r.stopped, r.options.HandshakeTimeout)
	defer cancel()
	if trusted {
		if err := r.readProxy(ctx, client); err != nil {
			return ReasonProxyHeader, err
		}
	}
	if already {
		if err := own.HandshakeContext(ctx); err != nil {
			return ReasonHandshake, err
		}
	} else if overTLS {
		if err := client.handshake(ctx, func(c net.Conn) *tls.Conn { return tls.Server(c, r.serverTLS.config.Load()) }); err != nil {
			return ReasonHandshake, err
		}
	}
	_ = client.socket.SetDeadline(time.Time{})
	return 0, nil
}
