package receive

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// ServeTCP takes NDJSON from the connections of ln until ctx ends or ln fails,
// closes ln, and returns when its last connection is closed. Once ctx has
// ended it reads no more, stores the whole lines it has read, for at most
// Options.DrainTimeout if the store is full, and returns nil.
//
// A line may hold what a line of an HTTP body may. One longer than
// Limits.MaxEventBytes is skipped and counted as too_large, and the connection
// goes on. The last line needs no line end if it is whole; otherwise it counts
// as torn. A connection that begins as TLS or HTTP does is closed. While the
// store is full the connection is not read, so its sender blocks, and no line
// that was read is dropped. Any other error of the store closes the connection;
// the lines read with it count as failed.
func (r *Receiver) ServeTCP(ctx context.Context, ln net.Listener) error {
	defer ln.Close()
	stop := context.AfterFunc(ctx, func() { ln.Close() })
	defer stop()
	var conns sync.WaitGroup
	defer conns.Wait()
	var open atomic.Int64
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
			if r.logged.may() {
				r.opts.Log.Warn("accept connection", "error", err, "again in", pause)
			}
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
			continue
		}
		pause = 0
		if open.Add(1) > int64(r.opts.MaxConns) {
			open.Add(-1)
			r.count.add(func(s *Stats) { s.ConnectionsRefused++ }) // before the peer can know
			c.Close()
			if r.logged.may() {
				r.opts.Log.Warn("connection refused, too many are open", "limit", r.opts.MaxConns, "peer", c.RemoteAddr().String())
			}
			continue
		}
		r.count.add(func(s *Stats) { s.Connections++; s.ConnectionsTotal++ })
		conns.Go(func() {
			r.serveConn(ctx, c)
			r.count.add(func(s *Stats) { s.Connections-- })
			open.Add(-1)
		})
	}
}

// serveConn serves one connection and closes it.
func (r *Receiver) serveConn(ctx context.Context, c net.Conn) {
	defer c.Close()
	// A deadline in the past ends the read that is under way.
	stop := context.AfterFunc(ctx, func() { c.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	s := &stream{r: r, ctx: ctx, conn: c, work: r.get()}
	defer func() {
		p := recover()
		r.streams.give(s.work.held)
		if p == nil {
			r.put(s.work)
			return
		}
		r.release(s.work)
		r.opts.Log.Error("connection failed", "peer", c.RemoteAddr().String(), "panic", p, "stack", string(debug.Stack()))
		r.count.add(func(s *Stats) { s.Panics++ })
		if s.storing {
			r.count.events(&s.work.batch, 0, s.work.batch.Records)
		}
	}()
	s.serve()
}
