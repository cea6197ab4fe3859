package relay

import (
	"net"
	"sync/atomic"
	"syscall"
)

// A wire is what TLS reads from and writes to: a socket whose reads, once the
// handshake is done, do not wait. So the relay can wait for TLS's bytes without
// being inside a call that has its buffer.
type tlsSocket struct {
	net.Conn
	raw      syscall.RawConn
	first    []byte      // read from the socket before TLS
	blocking bool        // reads wait; so it is until the handshake is done
	fd       uintptr     // once reads do not wait: valid during a callback of raw.Read
	shut     bool        // raw.Read has failed; fd is not valid any more
	more     atomic.Bool // the next write has more behind it

	buffers   *buffers // of the relay, for ahead
	readAhead *buffer  // read from the socket for TLS; nil: nothing is
	unread    []byte   // what TLS has not read of it

	onBlocked func()      // called when the socket takes nothing now, and pumped is set
	pumping   atomic.Bool // the direction to this side writes, or waits for TLS to let it

	out struct { // of the Write under way; TLS has one at a time
		try   func(fd uintptr) bool
		p     []byte // what is left of it
		flags int
		err   error
	}
}

// errWouldBlock is what a read returns for which there is nothing yet. TLS takes it
// for a deadline that has passed, after which it can go on.
var errWouldBlock net.Error = wouldBlock{}

type wouldBlock struct{}

func (wouldBlock) Error() string   { return "nothing to read yet" }
func (wouldBlock) Timeout() bool   { return true }
func (wouldBlock) Temporary() bool { return true }

func newTLSSocket(socket net.Conn, raw syscall.RawConn, first []byte) *tlsSocket {
	return &tlsSocket{Conn: socket, raw: raw, first: first, blocking: true}
}

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

// smallRead is below what TLS has room for once it has met a large record. Where
// records are small, one read of the socket takes many of them.
const smallRead = 4 << 10

// releaseReadAhead gives the buffer back, and forgets what is left in it.
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

// write writes b to a side. Records of TLS leave together, and the last one
// takes along all that was held back before it.
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
