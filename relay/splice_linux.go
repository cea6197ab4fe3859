package relay

import (
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A splicer is what a pump needs to splice.
type splicer struct {
	in, emptied func(fd uintptr) bool // callbacks: spliceIn and spliceOut
	pipe        *pipe                 // held while it has bytes, or may get some
	left        int                   // bytes in pipe
	choice      spliceChoice
}

// sleepShortly sleeps for d, and some 50 µs more: the timer slack of Linux.
func sleepShortly(d time.Duration) {
	t := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&t, nil) // a signal may end it sooner
}

// spliceable reports whether the direction may be spliced.
func (p *pump) spliceable() bool {
	return !p.conn.relay.options.noSplice && p.src.plain() && p.dst.plain()
}

// splice copies through a pipe, which it takes when there is something to read and
// gives back when there is no more for now. It returns errUseBuffers when buffers are
// to take over.
func (p *pump) splice() (at *peer, err error) {
	if p.in == nil {
		p.in, p.emptied = p.spliceIn, p.spliceOut
	}
	p.lowWater(false)
	p.choice = spliceChoice{mark: p.bytes.Load()}
	defer p.releasePipe()
	for {
		if err := p.src.raw.Read(p.in); err != nil {
			return p.src, err
		}
		switch {
		case p.err == unix.EINVAL: // not between these sockets
			p.choice.never = true
			return nil, errUseBuffers
		case p.err != nil:
			return p.src, os.NewSyscallError("splice", p.err)
		case p.n == 0:
			return nil, errUseBuffers
		}
		p.left = p.n
		err := p.dst.raw.Write(p.emptied)
		p.unblock()
		if err != nil {
			return p.dst, err
		}
		if p.err != nil {
			return p.dst, os.NewSyscallError("splice", p.err)
		}
		if !p.keepsSplicing() {
			return nil, errUseBuffers
		}
	}
}

const spliceFlags = unix.SPLICE_F_NONBLOCK | unix.SPLICE_F_MOVE

// spliceIn fills the empty pipe. Before an urgent byte splice(2) stops for ever, and
// returns what it does at the end or when there is nothing to read. p.n is then 0,
// and buffers take over: a read tells these apart.
func (p *pump) spliceIn(fd uintptr) (done bool) {
	if p.pipe == nil {
		p.pipe = p.conn.relay.pipes.get()
	}
	p.n, p.err = 0, nil
	if p.pipe == nil {
		return true // no pipe is available: buffers take over
	}
	for {
		n, err := unix.Splice(int(fd), nil, p.pipe.w, nil, largePipe, spliceFlags)
		switch err {
		case unix.EINTR:
			continue
		case unix.EAGAIN:
			p.releasePipe()
			return ready(fd, unix.POLLIN)
		}
		p.n, p.err = int(n), err
		return true
	}
}

// spliceOut empties the pipe.
func (p *pump) spliceOut(fd uintptr) (done bool) {
	for p.left > 0 {
		n, err := unix.Splice(p.pipe.r, nil, int(fd), nil, p.left, spliceFlags)
		switch {
		case err == unix.EINTR:
		case err == unix.EAGAIN:
			p.block()
			return false
		case err != nil:
			p.err = err
			return true
		default:
			p.left -= int(n)
			p.moved(int(n))
			p.spliced = true
		}
	}
	return true
}

func (p *pump) releasePipe() {
	switch {
	case p.pipe == nil:
		return
	case p.left > 0:
		p.conn.relay.pipes.discard(p.pipe)
	default:
		p.conn.relay.pipes.put(p.pipe)
	}
	p.pipe, p.left = nil, 0
}

// spliceChoice decides between buffers and splice(2) for a direction between plain
// sockets. Splicing saves a copy, but its system calls cost more. So a direction begins
// with buffers, splices once reads fill them, and returns to buffers when a call of
// splice moves little.
type spliceChoice struct {
	full   int    // reads in a row that filled the buffer
	rounds int    // of splice since mark was set
	mark   uint64 // pump.bytes before these rounds
	never  bool   // the kernel cannot splice these sockets
}

const (
	fullReads    = 4        // in a row that fill the buffer, after which the direction splices
	spliceRounds = 16       // of splice, over which the average is taken
	minSpliced   = 32 << 10 // bytes a round on average, below which the direction goes back to buffers
)

// shouldSplice reports whether to splice after a round that moved n bytes through a
// buffer with room for most.
func (p *pump) shouldSplice(n, most int) bool {
	c := &p.choice
	if n < most || c.never || !p.spliceable() {
		c.full = 0
		return false
	}
	c.full++
	return c.full >= fullReads
}

// keepsSplicing reports whether to go on splicing after a round.
func (p *pump) keepsSplicing() bool {
	c := &p.choice
	if c.rounds++; c.rounds < spliceRounds {
		return true
	}
	moved := p.bytes.Load() - c.mark
	c.rounds, c.mark = 0, c.mark+moved
	return moved >= spliceRounds*minSpliced
}

// copyUnbuffered copies once without a pipe: it peeks at the source,
// writes as much as the destination accepts at once, and removes that much from the
// source. So it holds nothing while the destination accepts nothing.
func (p *pump) copyUnbuffered() (ended bool, at *peer, err error) {
	err = p.dst.raw.Write(func(fd uintptr) bool {
		if !ready(fd, unix.POLLOUT) {
			p.block()
			return false
		}
		return true
	})
	p.unblock()
	if err != nil {
		return false, p.dst, err
	}
	p.buf = p.conn.relay.buffers.getLarge()
	defer p.releaseBuffer()
	ahead := p.receive(unix.MSG_PEEK, len(p.buf.b))
	switch {
	case p.err == unix.EAGAIN:
		return false, nil, nil
	case p.err != nil:
		return false, p.src, os.NewSyscallError("recv", p.err)
	case ahead == 0:
		return true, nil, nil
	}
	taken := p.once(p.dst.raw, func(fd int) (int, error) { return unix.Write(fd, p.buf.b[:ahead]) })
	if p.err != nil && p.err != unix.EAGAIN {
		return false, p.dst, os.NewSyscallError("write", p.err)
	}
	p.moved(taken)
	discard := 0
	if _, ok := p.src.conn.(*net.TCPConn); ok {
		discard = unix.MSG_TRUNC // copies nothing
	}
	for taken > 0 {
		n := p.receive(discard, taken)
		if p.err != nil {
			return false, p.src, os.NewSyscallError("recv", p.err)
		}
		taken -= n
	}
	return false, nil, nil
}

// receive receives up to most bytes into the buffer, without waiting.
func (p *pump) receive(flags, most int) int {
	return p.once(p.src.raw, func(fd int) (n int, err error) {
		n, _, err = unix.Recvfrom(fd, p.buf.b[:most], flags)
		return n, err
	})
}

// once makes a call on a socket, without waiting. Its error is in p.err.
func (p *pump) once(raw syscall.RawConn, call func(fd int) (int, error)) (n int) {
	err := raw.Control(func(fd uintptr) {
		for {
			if n, p.err = call(int(fd)); p.err != unix.EINTR {
				return
			}
		}
	})
	if err != nil {
		p.err = err
	}
	return max(n, 0)
}

// mustCopyUnbuffered reports whether a direction between plain sockets must not
// hold a buffer while it waits.
func (p *pump) mustCopyUnbuffered() bool {
	return p.spliceable() && p.conn.relay.buffers.inUse.Load() >= p.conn.relay.buffers.many
}
