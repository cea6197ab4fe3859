package relay

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// tlsConfig is what a handshake with an upstream uses. Sessions are kept until the files
// change.
func (up *upstream) tlsConfig() *tls.Config {
	c := up.clientTLS.config.Load().Clone()
	c.ServerName = cmp.Or(c.ServerName, up.host)
	c.ClientSessionCache = sessions{c.ClientSessionCache, up.dial}
	return c
}

// sessions are those of one upstream in a cache of all. Others may have the same server
// name, and could not resume them.
type sessions struct {
	tls.ClientSessionCache
	upstream string
}

func (s sessions) Get(key string) (*tls.ClientSessionState, bool) {
	return s.ClientSessionCache.Get(s.upstream + " " + key)
}

func (s sessions) Put(key string, state *tls.ClientSessionState) {
	s.ClientSessionCache.Put(s.upstream+" "+key, state)
}

// handshake runs TLS over the socket of s. If ctx ends first, its error is that of ctx.
func (s *peer) handshake(ctx context.Context, over func(net.Conn) *tls.Conn) error {
	w := &tlsSocket{Conn: s.socket, raw: s.raw, first: s.first, blocking: true}
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

// A tlsSocket is the socket that a TLS connection reads and writes. After the handshake
// its reads do not block, so that the relay can wait for bytes without a call that holds
// its buffer.
type tlsSocket struct {
	net.Conn
	raw      syscall.RawConn
	first    []byte      // read from the socket before TLS
	blocking bool        // reads wait; so it is until the handshake is done
	fd       uintptr     // once reads do not wait: valid during a callback of raw.Read
	shut     bool        // raw.Read has failed; fd is not valid any more
	more     atomic.Bool // another write follows the next one

	buffers   *buffers // of the relay, for ahead
	readAhead *buffer  // read from the socket for TLS; nil: nothing is
	unread    []byte   // what TLS has not read of it

	onBlocked func()      // called when the socket accepts nothing now, while pumping is set
	pumping   atomic.Bool // the direction to this peer is in a write, or waits for TLS before one

	out struct { // of the Write under way; TLS has one at a time
		try   func(fd uintptr) bool
		p     []byte // what is left of it
		flags int
		err   error
	}
}

// errWouldBlock is returned by a read when there is nothing to read yet. For TLS it is an
// expired deadline, after which it can go on.
var errWouldBlock net.Error = wouldBlock{}

type wouldBlock struct{}

func (wouldBlock) Error() string   { return "nothing to read yet" }
func (wouldBlock) Timeout() bool   { return true }
func (wouldBlock) Temporary() bool { return true }

// Read is called by TLS, on behalf of one goroutine at a time.
func (w *tlsSocket) Read(p []byte) (int, error) {
	if len(w.first) > 0 {
		n := copy(p, w.first)
		if w.first = w.first[n:]; len(w.first) == 0 {
			w.first = nil
		}
		return n, nil
	}
	if w.blocking {
		return w.Conn.Read(p)
	}
	if len(w.unread) == 0 {
		w.releaseReadAhead()
		switch {
		case w.shut:
			return 0, errWouldBlock
		case len(p) >= smallRead:
			return readSocket(w.fd, p)
		}
		b := w.buffers.get()
		n, err := readSocket(w.fd, b.b)
		if n == 0 {
			w.buffers.put(b)
			return 0, err
		}
		w.readAhead, w.unread = b, b.b[:n]
	}
	n := copy(p, w.unread)
	w.unread = w.unread[n:]
	return n, nil
}

// smallRead is less than TLS asks for once it has seen a large record. While records are
// small, one read of the socket returns many of them.
const smallRead = 4 << 10

// releaseReadAhead puts the buffer back and discards the bytes left in it.
func (w *tlsSocket) releaseReadAhead() {
	if w.readAhead != nil {
		w.buffers.put(w.readAhead)
		w.readAhead, w.unread = nil, nil
	}
}

// Write is called by TLS, record by record.
func (w *tlsSocket) Write(p []byte) (int, error) {
	if w.blocking {
		return w.Conn.Write(p)
	}
	return w.write(p, w.more.Load())
}

// maxRecord is how many bytes a record of TLS carries at most.
const maxRecord = 16 << 10

// write writes b. TLS records are sent together: all but the last are held back until
// the last is written.
func (s *peer) write(b []byte) (n int, err error) {
	if s.tlsSocket != nil && len(b) > maxRecord {
		s.tlsSocket.more.Store(true)
		n, err = s.conn.Write(b[:(len(b)-1)/maxRecord*maxRecord])
		s.tlsSocket.more.Store(false)
		if err != nil {
			return n, err
		}
	}
	m, err := s.conn.Write(b[n:])
	return n + m, err
}
