package relay

import (
	"os"

	"golang.org/x/sys/unix"
)

// A splicer is what a pump needs to splice.
type splicer struct {
	in, out func(fd uintptr) bool
	pipe    *pipe // held while it has bytes, or may get some
	left    int   // bytes in pipe
	noPipe  bool  // there was none to be had
}

func (p *pump) spliceable() bool {
	return p.conn.relay.options.Copy == CopyAuto && p.src.plain() && p.dst.plain()
}

// splice copies through a pipe, which it has from the first byte that comes in
// until there are no more for now.
func (p *pump) splice() (at *side, err error) {
	p.in, p.out = p.spliceIn, p.spliceOut
	defer p.putPipe()
	for {
		if err := p.src.raw.Read(p.in); err != nil {
			return p.src, err
		}
		switch {
		case p.noPipe:
			ended, at, err := p.copyPeeked()
			if ended || err != nil {
				return at, err
			}
			continue
		case p.err == unix.EINVAL:
			return nil, errNotSpliceable
		case p.err != nil:
			return p.src, os.NewSyscallError("splice", p.err)
		case p.n == 0:
			return nil, nil
		}
		p.left = p.n
		if err := p.dst.raw.Write(p.out); err != nil {
			return p.dst, err
		}
		if p.err != nil {
			return p.dst, os.NewSyscallError("splice", p.err)
		}
	}
}

const spliceFlags = unix.SPLICE_F_NONBLOCK | unix.SPLICE_F_MOVE

// spliceIn fills the empty pipe; p.n is 0 at the end of the source. Without a
// pipe it only waits until there is something to read.
func (p *pump) spliceIn(fd uintptr) (ready bool) {
	if p.pipe == nil {
		p.pipe = p.conn.relay.pipes.get()
	}
	if p.noPipe = p.pipe == nil; p.noPipe {
		return readable(fd)
	}
	for {
		n, err := unix.Splice(int(fd), nil, p.pipe.w, nil, largePipe, spliceFlags)
		switch err {
		case unix.EINTR:
			continue
		case unix.EAGAIN:
			p.putPipe()
			return false
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
			return false
		case err != nil:
			p.err = err
			return true
		default:
			p.left -= int(n)
			p.moved(int(n))
		}
	}
	return true
}

func (p *pump) putPipe() {
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
