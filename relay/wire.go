package relay

import (
	"net"
	"syscall"
)

// A wire is what TLS reads from and writes to: a socket whose reads, once the
// handshake is done, do not wait. So the relay can wait for TLS's bytes without
// being inside a call that has its buffer.
type wire struct {
	net.Conn
	raw     syscall.RawConn
	first   []byte // read from the socket before TLS
	waiting bool   // reads wait; so it is until the handshake is done
	try     func(fd uintptr) bool
	p       []byte // of the Read under way
	n       int
	err     error
}

// errWait is what a read returns for which there is nothing yet. TLS takes it
// for a deadline that has passed, after which it can go on.
var errWait net.Error = wouldWait{}

type wouldWait struct{}

func (wouldWait) Error() string   { return "nothing to read yet" }
func (wouldWait) Timeout() bool   { return true }
func (wouldWait) Temporary() bool { return true }

func newWire(socket net.Conn, raw syscall.RawConn, first []byte) *wire {
	w := &wire{Conn: socket, raw: raw, first: first, waiting: true}
	w.try = w.tryRead
	return w
}

// Read is called by TLS, on behalf of one goroutine at a time.
func (w *wire) Read(p []byte) (int, error) {
	if len(w.first) > 0 {
		n := copy(p, w.first)
		if w.first = w.first[n:]; len(w.first) == 0 {
			w.first = nil
		}
		return n, nil
	}
	if w.waiting {
		return w.Conn.Read(p)
	}
	w.p = p
	err := w.raw.Read(w.try)
	w.p = nil
	if err != nil {
		return 0, err
	}
	return w.n, w.err
}

func (w *wire) tryRead(fd uintptr) bool {
	w.n, w.err = readSocket(fd, w.p)
	return true
}
