package httpfast

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Supported tells whether this system is one where New returns a Server.
const Supported = true

// A Server answers the plain requests of the connections that one listener
// accepts. Its methods are safe for concurrent use. Whoever made it calls Serve
// once, or Close.
type Server struct {
	o     Options
	l     *net.TCPListener
	file  *os.File // the socket of l once more: a listener cannot be waited for by Accept4
	rest  *rest
	began time.Time
	dates dates

	epoll int
	wake  int // an eventfd; readable: workers end
	conns table

	waiting  atomic.Int32  // workers in epoll_wait
	blocked  atomic.Int32  // workers whose handler has said WillBlock
	taken    atomic.Uint64 // what epoll_wait has told of
	watching atomic.Bool   // watch looks after workers that are stuck
	alarm    chan struct{} // begins that; of capacity 1
	leaving  atomic.Bool   // no more is accepted, answers close their connections
	closing  atomic.Bool   // that, and connections between two requests are closed
	stopped  chan struct{} // closed when workers end
	kept     atomic.Int64  // bytes of requests that are not here as a whole

	toldProxy atomic.Int64 // when, as after has it; 0: never

	counts struct{ accepted, handed, back, requests atomic.Uint64 }

	mu      sync.Mutex
	ended   bool           // guarded by mu; stopped is closed
	limit   int            // of workers that do not wait for anything but connections
	active  int            // guarded by mu; workers that have not said WillBlock
	surplus atomic.Int32   // active - limit, written under mu
	spare   []*worker      // guarded by mu; without a goroutine
	running sync.WaitGroup // goroutines; added to under mu while ended is false
}

// New returns a Server for the connections of l.
func New(l *net.TCPListener, o Options) (*Server, error) {
	s := &Server{
		o: o, l: l, rest: newRest(l.Addr()), began: time.Now(),
		alarm: make(chan struct{}, 1), stopped: make(chan struct{}),
	}
	fd, err := duplicate(l)
	if err != nil {
		return nil, fmt.Errorf("duplicate the listener: %w", err)
	}
	s.file = os.NewFile(uintptr(fd), "listener")
	if s.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		s.file.Close()
		return nil, fmt.Errorf("make an epoll instance: %w", err)
	}
	if s.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err == nil {
		err = unix.EpollCtl(s.epoll, unix.EPOLL_CTL_ADD, s.wake, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(s.wake)})
		if err != nil {
			unix.Close(s.wake)
		}
	}
	if err != nil {
		s.file.Close()
		unix.Close(s.epoll)
		return nil, fmt.Errorf("make an eventfd: %w", err)
	}
	s.limit = takeProcs()
	s.mu.Lock()
	defer s.mu.Unlock()
	for range s.limit {
		s.startLocked()
	}
	s.running.Go(s.watch)
	s.running.Go(s.sweep)
	return s, nil
}

// duplicate returns the socket of a listener or connection under a descriptor of
// its own.
func duplicate(of syscall.Conn) (fd int, err error) {
	raw, err := of.SyscallConn()
	if err != nil {
		return 0, err
	}
	var failed error
	if err := raw.Control(func(of uintptr) { fd, failed = unix.FcntlInt(of, unix.F_DUPFD_CLOEXEC, 0) }); err != nil {
		return 0, err
	}
	return fd, failed
}

// Rest is where the connections come out that are handed over. It is to be
// served as long as the Server is.
func (s *Server) Rest() net.Listener { return s.rest }

// Stats returns a snapshot.
func (s *Server) Stats() Stats {
	return Stats{Connections: s.counts.accepted.Load(), HandedOver: s.counts.handed.Load(), TakenBack: s.counts.back.Load(), Requests: s.counts.requests.Load()}
}

// Serve accepts connections until the Server is shut down, and then returns
// http.ErrServerClosed.
func (s *Server) Serve() error {
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return http.ErrServerClosed
	}
	s.running.Add(1)
	s.mu.Unlock()
	defer s.running.Done()
	raw, err := s.file.SyscallConn()
	if err != nil {
		return err
	}
	for pause := time.Duration(0); ; {
		var fd int
		var from unix.Sockaddr
		var failed error
		err := raw.Read(func(l uintptr) bool {
			fd, from, failed = unix.Accept4(int(l), unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
			return failed != unix.EAGAIN
		})
		switch {
		case err != nil && s.leaving.Load():
			return http.ErrServerClosed
		case err != nil:
			return err
		case failed == nil && s.o.Limit != nil && !s.o.Limit.Take():
			pause = 0
			s.refuse(fd)
		case failed == nil:
			pause = 0
			s.counts.accepted.Add(1)
			s.admit(fd, from)
		case failed == unix.EINTR || failed == unix.ECONNABORTED:
		default: // too many files are open, most likely
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			s.o.logf("httpfast: accept: %v; retrying in %v", failed, pause)
			select {
			case <-time.After(pause):
			case <-s.stopped:
			}
		}
	}
}

// refuse is for a connection that Options.Limit has not let in.
func (s *Server) refuse(fd int) {
	if c, err := asTCP(fd); err == nil { // else there are no descriptors for words
		s.o.Limit.Refuse(c)
	}
}

// admit makes fd a connection that waits for its first request.
func (s *Server) admit(fd int, from unix.Sockaddr) {
	prepare(fd)
	c := &conn{fd: fd, remote: address(from)}
	c.ctx.Context = context.Background()
	c.deadline.Store(s.after(s.o.HeaderTimeout))
	c.state.Store(busy)
	s.conns.put(c)
	s.enlist(c)
}

// enlist has workers wait for c, which the caller owns, and gives it up. One of
// them is told of it at once, as c can be written to.
func (s *Server) enlist(c *conn) {
	event := c.event()
	if err := unix.EpollCtl(s.epoll, unix.EPOLL_CTL_ADD, c.fd, &event); err != nil {
		s.o.logf("httpfast: wait for a connection: %v", err)
		s.close(c)
		return
	}
	if !c.release() { // a worker was told before that
		s.tellAgain(c)
	}
}

// event is what workers wait for.
func (c *conn) event() unix.EpollEvent {
	return unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET&(1<<32-1), Fd: int32(c.fd)}
}

// tellAgain gives c up, which the caller owns, and has a worker told of it once
// more.
func (s *Server) tellAgain(c *conn) {
	fd, event := c.fd, c.event()
	c.state.Store(idle)
	unix.EpollCtl(s.epoll, unix.EPOLL_CTL_MOD, fd, &event) // fails if it is closed by now
}

// prepare sets what package net sets on the connections that it accepts. What
// cannot be set is left.
func prepare(fd int) {
	unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1)
	unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 15)
	unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 15)
	unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 9)
}

// address writes an address as package net does.
func address(from unix.Sockaddr) string {
	switch a := from.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port)).String()
	case *unix.SockaddrInet6:
		ip := netip.AddrFrom16(a.Addr).Unmap()
		if a.ZoneId != 0 {
			zone := fmt.Sprint(a.ZoneId)
			if i, err := net.InterfaceByIndex(int(a.ZoneId)); err == nil {
				zone = i.Name
			}
			ip = ip.WithZone(zone)
		}
		return netip.AddrPortFrom(ip, uint16(a.Port)).String()
	}
	return ""
}

// after is a deadline as connections have it.
func (s *Server) after(d time.Duration) int64 { return int64(time.Since(s.began) + d) }

// handOver gives c, of which read was read, to net/http. The caller owns it.
func (s *Server) handOver(c *conn, read []byte) {
	if s.closing.Load() { // net/http would not serve it any more
		s.close(c)
		return
	}
	if !c.answered && speaksProxy(read) {
		write(c.fd, noProxy) // it has room for that, as nothing was sent
		s.logProxy(c.remote)
		s.close(c)
		return
	}
	s.counts.handed.Add(1)
	s.conns.remove(c)
	c.state.Store(gone)
	unix.EpollCtl(s.epoll, unix.EPOLL_CTL_DEL, c.fd, nil)
	tcp, err := asTCP(c.fd)
	if err != nil {
		s.o.logf("httpfast: hand a connection over: %v", err)
		s.o.ended()
		return
	}
	s.rest.give(&handed{
		TCPConn: tcp, s: s, from: c.remote, remote: addressOf(c.remote), first: append([]byte(nil), read...),
		inVain: c.inVainNow(), stays: 1<<c.inVainNow() - 1,
	})
}

// logProxy tells once a second of connections that begin with a PROXY header.
func (s *Server) logProxy(remote string) {
	now, last := s.after(0), s.toldProxy.Load()
	if last != 0 && now-last < int64(time.Second) || !s.toldProxy.CompareAndSwap(last, now) {
		return
	}
	s.o.logf("httpfast: %s speaks the PROXY protocol, which is not spoken here: turn it off there (send-proxy, proxy_protocol)", remote)
}

// close closes c, which the caller owns.
func (s *Server) close(c *conn) {
	s.conns.remove(c)
	c.state.Store(gone)
	s.kept.Add(-int64(cap(c.part)))
	c.part = nil
	unix.Close(c.fd)
	s.o.ended()
}

// stop ends all workers once they are done.
func (s *Server) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	s.ended = true
	close(s.stopped)
	unix.Write(s.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0}) // fails if it is readable already
	go func() {
		s.running.Wait()
		for _, c := range s.conns.all() {
			if c.own() {
				s.close(c)
			}
		}
		unix.Close(s.wake)
		unix.Close(s.epoll)
		giveProcs()
	}()
}

// Leave accepts no more, and from now on answers tell clients that their connection
// is closed behind them. Connections that wait for a request stay as they are until
// Shutdown: who is just sending one is not cut off.
func (s *Server) Leave() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || s.leaving.Swap(true) {
		return nil
	}
	s.acceptRest()
	return s.closeListener()
}

// acceptRest accepts the connections that are complete: they would be reset, and a
// request with them, when the listener is closed.
func (s *Server) acceptRest() {
	raw, err := s.file.SyscallConn()
	if err != nil {
		return
	}
	raw.Control(func(l uintptr) { // fails if it is closed
		for range maxRest {
			fd, from, err := unix.Accept4(int(l), unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
			switch {
			case err == unix.EINTR || err == unix.ECONNABORTED:
			case err != nil:
				return
			case s.o.Limit != nil && !s.o.Limit.Take():
				s.refuse(fd)
			default:
				s.counts.accepted.Add(1)
				s.admit(fd, from)
			}
		}
	})
}

// maxRest bounds acceptRest: clients may come faster than they are accepted.
const maxRest = 1 << 16

// Shutdown accepts no more, answers the requests that have begun to arrive, and
// closes all connections. It returns the error of ctx if that ends before.
// Connections that were handed over are not its business.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.Leave()
	s.closing.Store(true)
	defer s.stop()
	emptied := make(chan struct{})
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return err
	}
	s.running.Go(func() { s.empty(ctx, emptied) })
	s.mu.Unlock()
	select {
	case <-emptied:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// empty attends to connections until none is left, and then closes emptied, or
// until ctx ends or the Server is stopped.
func (s *Server) empty(ctx context.Context, emptied chan<- struct{}) {
	w := s.newWorker()
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		left := s.conns.all()
		for _, c := range left {
			if ctx.Err() == nil && c.own() {
				w.attend(c, true)
			}
		}
		if len(left) == 0 {
			close(emptied)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-s.stopped:
			return
		case <-time.After(pause):
		}
	}
}

// Close closes the listener and, as soon as they are not being worked on, all
// connections. It does not wait.
func (s *Server) Close() error {
	s.leaving.Store(true)
	s.closing.Store(true)
	s.stop()
	return s.closeListener()
}

// closeListener may be called again.
func (s *Server) closeListener() error {
	var errs []error
	for _, c := range []io.Closer{s.l, s.file} {
		if err := c.Close(); !errors.Is(err, net.ErrClosed) && !errors.Is(err, os.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
