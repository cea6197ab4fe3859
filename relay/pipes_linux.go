package relay

import (
	"sync"

	"golang.org/x/sys/unix"
)

// A pipe carries spliced bytes. Its owner is the pool or one direction.
type pipe struct{ r, w int }

func (p *pipe) close() {
	unix.Close(p.r)
	unix.Close(p.w)
}

// pipeSize is how much a pipe is asked to hold. Where a user may not have that
// much, the kernel's 64 KiB remain.
const pipeSize = 256 << 10

// pipes lends at most max pipes. Safe for concurrent use.
type pipes struct {
	mu     sync.Mutex
	free   []*pipe // guarded by mu; all are empty
	open   int     // guarded by mu: free and lent
	low    int     // guarded by mu: fewest free since trim
	max    int
	closed bool // guarded by mu
}

// get returns an empty pipe; nil: there is none, and none may be made.
func (p *pipes) get() *pipe {
	p.mu.Lock()
	if n := len(p.free); n > 0 {
		got := p.free[n-1]
		p.free = p.free[:n-1]
		p.low = min(p.low, n-1)
		p.mu.Unlock()
		return got
	}
	if p.open == p.max || p.closed {
		p.mu.Unlock()
		return nil
	}
	p.open++
	p.mu.Unlock()
	got := newPipe()
	if got == nil {
		p.forget()
	}
	return got
}

func newPipe() *pipe {
	var fds [2]int
	if unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK) != nil {
		return nil
	}
	_, _ = unix.FcntlInt(uintptr(fds[0]), unix.F_SETPIPE_SZ, pipeSize) // a smaller one works as well
	return &pipe{fds[0], fds[1]}
}

// put takes back a pipe that is empty.
func (p *pipes) put(back *pipe) {
	p.mu.Lock()
	if !p.closed {
		p.free = append(p.free, back)
		p.mu.Unlock()
		return
	}
	p.mu.Unlock()
	p.discard(back)
}

// discard takes back a pipe that may hold bytes.
func (p *pipes) discard(back *pipe) {
	back.close()
	p.forget()
}

func (p *pipes) forget() {
	p.mu.Lock()
	p.open--
	p.mu.Unlock()
}

// trim closes the pipes that were not needed since the last call.
func (p *pipes) trim() {
	p.mu.Lock()
	n := min(p.low, len(p.free))
	spare := append([]*pipe(nil), p.free[:n]...)
	p.free = append(p.free[:0], p.free[n:]...)
	p.open -= n
	p.low = len(p.free)
	p.mu.Unlock()
	for _, s := range spare {
		s.close()
	}
}

// close closes the free pipes, and the others as they come back.
func (p *pipes) close() {
	p.mu.Lock()
	p.closed = true
	free := p.free
	p.free = nil
	p.open -= len(free)
	p.mu.Unlock()
	for _, f := range free {
		f.close()
	}
}

// count returns how many pipes are open and how many of them are lent.
func (p *pipes) count() (open, lent int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open, p.open - len(p.free)
}
