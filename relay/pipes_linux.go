package relay

import (
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// A pipe carries spliced bytes. Its owner is the pool or one direction.
type pipe struct {
	r, w  int
	large bool // it was asked to hold largePipe
}

func (p *pipe) close() {
	unix.Close(p.r)
	unix.Close(p.w)
}

// Requested capacities of pipes. A large one takes in one call what has accumulated
// while the relay was not scheduled. A user other than root may have 64 MiB of pipes in
// all (fs.pipe-user-pages-soft): 32 large and 96 small ones take 56 MiB.
const (
	largePipe     = 1 << 20 // the most that fs.pipe-max-size allows by default
	smallPipe     = 256 << 10
	maxLargePipes = 32
)

// pipes lends at most max pipes. Safe for concurrent use.
type pipes struct {
	mu     sync.Mutex
	free   []*pipe // guarded by mu; all are empty, small ones first
	open   int     // guarded by mu: free and lent
	large  int     // guarded by mu: how many of them are large
	low    int     // guarded by mu: fewest free since trim
	max    int
	closed bool // guarded by mu
}

// get returns an empty pipe, or nil if no more may be made.
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
	made := &pipe{large: p.large < maxLargePipes}
	p.countLocked(made, 1)
	p.mu.Unlock()
	if !made.make() {
		p.forget(made)
		return nil
	}
	return made
}

func (p *pipe) make() bool {
	var fds [2]int
	if unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK) != nil {
		return false
	}
	p.r, p.w = fds[0], fds[1]
	if p.large && p.resize(largePipe) {
		return true
	}
	_ = p.resize(smallPipe) // the 64 KiB that it has work as well
	return true
}

func (p *pipe) resize(sizeBytes int) bool {
	_, err := unix.FcntlInt(uintptr(p.r), unix.F_SETPIPE_SZ, sizeBytes)
	return err == nil
}

// countLocked notes that there is one pipe more, or less.
func (p *pipes) countLocked(one *pipe, n int) {
	p.open += n
	if one.large {
		p.large += n
	}
}

// put takes back a pipe that is empty.
func (p *pipes) put(back *pipe) {
	p.mu.Lock()
	if !p.closed {
		if back.large {
			p.free = append(p.free, back)
		} else {
			p.free = slices.Insert(p.free, 0, back)
		}
		p.mu.Unlock()
		return
	}
	p.mu.Unlock()
	p.discard(back)
}

// discard takes back a pipe that may hold bytes.
func (p *pipes) discard(back *pipe) {
	back.close()
	p.forget(back)
}

func (p *pipes) forget(gone *pipe) {
	p.mu.Lock()
	p.countLocked(gone, -1)
	p.mu.Unlock()
}

// trim closes the pipes that were not needed since the last call.
func (p *pipes) trim() {
	p.mu.Lock()
	n := min(p.low, len(p.free))
	spare := slices.Clone(p.free[:n])
	p.free = slices.Delete(p.free, 0, n)
	p.low = len(p.free)
	p.mu.Unlock()
	for _, s := range spare {
		p.discard(s)
	}
}

// close closes the free pipes, and the others as they come back.
func (p *pipes) close() {
	p.mu.Lock()
	p.closed = true
	free := p.free
	p.free = nil
	p.mu.Unlock()
	for _, f := range free {
		p.discard(f)
	}
}

// count returns how many pipes are open and how many of them are lent.
func (p *pipes) count() (open, lent int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open, p.open - len(p.free)
}
