package relay

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
	"testing"
	"time"
)

// patience is how long a test waits for what must happen.
const patience = time.Minute

// eventually waits until ok, and fails with what describe says if that takes
// too long.
func eventually(t testing.TB, ok func() bool, describe func() string) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(describe())
		}
	}
}

// noLeak fails a test after whose end, cleanups included, there are more
// goroutines or descriptors than before. It must come first in a test.
func noLeak(t testing.TB) {
	t.Helper()
	// The runtime opens what the first socket needs.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	goroutines, files := runtime.NumGoroutine(), descriptors()
	t.Cleanup(func() {
		eventually(t, func() bool { return runtime.NumGoroutine() <= goroutines && descriptors() <= files }, func() string {
			var stacks strings.Builder
			_ = pprof.Lookup("goroutine").WriteTo(&stacks, 1)
			return fmt.Sprintf("goroutines %d -> %d, descriptors %d -> %d\n%s", goroutines, runtime.NumGoroutine(), files, descriptors(), stacks.String())
		})
	})
}

// descriptors counts the open ones, where the system tells.
func descriptors() int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(list)
}

// A road is a way through a relay on which tests run.
type road struct {
	name     string
	options  Options
	listen   string // URL
	noPipes  bool
	upstream string // "unix", "tls" or "": tcp

	clientTLS, upstreamTLS *tls.Config // for the test's ends
}

// roads runs a test over each, those with TLS among them, all at once.
func roads(t *testing.T, test func(t *testing.T, w *way)) {
	t.Helper()
	plainRoads(t, test)
	tlsRoads(t, test)
}

func plainRoads(t *testing.T, test func(t *testing.T, w *way)) {
	t.Helper()
	noLeak(t)
	for _, rd := range []road{
		{name: "splice", listen: "tcp://127.0.0.1:0"},
		{name: "no pipe left", listen: "tcp://127.0.0.1:0", noPipes: true},
		{name: "buffers", listen: "tcp://127.0.0.1:0", options: Options{noSplice: true}},
		{name: "unix to tcp", listen: "unix"},
		{name: "tcp to unix", listen: "tcp://127.0.0.1:0", upstream: "unix"},
	} {
		t.Run(rd.name, func(t *testing.T) {
			t.Parallel()
			test(t, oneOfWays(t, rd))
		})
	}
}

// A way is a relay between a test's client and its upstream.
type way struct {
	t        *testing.T
	road     road
	relay    *Relay
	listener *Listener
	upstream net.Listener
	served   chan error
	cancel   context.CancelFunc
}

func newWay(t *testing.T, rd road) *way {
	t.Helper()
	noLeak(t)
	return oneOfWays(t, rd)
}

// oneOfWays is newWay beside others that are used at the same time: what is left
// behind cannot be told apart.
func oneOfWays(t *testing.T, rd road) *way {
	t.Helper()
	w := &way{t: t}
	network, addr, url := "tcp", "127.0.0.1:0", "tcp://"
	if rd.upstream == "unix" {
		network, addr, url = "unix", filepath.Join(t.TempDir(), "up"), "unix://"
	}
	if rd.upstream == "tls" {
		url = "tls://"
	}
	var err error
	if w.upstream, err = net.Listen(network, addr); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.upstream.Close() })
	if rd.options.To == nil {
		rd.options.To = []string{url + w.upstream.Addr().String()}
	}
	if rd.listen == "unix" {
		rd.listen = "unix://" + filepath.Join(t.TempDir(), "in")
	}
	w.start(rd)
	return w
}

// start makes the relay and serves.
func (w *way) start(rd road) {
	w.t.Helper()
	if rd.options.IdleTimeout == 0 {
		rd.options.IdleTimeout = -1 // endIdle is then a test's to call
	}
	for _, limit := range []*time.Duration{&rd.options.DialTimeout, &rd.options.HandshakeTimeout, &rd.options.DrainTimeout, &rd.options.grace} {
		defaultTo(limit, patience)
	}
	w.road = rd
	var err error
	if w.relay, err = New(rd.options); err != nil {
		w.t.Fatal(err)
	}
	if rd.noPipes {
		w.relay.pipes.max, w.relay.buffers.many = 0, 0
	}
	if w.listener, err = Listen(w.t.Context(), rd.listen); err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel, w.served = cancel, make(chan error, 1)
	go func() { w.served <- w.relay.Serve(ctx, w.listener) }()
	w.t.Cleanup(w.settled)
}

// settled shuts the relay down and checks that it holds nothing and has counted
// every connection.
func (w *way) settled() {
	w.t.Helper()
	limit, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	_ = w.relay.Shutdown(limit)
	select {
	case <-w.served:
	case <-time.After(patience):
		w.t.Fatal("Serve does not return")
	}
	w.cancel()
	s := w.relay.Stats()
	if s.Active != 0 || s.Pipes != 0 || s.PipesInUse != 0 || s.BuffersInUse != 0 {
		w.t.Errorf("after Shutdown: %d connections, %d pipes, %d of them in use, %d buffers in use", s.Active, s.Pipes, s.PipesInUse, s.BuffersInUse)
	}
}

// connect returns both ends of a connection through the relay.
func (w *way) connect() (client, upstream duplex) {
	w.t.Helper()
	client = w.dial()
	return client, w.accept()
}

// A duplex is a connection whose directions end one at a time.
type duplex interface {
	net.Conn
	CloseWrite() error
}

func (w *way) dial() duplex {
	w.t.Helper()
	c, err := net.Dial(w.listener.Addr().Network(), w.listener.Addr().String())
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	if !w.listener.TLS() {
		return c.(duplex)
	}
	t := tls.Client(c, clientConfig(w.road.clientTLS))
	if err := t.Handshake(); err != nil {
		w.t.Fatal(err)
	}
	return tlsDuplex{t}
}

// clientConfig is config, by default an empty one, for a server at 127.0.0.1.
func clientConfig(config *tls.Config) *tls.Config {
	if config == nil {
		config = new(tls.Config)
	}
	config = config.Clone()
	config.ServerName = cmp.Or(config.ServerName, "127.0.0.1")
	return config
}

// A tlsDuplex closes the way a program does that takes no more care than it has
// to: by the alert, then the socket.
type tlsDuplex struct{ *tls.Conn }

func (w *way) accept() duplex {
	w.t.Helper()
	if l, ok := w.upstream.(interface{ SetDeadline(time.Time) error }); ok {
		_ = l.SetDeadline(time.Now().Add(patience))
	}
	c, err := w.upstream.Accept()
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	if w.road.upstream != "tls" {
		return c.(duplex)
	}
	t := tls.Server(c, w.road.upstreamTLS)
	if err := t.Handshake(); err != nil {
		w.t.Fatal(err)
	}
	return tlsDuplex{t}
}

// closed waits until n connections have ended for a reason.
func (w *way) closed(reason Reason, n uint64) {
	w.t.Helper()
	eventually(w.t, func() bool { return w.relay.Stats().Closed[reason] == n }, func() string {
		return fmt.Sprintf("closed: %v, want %d for %q", w.relay.Stats().Closed, n, reason.String())
	})
}

// moved waits until exactly that many bytes have been counted: they are just
// behind the write that the other end sees.
func (w *way) moved(up, down uint64) {
	w.t.Helper()
	eventually(w.t, func() bool { s := w.relay.Stats(); return s.BytesUp == up && s.BytesDown == down }, func() string {
		s := w.relay.Stats()
		return fmt.Sprintf("%d bytes up and %d down counted, want %d and %d", s.BytesUp, s.BytesDown, up, down)
	})
}

// send writes text.
func send(t testing.TB, c net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
}

// receive reads exactly text.
func receive(t testing.TB, c net.Conn, text string) {
	t.Helper()
	got := make([]byte, len(text))
	if n, err := io.ReadFull(c, got); err != nil || string(got) != text {
		t.Fatalf("received %q, %v, want %q", got[:n], err, text)
	}
}

// receiveEnd reads text and the end of the stream.
func receiveEnd(t testing.TB, c net.Conn, text string) {
	t.Helper()
	got, err := io.ReadAll(c)
	if err != nil || string(got) != text {
		t.Fatalf("received %q, %v, want %q and the end", short(got), err, short([]byte(text)))
	}
}

func short(b []byte) string {
	if len(b) > 100 {
		return fmt.Sprintf("%s… (%d bytes)", b[:100], len(b))
	}
	return string(b)
}

// reset closes c by a reset.
func reset(t testing.TB, c net.Conn) {
	t.Helper()
	c = socketOf(c)
	if tcp, ok := c.(*net.TCPConn); ok {
		if err := tcp.SetLinger(0); err != nil {
			t.Fatal(err)
		}
	}
	c.Close()
}

// A stream is pseudo-random bytes that only their seed determines.
func stream(seed uint64, sizeBytes int64) io.Reader {
	var key [32]byte
	key[0], key[1] = byte(seed), byte(seed>>8)
	return io.LimitReader(rand.NewChaCha8(key), sizeBytes)
}

// pour writes a stream to c and ends it.
func pour(c duplex, seed uint64, sizeBytes int64) error {
	if _, err := io.CopyBuffer(struct{ io.Writer }{c}, stream(seed, sizeBytes), make([]byte, 256<<10)); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return c.CloseWrite()
}

// drink reads a stream to its end and compares.
func drink(c net.Conn, seed uint64, sizeBytes int64) error {
	want, got := sha256.New(), sha256.New()
	_, _ = io.Copy(want, stream(seed, sizeBytes))
	n, err := io.CopyBuffer(struct{ io.Writer }{got}, struct{ io.Reader }{c}, make([]byte, 256<<10))
	switch {
	case err != nil:
		return fmt.Errorf("read after %d of %d bytes: %w", n, sizeBytes, err)
	case n != sizeBytes:
		return fmt.Errorf("read %d bytes of %d", n, sizeBytes)
	case string(want.Sum(nil)) != string(got.Sum(nil)):
		return errors.New("the bytes read are not those written")
	}
	return nil
}

func socketOf(c net.Conn) net.Conn {
	if t, ok := c.(tlsDuplex); ok {
		return t.NetConn()
	}
	return c
}
