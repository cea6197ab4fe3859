package relay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/internal/testkit"
)

// A server answers each connection with its name, and keeps it open until its
// client is done.
type server struct {
	name string
	net.Listener
	wg    sync.WaitGroup
	mu    sync.Mutex
	conns []net.Conn
}

func newServer(t *testing.T, name, addr string) *server {
	t.Helper()
	s := &server{name: name}
	var err error
	// A port that is to be had again may just be somebody's outgoing one.
	eventually(t, func() bool { s.Listener, err = net.Listen("tcp", addr); return err == nil }, func() string { return err.Error() })
	s.wg.Go(s.run)
	t.Cleanup(s.stop)
	return s
}

func (s *server) run() {
	for {
		c, err := s.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns = append(s.conns, c)
		s.mu.Unlock()
		s.wg.Go(func() {
			_, _ = io.WriteString(c, s.name)
			_, _ = io.Copy(io.Discard, c)
			c.Close()
		})
	}
}

func (s *server) stop() {
	s.Listener.Close()
	s.mu.Lock()
	for _, c := range s.conns {
		c.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
}

func (s *server) url() string { return "tcp://" + s.Addr().String() }

// ask connects and returns the connection and the name of its server.
func (w *way) ask() (net.Conn, string) {
	w.t.Helper()
	c := w.dial()
	b := make([]byte, 1)
	if _, err := io.ReadFull(c, b); err != nil {
		w.t.Fatal(err)
	}
	return c, string(b)
}

// several starts servers a, b, c and a relay to them.
func several(t *testing.T, o Options) (*way, []*server) {
	t.Helper()
	noLeak(t)
	var list []*server
	for _, name := range []string{"a", "b", "c"} {
		s := newServer(t, name, "127.0.0.1:0")
		list = append(list, s)
		o.To = append(o.To, s.url())
	}
	w := &way{t: t}
	w.start(road{listen: "tcp://127.0.0.1:0", options: o})
	return w, list
}

func TestRoundRobin(t *testing.T) {
	w, _ := several(t, Options{})
	var got strings.Builder
	for range 9 {
		_, name := w.ask()
		got.WriteString(name)
	}
	if got.String() != "abcabcabc" {
		t.Errorf("connections went to %s", got.String())
	}
}

func TestLeastConnections(t *testing.T) {
	w, _ := several(t, Options{Balance: LeastConnections})
	open := map[string][]net.Conn{}
	for range 9 {
		c, name := w.ask()
		open[name] = append(open[name], c)
	}
	for _, name := range []string{"a", "b", "c"} {
		if len(open[name]) != 3 {
			t.Fatalf("%d connections to %s of 9", len(open[name]), name)
		}
	}
	for _, c := range open["b"] {
		c.Close()
	}
	w.closed(ReasonDone, 3)
	for range 3 {
		if _, name := w.ask(); name != "b" {
			t.Errorf("a connection went to %s, which has three, b has fewer", name)
		}
	}
}

// A connection that one upstream refuses goes to the next, and the one that is
// down gets no more until it is back.
func TestUpstreamDownAndUp(t *testing.T) {
	var log testkit.Buffer
	w, list := several(t, Options{Log: slog.New(slog.NewTextHandler(&log, nil)), HealthInterval: 20 * time.Millisecond})
	addr := list[1].Addr().String()
	list[1].stop()
	eventually(t, func() bool { return w.relay.Stats().Upstreams[1].Down }, func() string { return "b is not noticed to be down" })
	for range 6 {
		if _, name := w.ask(); name == "b" {
			t.Error("a connection went to b, which is down")
		}
	}
	newServer(t, "B", addr)
	eventually(t, func() bool { return !w.relay.Stats().Upstreams[1].Down }, func() string { return "B is not noticed to be up" })
	var got strings.Builder
	for range 6 {
		_, name := w.ask()
		got.WriteString(name)
	}
	if strings.Count(got.String(), "B") != 2 {
		t.Errorf("connections went to %s", got.String())
	}
	for _, want := range []string{"cannot be reached and is avoided", "is back"} {
		eventually(t, func() bool { return strings.Contains(log.String(), want) }, log.String)
	}
	if s := w.relay.Stats(); s.Closed[ReasonDial] != 0 {
		t.Errorf("%d connections failed", s.Closed[ReasonDial])
	}
}

// Without checks of health it is the connections that find out, and none of
// them fails.
func TestPassiveHealth(t *testing.T) {
	w, list := several(t, Options{})
	list[0].stop()
	list[2].stop()
	for range 6 {
		if _, name := w.ask(); name != "b" {
			t.Errorf("a connection went to %s", name)
		}
	}
	if n := w.relay.Stats().DialErrors; n < 2 {
		t.Errorf("%d dials failed, want one at least for each that is down", n)
	}
}

// An endpoint is avoided for longer and longer, and not for ever.
func TestAvoidance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Relay{options: Options{Log: slog.New(slog.DiscardHandler)}}
		e := &endpoint{upstream: &upstream{}}
		for _, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, maxAvoidance, maxAvoidance} {
			r.markDown(e, io.EOF)
			time.Sleep(want - time.Nanosecond)
			if !e.isDown(time.Now()) {
				t.Fatalf("not avoided for %v", want)
			}
			time.Sleep(time.Nanosecond)
			if e.isDown(time.Now()) {
				t.Fatalf("avoided for more than %v", want)
			}
		}
		r.markUp(e)
		r.markDown(e, io.EOF)
		time.Sleep(firstAvoidance)
		if e.isDown(time.Now()) {
			t.Error("a success does not begin anew")
		}
	})
}

// Names are looked up again: what is new gets connections, what is gone gets no
// more of them, and while the resolver fails all stays.
func TestResolve(t *testing.T) {
	up, err := newUpstreams(Options{To: []string{"tcp://logs.example:514"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, fail := []string{"192.0.2.1", "192.0.2.2"}, false
	r := &Relay{options: Options{DialTimeout: time.Second, Log: slog.New(slog.DiscardHandler)}, upstreams: up}
	r.lookup = func(_ context.Context, host string) (list []netip.Addr, err error) {
		if fail || host != "logs.example" {
			return nil, errors.New("no such host")
		}
		for _, a := range answer {
			list = append(list, netip.MustParseAddr(a))
		}
		return list, nil
	}
	names := func() string {
		list, err := r.candidates(t.Context(), &up.to)
		if err != nil {
			return err.Error()
		}
		seen := map[string]bool{}
		for _, e := range list {
			seen[e.addr] = true
		}
		return fmt.Sprint(seen)
	}
	if got := names(); got != "map[192.0.2.1:514:true 192.0.2.2:514:true]" {
		t.Fatal(got)
	}
	up.all[0].list()[1].active.Store(7)
	answer = []string{"192.0.2.2", "2001:db8::3"}
	if err := r.resolve(t.Context(), up.all[0]); err != nil {
		t.Fatal(err)
	}
	if got := names(); got != "map[192.0.2.2:514:true [2001:db8::3]:514:true]" {
		t.Error(got)
	}
	if up.all[0].list()[0].active.Load() != 7 {
		t.Error("an address that stays lost its count")
	}
	fail = true
	if r.resolve(t.Context(), up.all[0]) == nil {
		t.Error("no error of the resolver")
	}
	if got := names(); got != "map[192.0.2.2:514:true [2001:db8::3]:514:true]" {
		t.Error(got)
	}
}

// What repeats is said once a second, with how often it was not.
func TestLimitedLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log testkit.Buffer
		n := limitedLog{to: slog.New(slog.NewTextHandler(&log, nil)), notes: map[string]*limitedNote{}}
		for range 25 {
			n.log(slog.LevelWarn, "again")
			time.Sleep(100 * time.Millisecond)
		}
		if got := log.String(); strings.Count(got, "again") != 3 || strings.Count(got, "held_back=9") != 2 {
			t.Errorf("the log has\n%s", got)
		}
	})
}

func TestMaxConns(t *testing.T) {
	var log testkit.Buffer
	w := newWay(t, road{listen: "tcp://127.0.0.1:0", options: Options{MaxConns: 2, Log: slog.New(slog.NewTextHandler(&log, nil))}})
	first, _ := w.connect()
	w.connect()
	for range 3 {
		w.expectRefused(nil)
	}
	w.closed(ReasonLimit, 3)
	eventually(t, func() bool { return strings.Contains(log.String(), "as many as MaxConns allows") }, log.String)
	reset(t, first)
	eventually(t, func() bool { return open(w.relay) == 1 }, func() string { return "the place is not given back" })
	w.connect()
}

func TestMaxConnsPerSource(t *testing.T) {
	var log testkit.Buffer
	w := newWay(t, road{listen: "tcp://127.0.0.1:0", options: Options{
		MaxConnsPerSource: 2, TrustProxy: loopback, Log: slog.New(slog.NewTextHandler(&log, nil)),
	}})
	header := func(ip string) []byte {
		return appendProxyV2(nil, false, addrs("["+ip+"]:1", "[2001:db8::ff]:2"), nil)
	}
	from := func(ip string) duplex {
		c := w.dial()
		send(t, c, string(header(ip)))
		return c
	}
	one := from("2001:db8::1")
	w.accept()
	from("2001:db8::2") // of the same /64
	w.accept()
	w.expectRefused(header("2001:db8::3"))
	from("2001:db8:0:1::1")
	w.accept()
	w.closed(ReasonSourceLimit, 1)
	eventually(t, func() bool {
		return strings.Contains(log.String(), "MaxConnsPerSource") && strings.Contains(log.String(), "2001:db8::3")
	}, log.String)
	reset(t, one)
	w.closed(ReasonClientReset, 1)
	from("2001:db8::3")
	w.accept()
	w.relay.sources.mu.Lock()
	defer w.relay.sources.mu.Unlock()
	if n := len(w.relay.sources.count); n != 2 {
		t.Errorf("%d sources are counted, of 2", n)
	}
}

// expectRefused connects, writes and gets a reset, at whatever point.
func (w *way) expectRefused(header []byte) {
	w.t.Helper()
	c, err := net.Dial("tcp", w.listener.Addr().String())
	if err == nil {
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(patience))
		// Whichever call comes first is told of the reset, and only that one.
		if _, err = c.Write(header); err == nil {
			_, err = c.Read(make([]byte, 1))
		}
	}
	if !isReset(err) {
		w.t.Errorf("the client has %v, want a reset", err)
	}
}

func TestOptionsRefused(t *testing.T) {
	for want, o := range map[string]Options{
		"To is empty":                    {},
		"begin with tcp://":              {To: []string{"localhost:514"}},
		"no port":                        {To: []string{"tcp://localhost"}},
		"no absolute path":               {To: []string{"unix://socket"}},
		"more than host and port":        {To: []string{"tcp://localhost:514/path"}},
		"a buffer is 5":                  {To: []string{"tcp://a:1"}, bufferSize: 5},
		"SendProxy is 3":                 {To: []string{"tcp://a:1"}, SendProxy: 3},
		`route "*": it must be a name`:   {To: []string{"tcp://a:1"}, Routes: map[string][]string{"*": {"tcp://a:1"}}},
		"route \"a\": it must be a name": {To: []string{"tcp://a:1"}, Routes: map[string][]string{"a": nil}},
	} {
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New(%+v) = %v, want an error with %q", o, err, want)
		}
	}
}

func TestMetrics(t *testing.T) {
	w := newWay(t, road{listen: "tcp://127.0.0.1:0"})
	client, upstream := w.connect()
	send(t, client, "12345")
	receive(t, upstream, "12345")
	send(t, upstream, "123")
	receive(t, client, "123")
	w.moved(5, 3)
	client.Close()
	upstream.Close()
	w.closed(ReasonDone, 1)
	var b bytes.Buffer
	if err := w.relay.Stats().WriteMetrics(&b); err != nil {
		t.Fatal(err)
	}
	if err := w.relay.Stats().WriteMetrics(&b, "relay", "edge"); err != nil {
		t.Fatal(err)
	}
	if err := w.relay.Stats().WriteMetrics(&b, "mode", "x"); err == nil {
		t.Error("a label mode was taken")
	}
	for _, want := range []string{
		"rollway_relay_bytes_total{relay=\"edge\",direction=\"up\"} 5\n",
		"rollway_relay_first_byte_seconds_bucket{le=\"0.00025\"} ",
		"rollway_relay_first_byte_seconds_bucket{le=\"+Inf\"} 1\n",
		"rollway_relay_connections_accepted_total 1\n",
		"# TYPE rollway_relay_connections_closed_total counter\n",
		"rollway_relay_connections_closed_total{reason=\"done\"} 1\n",
		"rollway_relay_bytes_total{direction=\"up\"} 5\n",
		"rollway_relay_bytes_total{direction=\"down\"} 3\n",
		"rollway_relay_first_byte_seconds_count 1\n",
		fmt.Sprintf("rollway_relay_upstream_dials_total{upstream=\"tcp://%[1]s\",address=\"%[1]s\"} 1\n", w.upstream.Addr()),
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("metrics lack %q:\n%s", want, b.String())
		}
	}
}
