package relay

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/testkit"
)

// TestMain is also the client and the upstream of tests that need processes of
// their own, so that theirs are not the relay's descriptors and memory.
func TestMain(m *testing.M) {
	switch role := os.Getenv("RELAY_TEST_ROLE"); role {
	case "client", "stuck":
		manyClients(os.Getenv("RELAY_TEST_ADDR"), os.Getenv("RELAY_TEST_COUNT"), os.Getenv("RELAY_TEST_TLS") != "", role == "client")
	case "upstream":
		manyUpstream(echo)
	case "flood":
		manyUpstream(flood)
	default:
		testkit.RunParallel(m, 16)
	}
}

// exchange is how much goes each way on a connection before it is idle.
const exchange = 200

// manyClients opens connections, says so, and keeps them until its standard input ends. On
// each it has an exchange first, unless it never reads.
func manyClients(addr, count string, overTLS, reads bool) {
	n, err := strconv.Atoi(count)
	if err != nil {
		panic(err)
	}
	held := make([]net.Conn, n) // or the garbage collector closes them
	for i := range held {
		var c net.Conn
		if overTLS {
			c, err = tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true})
		} else {
			c, err = net.Dial("tcp", addr)
		}
		held[i] = c
		if err == nil && reads {
			_, err = c.Write(make([]byte, exchange))
		}
		if err == nil && reads {
			_, err = io.ReadFull(c, make([]byte, exchange))
		}
		if err != nil {
			fmt.Printf("connection %d: %v\n", i, err)
			return
		}
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	runtime.KeepAlive(held)
}

// flood writes to each connection as much as that takes.
func flood(l net.Listener) {
	chunk := make([]byte, 64<<10)
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			for {
				if _, err := c.Write(chunk); err != nil {
					return
				}
			}
		}()
	}
}

// manyUpstream says where it listens, and serves until its standard input ends.
func manyUpstream(serve func(net.Listener)) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(l.Addr())
	go serve(l)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// A process is one of those, with its first line.
type process struct {
	said string
	end  func()
}

func startProcess(t *testing.T, role string, env ...string) *process {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), append(env, "RELAY_TEST_ROLE="+role, "GORACE=atexit_sleep_ms=10")...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{end: sync.OnceFunc(func() {
		in.Close()
		_ = cmd.Wait()
	})}
	t.Cleanup(p.end)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%s: %v", role, err)
	}
	p.said = strings.TrimSpace(line)
	return p
}

// Idle connections hold two descriptors each, no pipe and no buffer, and of
// memory what is promised; when they end nothing is left.
func TestManyIdle(t *testing.T) {
	for _, c := range []struct {
		listen string
		limit  int // bytes a connection
	}{{"tcp", 10 << 10}, {"tls", 35 << 10}} {
		t.Run(c.listen, func(t *testing.T) {
			noLeak(t)
			n := int(size(200, 9900))
			upstream := startProcess(t, "upstream")
			w := &way{t: t}
			w.start(road{listen: c.listen + "://127.0.0.1:0", options: Options{
				To: []string{"tcp://" + upstream.said}, ServerTLS: newAuthority(t).config("127.0.0.1"),
			}})
			files, memory := descriptors(), resident(t)
			client := startProcess(t, "client", "RELAY_TEST_ADDR="+w.listener.Addr().String(), "RELAY_TEST_COUNT="+strconv.Itoa(n), "RELAY_TEST_TLS="+strings.TrimPrefix(c.listen, "tcp"))
			if client.said != "ready" {
				t.Fatal(client.said)
			}
			w.moved(uint64(n*exchange), uint64(n*exchange))
			w.relay.pipes.trim()
			eventually(t, func() bool { w.relay.pipes.trim(); s := w.relay.Stats(); return s.Pipes == 0 && s.BuffersInUse == 0 }, func() string {
				return fmt.Sprintf("idle connections hold pipes or buffers: %+v", w.relay.Stats())
			})
			// Pipes to the client process and what the runtime opens are not ours.
			if got := descriptors() - files; descriptors() > 0 && (got < 2*n || got > 2*n+10) {
				t.Errorf("%d connections take %d descriptors", n, got)
			}
			if each := (resident(t) - memory) / n; *long && each > c.limit {
				t.Errorf("a connection takes %d bytes, at most %d are promised", each, c.limit)
			} else {
				t.Logf("%d connections over %s: %d bytes each", n, c.listen, each)
			}
			client.end()
			eventually(t, func() bool { return w.relay.Stats().Active == 0 }, func() string { return "connections are left" })
		})
	}
}

// resident is the memory that the process occupies, in bytes; 0: the system
// does not tell.
func resident(t *testing.T) int {
	t.Helper()
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	var kib int
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

// Connections that come and go as fast as they can: each gets its bytes, and
// each is counted.
func TestStorm(t *testing.T) {
	plainRoads(t, func(t *testing.T, w *way) {
		go echo(w.upstream)
		const workers = 16
		each := int(size(20, 500))
		var storm sync.WaitGroup
		for worker := range workers {
			storm.Go(func() {
				for i := range each {
					text := fmt.Sprintf("connection %d of worker %d", i, worker)
					if err := echoed(w.listener.Addr(), text); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		storm.Wait()
		w.closed(ReasonDone, uint64(workers*each))
		if s := w.relay.Stats(); s.Accepted != uint64(workers*each) || s.DialErrors != 0 {
			t.Errorf("%d accepted of %d, %d dial errors", s.Accepted, workers*each, s.DialErrors)
		}
	})
}

// echoed sends text and its end, and wants it back, with an end.
func echoed(addr net.Addr, text string) error {
	c, err := net.Dial(addr.Network(), addr.String())
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(c, text); err != nil {
		return err
	}
	if err := c.(duplex).CloseWrite(); err != nil {
		return err
	}
	got, err := io.ReadAll(c)
	if err == nil && string(got) != text {
		err = fmt.Errorf("%q came back for %q", got, text)
	}
	return err
}

// The relay is told to stop while clients are sending: it takes no more of
// them, and those that there are lose nothing.
func TestDrainUnderLoad(t *testing.T) {
	roads(t, func(t *testing.T, w *way) {
		const clients = 8
		var up, down sync.WaitGroup
		draining := make(chan struct{})
		for range clients {
			client, upstream := w.connect()
			down.Go(func() { // answers how many bytes came
				n, err := io.Copy(io.Discard, upstream)
				if err != nil {
					t.Error(err)
				}
				_, _ = fmt.Fprint(upstream, n)
				upstream.Close()
			})
			up.Go(func() {
				sent := 0
				write := func() {
					n, err := client.Write(make([]byte, 10_000))
					if sent += n; err != nil {
						t.Error(err)
					}
				}
				for sent < 1<<20 && !t.Failed() {
					write()
				}
				<-draining
				write()
				if err := client.CloseWrite(); err != nil {
					t.Error(err)
				}
				answer, err := io.ReadAll(client)
				if err != nil || string(answer) != strconv.Itoa(sent) {
					t.Errorf("the upstream has %q of %d, %v", answer, sent, err)
				}
			})
		}
		w.cancel()
		eventually(t, func() bool { return w.relay.isClosing() }, func() string { return "not closing" })
		if c, err := net.Dial(w.listener.Addr().Network(), w.listener.Addr().String()); err == nil {
			c.Close()
			t.Error("a draining relay takes connections")
		}
		close(draining)
		up.Wait()
		down.Wait()
		if err := <-w.served; err != nil {
			t.Errorf("Serve = %v", err)
		}
		w.served <- nil
		w.closed(ReasonDone, clients)
	})
}

// What has not ended by itself is ended in order, when Serve is told to stop and by Close,
// which may be called again.
func TestDrainTimeout(t *testing.T) {
	for _, byClose := range []bool{false, true} {
		w := newWay(t, road{listen: "tcp://127.0.0.1:0", options: Options{DrainTimeout: 50 * time.Millisecond}})
		quiet, quietUp := w.connect()
		send(t, quiet, "the last line")
		receive(t, quietUp, "the last line")
		if byClose {
			if err := w.relay.Close(); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Close with a connection open = %v", err)
			}
		} else {
			w.cancel()
		}
		receiveEnd(t, quiet, "")
		receiveEnd(t, quietUp, "")
		w.closed(ReasonDrained, 1)
		err := <-w.served
		if errors.Is(err, net.ErrClosed) != byClose {
			t.Errorf("Serve = %v", err)
		}
		w.served <- err
		if err := w.relay.Close(); err != nil {
			t.Errorf("Close again = %v", err)
		}
	}
}

// Connections on which bytes cannot be passed on any more are cut off.
func TestDrainTimeoutAndStuck(t *testing.T) {
	w := newWay(t, road{listen: "tcp://127.0.0.1:0", options: Options{DrainTimeout: 50 * time.Millisecond, grace: 50 * time.Millisecond}})
	stuck, stuckUp := w.connect()
	wr := newWriter(stuck)
	wr.awaitStall(t)
	w.cancel()
	w.closed(ReasonDrainCut, 1)
	if wr.wait(); !isReset(wr.err) {
		t.Errorf("the writer has %v, want a reset", wr.err)
	}
	if _, err := io.Copy(io.Discard, stuckUp); !isReset(err) {
		t.Errorf("the reader has %v, want a reset", err)
	}
}

// What TLS has read when a connection is told to stop is handed on whole,
// though no buffer holds it yet.
func TestStopWithinARecord(t *testing.T) {
	noLeak(t)
	a := newAuthority(t)
	r, err := New(Options{To: []string{"tcp://127.0.0.1:1"}, bufferSize: 4 << 10, ServerTLS: a.config("127.0.0.1")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Shutdown(context.Background()) }()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	sent := bytes.Repeat([]byte("0123456789abcdef"), maxRecord/16)
	go func() {
		c, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{RootCAs: a.pool, DynamicRecordSizingDisabled: true})
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = c.Write(sent)
		_, _ = io.Copy(io.Discard, c)
		c.Close()
	}()
	socket, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	client := newPeer(socket)
	if err := client.handshake(t.Context(), func(c net.Conn) *tls.Conn { return tls.Server(c, r.serverTLS.config.Load()) }); err != nil {
		t.Fatal(err)
	}
	ours, upstream := net.Pipe() // takes no more than is read
	r.beginSetup(0)
	r.counts.accepted.Add(1)
	c := r.join(client, newPeer(ours), time.Now())
	c.run()
	first := make([]byte, 1)
	if _, err := io.ReadFull(upstream, first); err != nil {
		t.Fatal(err)
	}
	c.stop(ReasonDrained)
	rest, err := io.ReadAll(upstream)
	if err != nil || !bytes.Equal(append(first, rest...), sent) {
		t.Errorf("%d of %d bytes arrived, %v", 1+len(rest), len(sent), err)
	}
	upstream.Close()
}

// TLS records that come a byte at a time, waiting in between.
func TestDribbledTLS(t *testing.T) {
	a := newAuthority(t)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		w := newWay(t, road{listen: "tls://127.0.0.1:0", options: Options{ServerTLS: a.config("127.0.0.1")}})
		socket, err := net.Dial("tcp", w.listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer socket.Close()
		client := tls.Client(dribble{socket}, &tls.Config{RootCAs: a.pool, ServerName: "127.0.0.1", MaxVersion: version})
		const text = "a record, and another one"
		for i := range 5 {
			send(t, client, text)
			if i == 0 {
				w.upstream = &once{Listener: w.upstream, c: w.accept()}
			}
			receive(t, w.upstream.(*once).c, text)
		}
	}
}

// once keeps a connection beside its listener.
type once struct {
	net.Listener
	c net.Conn
}

// dribble writes a byte at a time.
type dribble struct{ net.Conn }

func (d dribble) Write(p []byte) (int, error) {
	for i := range p {
		if _, err := d.Conn.Write(p[i : i+1]); err != nil {
			return i, err
		}
	}
	return len(p), nil
}

// Whatever has no descriptor is copied as well, and knows no half-close.
func TestJoin(t *testing.T) {
	noLeak(t)
	r, err := New(Options{To: []string{"tcp://127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	client, left := net.Pipe()
	right, upstream := net.Pipe()
	joined := make(chan error)
	go func() { joined <- r.Join(left, right) }()
	go func() { _, _ = io.WriteString(client, "there") }()
	receive(t, upstream, "there")
	go func() { _, _ = io.WriteString(upstream, "back") }()
	receive(t, client, "back")
	client.Close()
	receiveEnd(t, upstream, "")
	upstream.Close()
	if err := <-joined; err != nil {
		t.Errorf("Join = %v", err)
	}
	if err := r.Shutdown(context.Background()); err != nil {
		t.Errorf("Shutdown = %v", err)
	}
	a, b := net.Pipe()
	if err := r.Join(a, b); err != errClosed {
		t.Errorf("Join after Shutdown = %v", err)
	}
	if err := r.Serve(t.Context(), &once{Listener: closedListener(t)}); err != errClosed {
		t.Errorf("Serve after Shutdown = %v", err)
	}
}

func closedListener(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	return l
}

// Serve goes on when a connection cannot be taken without descriptors.
func TestAcceptErrors(t *testing.T) {
	w := newWay(t, road{listen: "tcp://127.0.0.1:0"})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	failing := &failingListener{Listener: l}
	failing.left.Store(3)
	served := make(chan error, 1)
	go func() { served <- w.relay.Serve(t.Context(), failing) }()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	send(t, c, "at last")
	receive(t, w.accept(), "at last")
	if n := w.relay.Stats().AcceptErrors; n != 3 {
		t.Errorf("%d errors counted of 3", n)
	}
	c.Close()
	w.settled()
	if err := <-served; err != errClosed {
		t.Errorf("Serve = %v", err)
	}
	w.served <- nil
}

type failingListener struct {
	net.Listener
	left atomic.Int32
}

func (l *failingListener) Accept() (net.Conn, error) {
	if l.left.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept", syscall.EMFILE)}
	}
	return l.Listener.Accept()
}
