package relay

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"syscall"
)

// A peer is one of the two sides of a relayed connection.
type peer struct {
	conn      net.Conn        // carries the bytes: socket, or TLS on top of it
	socket    net.Conn        // below TLS, if there is any
	raw       syscall.RawConn // of socket; nil: it has no descriptor to wait on
	tlsSocket *tlsSocket      // what TLS reads from; nil without TLS, or if it is a caller's own
	first     []byte          // read from conn already, to be passed on first
	origin    *origin         // of the client of a trusted proxy; otherwise nil
}

// newPeer describes c, which may be a *tls.Conn of the caller's.
func newPeer(c net.Conn) peer {
	s := peer{conn: c, socket: c}
	if t, ok := c.(*tls.Conn); ok {
		s.socket = t.NetConn()
	}
	if sc, ok := s.socket.(syscall.Conn); ok {
		if raw, err := sc.SyscallConn(); err == nil {
			s.raw = raw
			s.inlineUrgent()
		}
	}
	return s
}

// plain reports whether conn is a socket itself.
func (s *peer) plain() bool {
	switch s.conn.(type) {
	case *net.TCPConn, *net.UnixConn:
		return s.raw != nil
	}
	return false
}

type halfCloser interface{ CloseWrite() error }

// endedWhole reports whether err is what a read gets of a connection that knows
// no half-close and was closed for that reason.
func (s *peer) endedWhole(err error) bool {
	_, halves := s.conn.(halfCloser)
	return !halves && (errors.Is(err, io.ErrClosedPipe) || errors.Is(err, net.ErrClosed))
}

// closeWrite tells the peer that nothing more comes.
func (s *peer) closeWrite() error {
	c, ok := s.conn.(halfCloser)
	if !ok {
		return s.conn.Close()
	}
	err := c.CloseWrite()
	if s.conn == s.socket || err != nil {
		return err
	}
	// After the TLS alert, for a peer that looks at the socket alone. It fails if
	// the peer has closed its socket and answered the alert by a reset; the
	// stream is whole nonetheless.
	if c, ok := s.socket.(halfCloser); ok {
		_ = c.CloseWrite()
	}
	return nil
}

// closeRead makes reads end once the bytes that have come are read.
func (s *peer) closeRead() {
	if c, ok := s.socket.(interface{ CloseRead() error }); ok {
		_ = c.CloseRead() // fails if the socket is dead, whose reads end anyway
	} else {
		_ = s.socket.Close()
	}
}

// close closes the socket, by a reset if that is asked for.
func (s *peer) close(reset bool) {
	if c, ok := s.socket.(*net.TCPConn); ok && reset {
		_ = c.SetLinger(0) // on a dead socket there is nobody to tell
	}
	_ = s.socket.Close()
}

// isErrno reports whether err is one of codes.
func isErrno(err error, codes ...syscall.Errno) bool {
	errno, ok := errors.AsType[syscall.Errno](err)
	return ok && slices.Contains(codes, errno)
}

// isReset reports whether err says that the peer is gone.
func isReset(err error) bool {
	return isErrno(err, syscall.ECONNRESET, syscall.EPIPE, syscall.ENOTCONN, syscall.ECONNABORTED, syscall.ETIMEDOUT) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe)
}
