package relay

import (
	"flag"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// long makes TestBothWaysAtOnce and others as large as they are meant to be.
var long = flag.Bool("long", false, "streams of 1 GiB, 9,900 connections: minutes instead of seconds")

func size(small, large int64) int64 {
	if *long {
		return large
	}
	return small
}

// A side that has finished sending still receives.
func TestHalfClose(t *testing.T) {
	roads(t, func(t *testing.T, w *way) {
		lines := strings.Repeat("a line\n", 50_000)
		for _, first := range []string{"client", "upstream"} {
			from, to := w.connect()
			if first == "upstream" {
				from, to = to, from
			}
			go func() {
				_, _ = io.WriteString(from, lines)
				_ = from.CloseWrite()
			}()
			receiveEnd(t, to, lines)
			// The acknowledgement comes when the other side has long finished.
			send(t, to, "50000 lines taken\n")
			receive(t, from, "50000 lines taken\n")
			go func() {
				_, _ = io.WriteString(to, lines)
				to.Close()
			}()
			receiveEnd(t, from, lines)
		}
		w.closed(ReasonDone, 2)
	})
}

// A connection on which nobody says anything.
func TestNothingAtAll(t *testing.T) {
	roads(t, func(t *testing.T, w *way) {
		client, upstream := w.connect()
		client.Close()
		receiveEnd(t, upstream, "")
		upstream.Close()
		w.closed(ReasonDone, 1)
	})
}

func TestOneByteWrites(t *testing.T) {
	roads(t, func(t *testing.T, w *way) {
		client, upstream := w.connect()
		const text = "one byte at a time, there and back"
		for i := range len(text) {
			send(t, client, text[i:i+1])
			receive(t, upstream, text[i:i+1])
			send(t, upstream, text[i:i+1])
			receive(t, client, text[i:i+1])
		}
		w.moved(uint64(len(text)), uint64(len(text)))
		eventually(t, func() bool { s := w.relay.Stats(); return s.PipesInUse == 0 && s.BuffersInUse == 0 }, func() string {
			return "a pipe or a buffer is held while nothing is in flight"
		})
	})
}

func TestBothWaysAtOnce(t *testing.T) {
	roads(t, func(t *testing.T, w *way) {
		n := size(8<<20, 1<<30)
		client, upstream := w.connect()
		_ = client.SetDeadline(time.Now().Add(10 * time.Minute))
		_ = upstream.SetDeadline(time.Now().Add(10 * time.Minute))
		results := make(chan error)
		go func() { results <- pour(client, 1, n) }()
		go func() { results <- pour(upstream, 2, n) }()
		go func() { results <- drink(upstream, 1, n) }()
		go func() { results <- drink(client, 2, n) }()
		for range 4 {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
		w.closed(ReasonDone, 1)
		w.moved(uint64(n), uint64(n))
	})
}

// canReset says whether both ends of a way know resets: sockets in the file
// system know none.
func (w *way) canReset() bool {
	return !strings.HasPrefix(w.road.listen, "unix") && w.road.upstream != "unix"
}

// A reset of either side becomes one of the other, after the bytes before it.
func TestReset(t *testing.T) {
	roads(t, func(t *testing.T, w *way) {
		for i, reason := range []Reason{ReasonClientReset, ReasonUpstreamReset} {
			client, upstream := w.connect()
			ends := [2]duplex{client, upstream}
			send(t, ends[i], "what came before the reset")
			receive(t, ends[1-i], "what came before the reset")
			reset(t, ends[i])
			if w.canReset() {
				expectReset(t, ends[1-i])
				w.closed(reason, 1)
			}
		}
	})
}

func expectReset(t *testing.T, c net.Conn) {
	t.Helper()
	if n, err := c.Read(make([]byte, 1)); !isErrno(err, syscall.ECONNRESET) {
		t.Fatalf("read %d, %v, want a reset", n, err)
	}
}

// A client that has finished sending is reset while it waits for an answer: the
// upstream must learn of it though it sends nothing.
func TestResetAfterHalfClose(t *testing.T) {
	if !canAwaitReset {
		t.Skip("this system does not tell")
	}
	plainRoads(t, func(t *testing.T, w *way) {
		if !w.canReset() {
			return
		}
		client, upstream := w.connect()
		send(t, client, "a question")
		if err := client.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		receiveEnd(t, upstream, "a question")
		reset(t, client)
		w.closed(ReasonClientReset, 1)
		side := newPeer(socketOf(upstream))
		if err := side.awaitReset(); !isReset(err) {
			t.Errorf("the upstream has %v, want a reset", err)
		}
	})
}

// An upstream refuses what the client is still sending: the client must get to
// read why, as it would without a relay.
func TestAnswerBeforeReset(t *testing.T) {
	roads(t, func(t *testing.T, w *way) {
		if !w.canReset() {
			return
		}
		client, upstream := w.connect()
		writing := make(chan struct{})
		go func() { // until it is refused
			defer close(writing)
			for {
				if _, err := client.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
		}()
		if _, err := io.ReadFull(upstream, make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
		send(t, upstream, "too much, go away\n")
		upstream.Close() // with bytes unread: the system resets
		receive(t, client, "too much, go away\n")
		<-writing
		w.closed(ReasonUpstreamReset, 1)
	})
}

// A destination that takes nothing stops its source, and what the relay holds
// of it is bounded.
func TestPeerThatNeverReads(t *testing.T) {
	roads(t, func(t *testing.T, w *way) {
		client, upstream := w.connect()
		wr := newWriter(client)
		wr.awaitStall(t)
		s := w.relay.Stats()
		if s.PipesInUse > 1 || s.BuffersInUse > 1 || w.road.noPipes && s.BuffersInUse != 0 {
			t.Errorf("%d pipes and %d buffers held for one direction", s.PipesInUse, s.BuffersInUse)
		}
		// The other direction goes on.
		send(t, upstream, "still here")
		receive(t, client, "still here")
		wr.done.Store(true)
		n, err := io.Copy(io.Discard, upstream)
		if wr.wait(); wr.err != nil || err != nil || n != wr.total.Load() {
			t.Errorf("%d bytes arrived, %v, of %d, %v", n, err, wr.total.Load(), wr.err)
		}
	})
}

// A writer writes until told that it is done, and then ends the stream.
type writer struct {
	total atomic.Int64
	done  atomic.Bool
	ended chan struct{}
	err   error // valid once ended
}

func newWriter(c duplex) *writer {
	w := &writer{ended: make(chan struct{})}
	go func() {
		defer close(w.ended)
		chunk := make([]byte, 64<<10)
		for w.err == nil && !w.done.Load() {
			var n int
			n, w.err = c.Write(chunk)
			w.total.Add(int64(n))
		}
		if w.err == nil {
			w.err = c.CloseWrite()
		}
	}()
	return w
}

func (w *writer) wait() { <-w.ended }

// awaitStall waits until nothing more is taken, and fails if that is never. It
// counts looks, not time: a machine that holds everything up is no stall.
func (w *writer) awaitStall(t *testing.T) {
	t.Helper()
	before := int64(0)
	for same := 0; same < 60; same++ {
		time.Sleep(5 * time.Millisecond)
		now := w.total.Load()
		if now != before || now == 0 {
			before, same = now, 0
		}
		if now > 256<<20 {
			w.done.Store(true)
			t.Fatal("256 MiB were taken for a peer that reads nothing")
		}
	}
}

func TestUpstreamDown(t *testing.T) {
	w := newWay(t, road{listen: "tcp://127.0.0.1:0"})
	w.upstream.Close()
	w.expectRefused(nil)
	w.closed(ReasonDial, 1)
	if n := w.relay.Stats().DialErrors; n != 1 {
		t.Errorf("%d dial errors counted", n)
	}
}

// Both sides of a connection that is idle see an ordinary end, TLS's included.
func TestIdle(t *testing.T) {
	roads(t, func(t *testing.T, w *way) {
		client, upstream := w.connect()
		send(t, client, "hello")
		receive(t, upstream, "hello")
		w.moved(5, 0)
		now := time.Now()
		w.relay.endIdle(now, time.Hour) // takes note of the bytes
		w.relay.endIdle(now.Add(time.Hour), time.Hour)
		receiveEnd(t, upstream, "")
		receiveEnd(t, client, "")
		w.closed(ReasonIdle, 1)
	})
}

// Where bytes are stuck there is no ordinary end.
func TestIdleAndStuck(t *testing.T) {
	plainRoads(t, func(t *testing.T, w *way) {
		client, _ := w.connect()
		wr := newWriter(client)
		wr.awaitStall(t)
		now := time.Now()
		w.relay.endIdle(now, time.Hour)
		w.relay.endIdle(now.Add(time.Hour), time.Hour)
		w.relay.endIdle(now.Add(time.Hour+w.relay.options.grace), time.Hour)
		w.closed(ReasonIdle, 1)
		if wr.wait(); !isReset(wr.err) {
			t.Errorf("the writer has %v, want a reset", wr.err)
		}
	})
}

func TestIdleTimeout(t *testing.T) {
	w := newWay(t, road{listen: "tcp://127.0.0.1:0", options: Options{IdleTimeout: 50 * time.Millisecond}})
	client, upstream := w.connect()
	receiveEnd(t, upstream, "")
	receiveEnd(t, client, "")
	w.closed(ReasonIdle, 1)
}

// One direction keeps the other alive.
func TestNotIdle(t *testing.T) {
	w := newWay(t, road{listen: "tcp://127.0.0.1:0"})
	client, upstream := w.connect()
	now := time.Now()
	for i := range uint64(3) {
		send(t, client, "x")
		receive(t, upstream, "x")
		w.moved(i+1, 0)
		now = now.Add(59 * time.Minute)
		w.relay.endIdle(now, time.Hour)
		w.relay.endIdle(now.Add(59*time.Minute), time.Hour)
	}
	w.relay.endIdle(now.Add(time.Hour), time.Hour)
	receiveEnd(t, upstream, "")
	w.closed(ReasonIdle, 1)
}
