package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/internal/testkit"
)

// A hungHandler returns from nothing until it is released.
type hungHandler struct {
	enabled  bool // it hangs in Handle, not in Enabled
	released chan struct{}
}

func (h hungHandler) Enabled(context.Context, slog.Level) bool {
	if !h.enabled {
		<-h.released
	}
	return true
}

func (h hungHandler) Handle(context.Context, slog.Record) error {
	<-h.released
	return nil
}

func (h hungHandler) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h hungHandler) WithGroup(string) slog.Handler      { return h }

// With logs that hang connections are accepted, refused, relayed and ended, and
// so is the relay, with and without connections that have to be cut.
func TestHungLog(t *testing.T) {
	for _, enabled := range []bool{true, false} {
		t.Run(fmt.Sprintf("enabled %v", enabled), func(t *testing.T) {
			hung := hungHandler{enabled, make(chan struct{})}
			w := newWay(t, road{listen: "tcp://127.0.0.1:0", options: Options{
				MaxConns: 2, Log: slog.New(hung), Access: slog.New(hung), grace: 100 * time.Millisecond,
			}})
			release := sync.OnceFunc(func() { close(hung.released) })
			t.Cleanup(release)
			const n = 20
			for i := range n {
				client, upstream := w.connect()
				other, _ := w.connect()
				w.expectRefused(nil) // by the loop that accepts
				send(t, client, "a question")
				receive(t, upstream, "a question")
				client.Close()
				receiveEnd(t, upstream, "")
				upstream.Close()
				if w.closed(ReasonDone, uint64(i+1)); i < n-1 {
					reset(t, other)
				}
				eventually(t, func() bool { return open(w.relay) <= 1 && (i == n-1 || open(w.relay) == 0) }, func() string { return "places are not given back" })
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := shutdown(t, w.relay, ctx); !errors.Is(err, context.Canceled) { // one is open
				t.Errorf("Shutdown returns %v", err)
			}
			s := w.relay.Stats()
			if want := uint64(2*n + 1); s.Active != 0 || s.Unlogged < want {
				t.Errorf("%d connections active, %d records not logged, want %d: one for each connection, and in Log that some are refused", s.Active, s.Unlogged, want)
			}
			release()
			for _, q := range w.relay.options.logQueues {
				<-q.queue.Idle()
			}
			if now := w.relay.Stats().Unlogged; now != s.Unlogged {
				t.Errorf("%d records not logged at the end, %d later", s.Unlogged, now)
			}
		})
	}
}

// shutdown is r.Shutdown, and fails where that does not return.
func shutdown(t *testing.T, r *Relay, ctx context.Context) error {
	t.Helper()
	returned := make(chan error, 1)
	go func() { returned <- r.Shutdown(ctx) }()
	select {
	case err := <-returned:
		return err
	case <-time.After(patience):
		t.Fatal("Shutdown does not return")
		return nil
	}
}

// Once Shutdown has returned each connection has its record, those cut off too.
func TestOneRecordAConnection(t *testing.T) {
	var log testkit.Buffer
	w := newWay(t, road{listen: "tcp://127.0.0.1:0", options: Options{Access: slog.New(slog.NewJSONHandler(&log, nil))}})
	const n = 100
	for i := range n {
		client, upstream := w.connect()
		if i%2 == 0 {
			client.Close()
			upstream.Close()
		}
	}
	eventually(t, func() bool {
		w.relay.mu.Lock()
		defer w.relay.mu.Unlock()
		return w.relay.setups == 0 && len(w.relay.conns) == n/2
	}, func() string { return "connections are not set up, or do not end" })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_ = shutdown(t, w.relay, ctx)
	if got := strings.Count(log.String(), `"msg":"connection"`); got != n || w.relay.Stats().Unlogged != 0 {
		t.Errorf("%d records for %d connections, %d not logged", got, n, w.relay.Stats().Unlogged)
	}
}

// A hungConn never returns from a call.
type hungConn struct {
	net.Conn
	never chan struct{}
}

func (c hungConn) Read([]byte) (int, error)        { <-c.never; return 0, io.EOF }
func (c hungConn) Write([]byte) (int, error)       { <-c.never; return 0, io.EOF }
func (c hungConn) Close() error                    { <-c.never; return nil }
func (c hungConn) SetReadDeadline(time.Time) error { <-c.never; return nil }

// Nor does Shutdown wait for a connection of the caller's that hangs in Close.
func TestShutdownOfHungConn(t *testing.T) {
	noLeak(t)
	r, err := New(Options{To: []string{"tcp://127.0.0.1:1"}, grace: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	a, b := net.Pipe()
	defer b.Close()
	c := hungConn{a, make(chan struct{})}
	joined := make(chan error, 1)
	go func() { joined <- r.Join(c, b) }()
	eventually(t, func() bool { return open(r) == 1 }, func() string { return "nothing is joined" })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := shutdown(t, r, ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown returns %v", err)
	}
	close(c.never)
	<-joined
	a.Close()
}

// handler makes a function a slog.Handler.
type handler struct{ f func(slog.Record) error }

func (h handler) Enabled(_ context.Context, l slog.Level) bool    { return l >= slog.LevelInfo }
func (h handler) Handle(_ context.Context, rec slog.Record) error { return h.f(rec) }
func (h handler) WithAttrs([]slog.Attr) slog.Handler              { return h }
func (h handler) WithGroup(string) slog.Handler                   { return h }

// Records are handed on in order, whatever the handler does with the ones before;
// so many are kept, and the others counted.
func TestRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		var got []string
		q := newLogQueue(handler{func(rec slog.Record) error {
			got = append(got, rec.Message)
			switch rec.Message {
			case "panic":
				panic("careless")
			case "exit":
				runtime.Goexit()
			case "fail":
				return io.EOF
			case "hang":
				<-hang
			}
			return nil
		}})
		log := slog.New(q)
		log.Debug("not asked for")
		for _, msg := range []string{"panic", "exit", "fail", "good", "hang"} {
			log.Info(msg)
		}
		synctest.Wait()
		for range maxRecords + 7 {
			log.Info("many")
		}
		if _, n := q.count(); n != 3+7 {
			t.Errorf("%d not logged, want those of 3 failures and 7 without room", n)
		}
		time.AfterFunc(time.Second/2, func() { close(hang) })
		q.drain(time.Second)
		if len(got) != 5+maxRecords || strings.Join(got[:6], " ") != "panic exit fail good hang many" {
			t.Errorf("%d handed on, first %q", len(got), got[:6])
		}
		if _, n := q.count(); n != 3+7 {
			t.Errorf("%d not logged at the end", n)
		}
	})
}

// Of a slow handler all is waited for, of one that hangs nothing beyond stall.
func TestRecordsFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		q := newLogQueue(handler{func(rec slog.Record) error {
			if time.Sleep(900 * time.Millisecond); rec.Message == "hang" {
				<-hang
			}
			return nil
		}})
		log, start := slog.New(q), time.Now()
		for range 10 {
			log.Info("slow")
		}
		q.drain(time.Second)
		if _, n := q.count(); n != 0 || time.Since(start) != 9*time.Second {
			t.Errorf("%d not logged after %v", n, time.Since(start))
		}
		log.Info("hang")
		log.Info("after it")
		q.drain(time.Second)
		log.Info("too late")
		if _, n := q.count(); n != 3 {
			t.Errorf("%d not logged, want 3", n)
		}
		close(hang)
		<-q.queue.Idle()
		if handed, n := q.count(); handed != 11 || n != 3 {
			t.Errorf("%d handed on, %d not logged", handed, n)
		}
	})
}
