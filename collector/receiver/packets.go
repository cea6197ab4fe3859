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

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/pool"
	"github.com/rollway/rollway/internal/aside"
)

const (
	maxDatagram  = 64 << 10
	packetBuffer = 1 << 20                // bytes of datagrams that may wait, twice: one part is filled while the other is stored
	packetRead   = 200 * time.Millisecond // without a datagram after the context ended: the system holds no more
)

// ServePackets takes events in protocol p from the datagrams of conn until ctx
// ends or conn fails, and closes conn. Once ctx has ended it reads what the
// system holds already, stores all that was read, for at most
// Options.DrainTimeout if the store is full, and returns nil. from is as for ServeStream.
//
// While the store is full, up to 2 MiB wait here and then as much as conn's receive buffer
// takes. The system drops what exceeds that; Stats.DatagramsDropped counts it on Linux.
func (r *Receiver) ServePackets(ctx context.Context, conn *net.UDPConn, p PacketProtocol, from Sender) error {
	defer conn.Close()
	countDrops(conn)
	held := int64(4 * packetBuffer)
	opener, keeps := p.(PacketOpener)
	if keeps {
		var more int64
		p, more = opener.OpenPackets()
		held += more
	}
	stop := context.AfterFunc(ctx, func() { conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	s := &packets{
		batcher:  batcher{r: r, ctx: ctx, space: r.get(), peer: conn.LocalAddr().String(), receiver: p.Name()},
		protocol: p,
		keeps:    keeps,
		arrived:  make(chan struct{}, 1),
		room:     make(chan struct{}, 1),
	}
	defer func() { s.close(recover(), debug.Stack) }()
	s.space.charge(r.opts.Admission.Named(s.peer, 1))
	s.space.setSender(from)
	s.spare = 2 * packetBuffer
	if !s.await(held) && ctx.Err() == nil {
		return fmt.Errorf("serve %s: limits.in_flight has no room for the %d bytes that datagrams take", conn.LocalAddr(), held)
	}
	var storing sync.WaitGroup
	storing.Go(s.storeAll)
	err := s.read(conn)
	s.end()
	storing.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// packets is one socket. One goroutine reads it into a part, another stores
// what the part before has got: so a batch is what has arrived in the meantime.
type packets struct {
	batcher  // of the goroutine that stores
	protocol PacketProtocol
	keeps    bool // something between datagrams

	mu      sync.Mutex
	filling part // guarded by mu
	ended   bool // guarded by mu

	arrived chan struct{} // something is in filling, or nothing will be
	room    chan struct{} // filling was emptied
}

// part is datagrams in a row.
type part struct {
	data []byte
	list []datagram
}

type datagram struct {
	end  int // in data
	peer netip.AddrPort
	at   time.Time
	last bool // there is no datagram, and none follows
}

// read reads datagrams until conn fails.
func (s *packets) read(conn *net.UDPConn) error {
	buf, control := make([]byte, maxDatagram), make([]byte, 64)
	var dropped uint32
	var last time.Time // to read, once ctx has ended
	for {
		n, controls, _, peer, err := conn.ReadMsgUDPAddrPort(buf, control)
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return fmt.Errorf("read datagram: %w", err)
			}
			if s.ctx.Err() != nil {
				if !last.IsZero() {
					return err
				}
				last = time.Now().Add(s.r.opts.DrainTimeout)
				conn.SetReadDeadline(time.Now().Add(packetRead))
				continue
			}
			s.r.logSome(slog.LevelWarn, "read datagram", "error", err)
			time.Sleep(firstWait)
			continue
		}
		more := uint64(0)
		if total, ok := dropsIn(control[:controls]); ok {
			more, dropped = uint64(total-dropped), total // of 32 bits, which run over
		}
		s.r.count.add(func(s *Stats) {
			s.Datagrams++
			s.DatagramsDropped += more
			s.WireBytes += uint64(n)
			s.UnpackedBytes += uint64(n)
		})
		if more > 0 {
			s.r.logSome(slog.LevelWarn, "the system has dropped datagrams, as they came faster than they can be stored", "count", more, "address", s.peer)
		}
		s.put(buf[:n], peer)
		if !last.IsZero() && time.Now().Before(last) {
			conn.SetReadDeadline(time.Now().Add(packetRead))
		}
	}
}

// put adds a datagram, waiting for room.
func (s *packets) put(data []byte, peer netip.AddrPort) {
	d := datagram{peer: netip.AddrPortFrom(peer.Addr().Unmap(), peer.Port()), at: time.Now()}
	for {
		s.mu.Lock()
		f := &s.filling
		if len(f.data) == 0 || len(f.data)+len(data) <= packetBuffer {
			f.data = append(f.data, data...)
			d.end = len(f.data)
			f.list = append(f.list, d)
			s.mu.Unlock()
			aside.Signal(s.arrived)
			return
		}
		s.mu.Unlock()
		<-s.room
	}
}

func (s *packets) end() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	aside.Signal(s.arrived)
}

// storeAll stores what is read until all is stored and nothing follows.
func (s *packets) storeAll() {
	var p part
	for ended := false; !ended; {
		<-s.arrived
		s.mu.Lock()
		p, s.filling = s.filling, part{p.data[:0], p.list[:0]}
		ended = s.ended
		s.mu.Unlock()
		aside.Signal(s.room)
		s.storePart(&p)
	}
	if s.keeps {
		s.storePart(&part{list: []datagram{{at: time.Now(), last: true}}})
	}
}

// storePart stores one part. After a panic it goes on with the datagram that follows.
func (s *packets) storePart(p *part) {
	for next := 0; next < len(p.list); {
		s.storeFrom(p, &next)
	}
}

// storeFrom stores the datagrams of a part from next on. After a panic the events that wait
// to be stored count as failed, and the datagram that was being read as rejected.
func (s *packets) storeFrom(p *part, next *int) {
	defer func() {
		cause := recover()
		if cause == nil {
			return
		}
		s.r.opts.Log.Error("datagrams failed", "panic", cause, "stack", string(debug.Stack()))
		s.r.count.add(func(s *Stats) { s.Panics++ })
		s.space.turn.End()
		s.fail()
		if s.space.chunk.batcher != nil { // it was being read
			s.space.chunk = Chunk{}
			s.r.count.reject(s.space, normalize.ReasonSyntax)
		}
		s.space.batch.Reset()
	}()
	for *next < len(p.list) {
		d, start := p.list[*next], 0
		if *next > 0 {
			start = p.list[*next-1].end
		}
		*next++
		c := s.chunk(p.data[start:d.end:d.end], d.peer, d.at)
		c.End, s.others = d.last, 0
		before := s.space.seen(nil)
		s.space.turn.Begin()
		s.protocol.DecodePacket(c)
		s.space.chunk = Chunk{}
		seen := s.space.seen(nil)
		seen.Requests, seen.Bytes = 1, int64(d.end-start)
		seen.Events, seen.Rejected = seen.Events-before.Events-s.others, seen.Rejected-before.Rejected-s.others
		s.r.see(s.receiver, d.peer.Addr(), s.space.sender, seen)
		if s.space.batch.Held() > s.spare { // short ones come to many times their size as lines
			s.store() // what is wrong is counted and in the log
		}
		s.space.turn.Yield()
	}
	pool.Overwrite(p.data)
	s.store() // what is wrong is counted and in the log
}
