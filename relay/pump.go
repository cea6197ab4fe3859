package relay

import (
	"errors"
	"io"
	"os"
	"sync/atomic"
	"time"
)

// A pump copies one direction. Its fields are owned by the goroutine of run, except
// those that are atomic, and wait.stall.
type pump struct {
	conn     *conn
	src, dst *peer
	total    *atomic.Uint64 // bytes of the whole relay in this direction
	bytes    atomic.Uint64  // that dst has taken
	spliced  bool           // some of them by splice
	ending   atomic.Bool    // src has ended, and dst is being told
	ended    atomic.Bool    // dst has been told

	buf *buffer               // held while it has bytes of src, or may get some
	n   int                   // bytes that the last callback moved
	err error                 // its error
	try func(fd uintptr) bool // callback of readSocket or readTLS
	put func(fd uintptr) bool // callback of writeSocket
	out []byte                // what it still has to write

	coalescing coalescing
	wait       wait

	splicer
}

func (p *pump) init(c *conn, src, dst *peer, total *atomic.Uint64) {
	p.conn, p.src, p.dst, p.total = c, src, dst, total
	if src.tlsSocket != nil {
		src.tlsSocket.buffers = &c.relay.buffers
	}
	if dst.tlsSocket != nil {
		dst.tlsSocket.onBlocked = p.block
	}
	p.limit()
}

func (p *pump) run() {
	at, err := p.copy()
	if err != nil && p.conn.stopped.Load() != 0 && errors.Is(err, os.ErrDeadlineExceeded) {
		at, err = nil, nil
	}
	p.conn.finished(p, at, err)
	p.conn.directionEnded()
}

// copy copies until src ends, or until a side fails, which it returns with the error.
func (p *pump) copy() (at *peer, err error) {
	if first := p.src.first; first != nil {
		p.src.first = nil
		if err := p.write(first); err != nil {
			return p.dst, err
		}
	}
	for {
		if at, err = p.buffered(); err != errUseSplice {
			return at, err
		}
		if at, err = p.splice(); err != errUseBuffers {
			return at, err
		}
	}
}

// A copy loop returns one of these to switch to the other.
var (
	errUseSplice  = errors.New("splice may be cheaper")
	errUseBuffers = errors.New("buffers may be cheaper")
)

// buffered copies through buffers. It returns errUseSplice when splice is to take over.
func (p *pump) buffered() (at *peer, err error) {
	defer p.releaseBuffers()
	for {
		n, readErr := p.read()
		if readErr == errNoBuffer {
			before := p.bytes.Load()
			ended, at, err := p.copyUnbuffered()
			if ended || err != nil {
				return at, err
			}
			if p.shouldSplice(int(p.bytes.Load()-before), p.conn.relay.buffers.sizeBytes) {
				return nil, errUseSplice
			}
			continue
		}
		if n > 0 {
			if err := p.write(p.buf.b[:n]); err != nil {
				return p.dst, err
			}
		}
		if readErr == io.EOF {
			return nil, nil
		}
		if readErr != nil {
			return p.src, readErr
		}
		if p.buf != nil && p.shouldSplice(n, len(p.buf.b)) {
			return nil, errUseSplice
		}
		if p.canCoalesce() {
			p.coalesce(n, p.buf != nil && n == len(p.buf.b))
		}
	}
}

// errNoBuffer says that there is something to read, but that so many buffers are in use
// that the direction must not hold one while its destination accepts nothing.
var errNoBuffer = errors.New("no buffer to spare")

// read waits for bytes of src, reads them into p.buf and returns how many they are.
// Where a socket can be waited on, it takes p.buf only once there is something.
func (p *pump) read() (n int, err error) {
	switch {
	case p.src.tlsSocket != nil:
		return p.readTLS()
	case canWait && p.src.plain():
		return p.readSocket()
	}
	p.acquireBuffer()
	return p.src.conn.Read(p.buf.b)
}

// readTLS waits until records of TLS have come, and reads what they carry as far as
// the buffer goes.
func (p *pump) readTLS() (n int, err error) {
	if p.try == nil {
		p.try = p.tryTLS
	}
	if err := p.src.raw.Read(p.try); err != nil {
		// What TLS has taken off the socket already is still handed on.
		p.src.tlsSocket.shut = true
		if !p.tryTLS(0) {
			return 0, err
		}
	}
	return p.n, p.err
}

// tryTLS reads without waiting. It keeps the buffer only if there was something:
// bytes, the end or an error.
func (p *pump) tryTLS(fd uintptr) bool {
	p.acquireBuffer()
	p.src.tlsSocket.fd, p.n, p.err = fd, 0, nil
	for p.n < len(p.buf.b) && p.err == nil {
		var n int
		n, p.err = p.src.conn.Read(p.buf.b[p.n:])
		p.n += n
	}
	if errors.Is(p.err, errWouldBlock) {
		p.err = nil
		if p.n == 0 {
			if !p.shouldWait() {
				return p.tryTLS(fd)
			}
			p.releaseBuffer()
			return false
		}
	}
	return true
}

// write writes all of b to dst, and counts what dst has taken of it.
func (p *pump) write(b []byte) error {
	if canWait && p.dst.plain() {
		return p.writeSocket(b)
	}
	defer p.unblock()
	if w := p.dst.tlsSocket; w != nil {
		w.pumping.Store(true)
		defer w.pumping.Store(false)
	} else {
		p.block() // it may take nothing, and does not say so before it returns
	}
	n, err := p.dst.write(b)
	p.moved(n)
	return err
}

// releaseBuffers puts back the buffers that the direction holds.
func (p *pump) releaseBuffers() {
	p.releaseBuffer()
	if p.src.tlsSocket != nil {
		p.src.tlsSocket.releaseReadAhead()
	}
}

func (p *pump) acquireBuffer() {
	if p.buf == nil {
		p.buf = p.conn.relay.buffers.get()
	}
}

func (p *pump) releaseBuffer() {
	if p.buf != nil {
		p.conn.relay.buffers.put(p.buf)
		p.buf = nil
	}
}

// moved counts n bytes that dst has taken.
func (p *pump) moved(n int) {
	if n <= 0 {
		return
	}
	// The connection's own count first: what Stats has counted is in it.
	mine := p.bytes.Add(uint64(n))
	p.total.Add(uint64(n))
	if mine == uint64(n) && p == &p.conn.down {
		p.conn.firstByte = time.Since(p.conn.start)
		p.conn.relay.counts.firstByte.Record(p.conn.firstByte)
	}
}
