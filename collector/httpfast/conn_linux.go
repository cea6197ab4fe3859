package httpfast

import (
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// A conn is one connection. Whoever has made its state busy owns it and all
// fields but state and deadline.
type conn struct {
	fd       int
	remote   string
	state    atomic.Uint32
	deadline atomic.Int64 // as Server.after has it; what becomes of it then is for Server.expire

	head *head // of the last request; nil: none yet
	req  http.Request
	body body
	ctx  requestContext

	part     []byte // read and not answered; its capacity is that of the whole request
	pending  []byte // of an answer, not sent
	last     bool   // nothing comes after pending
	answered bool   // one request at least
	posted   bool   // the last one was a POST
	skipped  int    // line ends before the next one

	back   bool // it was net/http's, and nothing was answered here since
	inVain int  // how often in a row it came back for nothing
}

// maxInVain bounds what a connection that only comes back for nothing costs: one
// request of 2^maxInVain is answered on the way back.
const maxInVain = 10

// inVainNow is inVain if c is handed over now.
func (c *conn) inVainNow() int {
	if !c.back {
		return 0
	}
	return min(c.inVain+1, maxInVain)
}

// States of a conn.
const (
	idle  uint32 = iota // it waits for its client
	busy                // somebody owns it
	again               // that, and there is more to read
	gone                // closed, or handed over
)

// own makes the caller the owner of c, if it has none.
func (c *conn) own() bool { return c.state.CompareAndSwap(idle, busy) }

// ownOrTell makes the caller the owner of c, or tells the owner that there is
// more to read.
func (c *conn) ownOrTell() bool {
	for {
		switch {
		case c.own():
			return true
		case c.state.CompareAndSwap(busy, again), c.state.Load() >= again:
			return false
		}
	}
}

// release gives c up; false: there is more to read, and it stays owned.
func (c *conn) release() bool {
	if c.state.CompareAndSwap(busy, idle) {
		return true
	}
	c.state.Store(busy)
	return false
}

// aheadOf is how many bytes net/http waits for before it takes them for a second
// request, or a later one.
const aheadOf = 4

// between reports whether in, which was read of c and not answered, is nothing as
// yet.
func (c *conn) between(in []byte) bool { return c.answered && c.skipped+len(in) < aheadOf }

// asTCP makes the connection fd one of package net; fd is closed in any case.
func asTCP(fd int) (*net.TCPConn, error) {
	f := os.NewFile(uintptr(fd), "")
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

// A table finds connections by their descriptors.
type table struct {
	mu   sync.RWMutex
	byFD []*conn // guarded by mu
	n    int     // guarded by mu
}

func (t *table) put(c *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.byFD) <= c.fd {
		t.byFD = append(t.byFD, nil)
	}
	t.byFD[c.fd] = c
	t.n++
}

func (t *table) remove(c *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byFD[c.fd] = nil
	t.n--
}

func (t *table) at(fd int32) *conn {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if int(fd) >= len(t.byFD) {
		return nil
	}
	return t.byFD[fd]
}

func (t *table) all() []*conn { return t.appendAll(nil) }

func (t *table) appendAll(list []*conn) []*conn {
	t.mu.RLock()
	defer t.mu.RUnlock()
	list = slices.Grow(list, t.n)
	for _, c := range t.byFD {
		if c != nil {
			list = append(list, c)
		}
	}
	return list
}

// read reads once; 0 without an error is the end.
func read(fd int, p []byte) (int, error) {
	for {
		n, err := unix.Read(fd, p)
		if err != unix.EINTR {
			return max(n, 0), err
		}
	}
}

func write(fd int, p []byte) (int, error) {
	for {
		n, err := unix.Write(fd, p)
		if err != unix.EINTR {
			return max(n, 0), err
		}
	}
}
