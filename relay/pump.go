package relay

import (
	"errors"
	"io"
	"os"
	"sync/atomic"
	"time"
)

// A pump copies one direction. Its fields are owned by the goroutine of run,
// but those that are atomic.
type pump struct {
	conn     *conn
	src, dst *side
	total    *atomic.Uint64 // of the relay
	bytes    atomic.Uint64
	ending   atomic.Bool // src has ended, and dst is told
	ended    atomic.Bool // dst knows

	buf *buffer               // held while it has bytes of src, or may get some
	n   int                   // what the last callback moved
	err error                 // what the last callback met
	try func(fd uintptr) bool // of readSocket

	drained bool // readTLS has taken all there was
	splicer
}

func (p *pump) init(c *conn, src, dst *side, total *atomic.Uint64) {
	p.conn, p.src, p.dst, p.total = c, src, dst, total
}

func (p *pump) run() {
	at, err := p.copy()
	if err != nil && p.conn.stopped.Load() != 0 && errors.Is(err, os.ErrDeadlineExceeded) {
		at, err = nil, nil
	}
	p.conn.finished(p, at, err)
	p.conn.returned()
}

// copy copies until src ends, or a side fails, which it names.
func (p *pump) copy() (at *side, err error) {
	if first := p.src.first; first != nil {
		p.src.first = nil
		n, err := p.dst.conn.Write(first)
		p.moved(n)
		if err != nil {
			return p.dst, err
		}
	}
	if p.spliceable() {
		if at, err = p.splice(); err != errNotSpliceable {
			return at, err
		}
	}
	return p.buffered()
}

// errNotSpliceable: the kernel cannot splice these sockets, and has moved
// nothing.
var errNotSpliceable = errors.New("not spliceable")

// buffered copies through buffers.
func (p *pump) buffered() (at *side, err error) {
	defer p.putBuffer()
	for {
		n, readErr := p.read()
		if n > 0 {
			m, err := p.dst.conn.Write(p.buf.b[:n])
			p.moved(m)
			if err != nil {
				return p.dst, err
			}
		}
		if readErr == io.EOF {
			return nil, nil
		}
		if readErr != nil {
			return p.src, readErr
		}
	}
}

// read waits for bytes of src and returns how many there are in p.buf, which is
// held only once there are some, where the source can be waited on.
func (p *pump) read() (n int, err error) {
	switch {
	case p.src.wire != nil:
		return p.readTLS()
	case canWait && p.src.plain():
		return p.readSocket()
	}
	p.getBuffer()
	return p.src.conn.Read(p.buf.b)
}

// readTLS reads the records that have come, as far as the buffer goes, and
// waits on the socket below TLS without a buffer.
func (p *pump) readTLS() (n int, err error) {
	for {
		if p.drained {
			p.putBuffer()
			if err = p.src.awaitReadable(); err != nil {
				return 0, err
			}
		}
		p.getBuffer()
		for n < len(p.buf.b) && err == nil {
			var more int
			more, err = p.src.conn.Read(p.buf.b[n:])
			n += more
		}
		if p.drained = errors.Is(err, errWait); p.drained {
			err = nil
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

func (p *pump) getBuffer() {
	if p.buf == nil {
		p.buf = p.conn.relay.buffers.get()
	}
}

func (p *pump) putBuffer() {
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
	// The connection's own count first: who sees it in Stats finds it there.
	mine := p.bytes.Add(uint64(n))
	p.total.Add(uint64(n))
	if mine == uint64(n) && p == &p.conn.down {
		p.conn.firstByte = time.Since(p.conn.start)
		p.conn.relay.counts.firstByte.observe(p.conn.firstByte)
	}
}
