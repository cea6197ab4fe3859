package receiver

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/admission"
	"github.com/rollway/rollway/collector/normalize"
)

// perDatagram is a protocol for tests: a datagram is a line.
type perDatagram struct{}

func (perDatagram) Name() string          { return "datagrams of JSON" }
func (perDatagram) DecodePacket(c *Chunk) { c.Norm.Line(c.Batch, c.Data, c.Received) }

// servePackets serves a socket; stop ends that and waits.
func servePackets(t *testing.T, r *Receiver, p PacketProtocol, buffer int) (to *net.UDPAddr, stop func()) {
	t.Helper()
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	if buffer > 0 {
		conn.SetReadBuffer(buffer)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.ServePackets(ctx, conn, p, nil) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("ServePackets: %v", err)
		}
		if held := r.Stats().InFlight; held != 0 {
			t.Errorf("%d bytes of the budget are kept", held)
		}
	})
	t.Cleanup(stop)
	return conn.LocalAddr().(*net.UDPAddr), stop
}

func dialUDP(t *testing.T, to *net.UDPAddr) *net.UDPConn {
	t.Helper()
	conn, err := net.DialUDP("udp", nil, to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// TestPackets sends what all can be read, and checks that it is stored in its
// order, also while the store waits, fails and panics.
func TestPackets(t *testing.T) {
	m := &memory{}
	var calls atomic.Int64
	m.failWith(func(*normalize.Batch) error {
		if calls.Add(1)%3 == 0 {
			return ErrFull
		}
		return nil
	})
	r := newReceiver(t, m, Options{})
	to, stop := servePackets(t, r, perDatagram{}, 0)
	conn := dialUDP(t, to)
	const total = 2000
	for i := range total {
		fmt.Fprintf(conn, `{"msg":"%d"}`, i)
		if i%100 == 99 { // no more than any receive buffer takes
			waitFor(t, "datagrams", func() bool { return r.Stats().Datagrams == uint64(i+1) })
		}
	}
	fmt.Fprint(conn, "no JSON")
	conn.Write(nil)
	waitFor(t, "all", func() bool { return r.Stats().Received == total+1 && r.Stats().Datagrams == total+2 })
	for i, line := range m.lines {
		if !strings.HasSuffix(line, fmt.Sprintf(`"msg":"%d"}`, i)) {
			t.Fatalf("line %d is %s", i, line)
		}
	}
	for n, fail := range []func(*normalize.Batch) error{
		func(*normalize.Batch) error { return errOther },
		func(*normalize.Batch) error { panic("the store is on fire") },
	} {
		m.failWith(fail)
		fmt.Fprint(conn, "{}")
		waitFor(t, "the failure", func() bool { return r.Stats().Failed == uint64(n+1) })
	}
	m.failWith(nil)
	fmt.Fprint(conn, "{}")
	waitFor(t, "a datagram after the failures", func() bool { return m.count() == total+1 })
	stop()
	s := r.Stats()
	if s.Received != total+4 || s.Stored != total+1 || s.Rejected[normalize.ReasonSyntax] != 1 || s.Panics != 1 {
		t.Errorf("%+v", s)
	}
}

// TestPacketsWaitForRoom reads more than may wait while one part is being stored:
// all of it is stored, in its order.
func TestPacketsWaitForRoom(t *testing.T) {
	m := &memory{}
	release := make(chan struct{})
	m.failWith(func(*normalize.Batch) error { <-release; return nil })
	r := newReceiver(t, m, Options{})
	to, stop := servePackets(t, r, perDatagram{}, 0)
	conn := dialUDP(t, to)
	send := func(i int) {
		fmt.Fprintf(conn, `{"msg":"%d","fill":"%s"}`, i, strings.Repeat("x", 60_000))
		waitFor(t, "the datagram", func() bool { return r.Stats().Datagrams == uint64(i+1) })
	}
	send(0)
	waitFor(t, "the first part to be with the store", func() bool { return r.Stats().Storing > 0 })
	const total = 1 + packetBuffer/60_000 + 1 // the last waits for room
	for i := 1; i < total; i++ {
		send(i)
	}
	close(release)
	waitFor(t, "all", func() bool { return r.Stats().Stored == total })
	stop()
	for i, line := range m.lines {
		if !strings.Contains(line, fmt.Sprintf(`"msg":"%d"`, i)) {
			t.Fatalf("line %d is %.60s", i, line)
		}
	}
}

// TestPacketsStop checks that what was sent before the stop is stored.
func TestPacketsStop(t *testing.T) {
	m := &memory{}
	r := newReceiver(t, m, Options{})
	to, stop := servePackets(t, r, perDatagram{}, 0)
	conn := dialUDP(t, to)
	for range 100 {
		fmt.Fprint(conn, "{}")
	}
	stop()
	if n := m.count(); n != 100 {
		t.Errorf("%d of 100 datagrams are stored", n)
	}
}

// TestPacketsDropped fills all there is while the store is full: what was sent
// is stored or counted as dropped.
func TestPacketsDropped(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells what it drops")
	}
	m := &memory{}
	var full atomic.Bool
	full.Store(true)
	m.failWith(func(*normalize.Batch) error {
		if full.Load() {
			return ErrFull
		}
		return nil
	})
	r := newReceiver(t, m, Options{})
	to, stop := servePackets(t, r, perDatagram{}, 16<<10)
	conn := dialUDP(t, to)
	line := `{"msg":"` + strings.Repeat("x", 10_000) + `"}`
	const burst = 1000
	for range burst {
		fmt.Fprint(conn, line)
	}
	full.Store(false)
	// The system tells of its drops with a datagram that came after them.
	sent := uint64(burst)
	waitFor(t, "the count", func() bool {
		if s := r.Stats(); s.Stored+s.DatagramsDropped == sent {
			return true
		}
		fmt.Fprint(conn, line)
		sent++
		return false
	})
	stop()
	s := r.Stats()
	if s.DatagramsDropped == 0 || s.Stored+s.DatagramsDropped != sent || s.Datagrams != s.Stored {
		t.Errorf("%d sent, %+v", sent, s)
	}
}

// panics is a protocol that fails on some datagrams.
type panics struct{ perDatagram }

func (p panics) DecodePacket(c *Chunk) {
	if string(c.Data) == "fire" {
		panic("the datagram is on fire")
	}
	p.perDatagram.DecodePacket(c)
}

// After a datagram that fails the next ones are stored. It counts as rejected, and what
// waited to be stored as failed.
func TestPacketsAfterOneThatFails(t *testing.T) {
	m := &memory{}
	r := newReceiver(t, m, Options{})
	s := &packets{batcher: batcher{r: r, ctx: t.Context(), space: r.get(), spare: 2 * packetBuffer}, protocol: panics{}}
	var p part
	for _, text := range []string{"fire", `{"msg":"1"}`, "fire", `{"msg":"2"}`} {
		p.data = append(p.data, text...)
		p.list = append(p.list, datagram{end: len(p.data)})
	}
	s.storePart(&p)
	if stats := r.Stats(); m.count() != 1 || stats.Failed != 1 || stats.Panics != 2 || stats.Rejected[normalize.ReasonSyntax] != 2 || stats.Received != 4 {
		t.Errorf("%d are stored: %+v", m.count(), stats)
	}
}

// A panic does not keep the turn on a processor.
func TestPacketsGiveBackTheTurn(t *testing.T) {
	r := newReceiver(t, &memory{}, Options{})
	to, stop := servePackets(t, r, panics{}, 0)
	defer stop()
	fmt.Fprint(dialUDP(t, to), "fire")
	waitFor(t, "the panic", func() bool { return r.Stats().Panics == 1 })
	begun := make(chan struct{})
	go func() {
		defer close(begun)
		for range runtime.GOMAXPROCS(0) {
			var turn admission.Turn
			turn.Use(r.opts.Admission.CPU, r.nobody)
			turn.Begin()
			defer turn.End()
		}
	}()
	select {
	case <-begun:
	case <-time.After(time.Minute):
		t.Error("a turn is missing")
	}
}
