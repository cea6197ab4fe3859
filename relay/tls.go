package relay

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"time"
)

// serverConfig is what handshakes of clients go by.
func serverConfig(c *tls.Config, a *Authorities) *renewedTLS {
	if c == nil {
		return nil
	}
	c = c.Clone()
	c.MinVersion = max(c.MinVersion, tls.VersionTLS12)
	return &renewedTLS{base: c, authorities: a}
}

// clientConfig is what handshakes with an upstream go by.
func clientConfig(c *tls.Config, host string) *tls.Config {
	if c == nil {
		c = new(tls.Config)
	}
	c = c.Clone()
	c.MinVersion = max(c.MinVersion, tls.VersionTLS12)
	if c.ServerName == "" {
		c.ServerName = host
	}
	if c.ClientSessionCache == nil {
		c.ClientSessionCache = tls.NewLRUClientSessionCache(0)
	}
	return c
}

// handshake puts TLS on a side that is a socket. The error of a handshake that
// was ended by ctx is that of ctx.
func (s *side) handshake(ctx context.Context, over func(net.Conn) *tls.Conn) error {
	w := newWire(s.socket, s.raw, s.first)
	s.first = nil
	t := over(w)
	if err := t.HandshakeContext(ctx); err != nil {
		return err
	}
	s.conn = t
	if canWait && s.raw != nil {
		s.wire, w.waiting = w, false
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

// serverName is the name that the client of a side asked for.
func (s *side) serverName() string {
	if t, ok := s.conn.(*tls.Conn); ok {
		return t.ConnectionState().ServerName
	}
	return ""
}

// welcome does what comes before a client's first byte: its PROXY header and
// its handshake, both within HandshakeTimeout.
func (r *Relay) welcome(client *side, overTLS bool) (Reason, error) {
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
		if err := client.handshake(ctx, func(c net.Conn) *tls.Conn { return tls.Server(c, r.serverTLS.now()) }); err != nil {
			return ReasonHandshake, err
		}
	}
	_ = client.socket.SetDeadline(time.Time{})
	return 0, nil
}
