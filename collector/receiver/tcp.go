package receiver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"runtime/debug"
	"sync"
	"time"

	"github.com/rollway/rollway/collector/admission"
	"github.com/rollway/rollway/collector/clients"
	"github.com/rollway/rollway/internal/aside"
)

// ServeStream takes events in protocol p from the connections of ln until ctx
// ends or ln fails, closes ln, and returns when its last connection is closed.
// Once ctx has ended it reads no more, stores the whole events it has read, for
// at most Options.DrainTimeout if the store is full, and returns nil.
//
// A connection that begins as TLS or HTTP does is closed, and so is one whose events the
// store fails on, unless it is full: then the sender blocks. All events are those of from,
// of whom Tenant and Extras are asked; nil: nobody knows whose, see Policy.Extras.
func (r *Receiver) ServeStream(ctx context.Context, ln net.Listener, p StreamProtocol, from Sender) error {
	defer ln.Close()
	stop := context.AfterFunc(ctx, func() { ln.Close() })
	defer stop()
	var conns sync.WaitGroup
	defer conns.Wait()
	limit := r.opts.Admission.NewLimit(r.opts.MaxConns, 0)
	limit.Evicted = func(peer net.Addr, why string) {
		r.see(p.Name(), addrPort(peer).Addr(), from, clients.Seen{Refused: clients.Evicted, Text: why})
	}
	pause := time.Duration(0)
	for {
		c, err := ln.Accept()
		if ctx.Err() != nil {
			if err == nil {
				c.Close()
			}
			return nil
		}
		if errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("accept: %w", err)
		}
		if err != nil {
			// Out of descriptors, or the peer was gone already.
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			r.logSome(slog.LevelWarn, "accept connection", "error", err, "again in", pause)
			aside.Await(ctx.Done(), pause)
			continue
		}
		pause = 0
		admitted := limit.Admit(c)
		if admitted == nil {
			r.count.add(func(s *Stats) { s.ConnectionsRefused++ }) // before the peer can know
			c.Close()
			r.logSome(slog.LevelWarn, "connection refused, too many are open", "limit", r.opts.MaxConns, "peer", c.RemoteAddr().String())
			r.see(p.Name(), addrPort(c.RemoteAddr()).Addr(), from, clients.Seen{Refused: clients.Connections, Text: "too many connections are open"})
			continue
		}
		r.count.add(func(s *Stats) { s.Connections++; s.ConnectionsTotal++ })
		conns.Go(func() {
			r.serveConn(ctx, admitted, p, from) // which closes it before Stats says that there is room
			r.count.add(func(s *Stats) { s.Connections-- })
		})
	}
}

// serveConn serves one connection and closes it.
func (r *Receiver) serveConn(ctx context.Context, c *admission.Conn, p StreamProtocol, from Sender) {
	defer c.Close()
	stop := r.endReads(ctx, c)
	defer stop()
	s := &stream{
		batcher:  batcher{r: r, ctx: ctx, space: r.get(), peer: c.RemoteAddr().String(), receiver: p.Name()},
		conn:     c,
		addr:     addrPort(c.RemoteAddr()),
		protocol: p,
		maxFrame: r.maxFrame(p),
	}
	defer func() { s.close(recover(), debug.Stack) }()
	s.from = s.addr.Addr()
	s.space.charge(c.Principal())
	s.space.setSender(from)
	r.see(s.receiver, s.from, from, clients.Seen{Requests: 1})
	s.session = p.Open()
	c.Begin()
	s.serve()
}

// endReads has the read that is under way end with ctx.
func (r *Receiver) endReads(ctx context.Context, c streamConn) (stop func() bool) {
	return context.AfterFunc(ctx, func() { c.SetReadDeadline(time.Now()) }) // a deadline in the past
}

// maxFrame is the longest frame of p for which there is memory.
func (r *Receiver) maxFrame(p StreamProtocol) int {
	return int(min(int64(p.MaxFrame(r.opts.Limits.MaxEventBytes, int(r.opts.MaxBody))), r.streams.Limit()/3))
}

func addrPort(a net.Addr) netip.AddrPort {
	if a, ok := a.(*net.TCPAddr); ok {
		p := a.AddrPort()
		return netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
	}
	return netip.AddrPort{}
}
