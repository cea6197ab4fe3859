package admission

import (
	"io"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"
)

// The defaults leave a quarter of few descriptors and spare of many.
func TestDefaultConns(t *testing.T) {
	for limit, want := range map[int]int{0: 1, 1: 1, 100: 75, 1024: 768, 6000: 4500, 20_000: 18_500, 1 << 20: 1<<20 - spare, -1: unlimited} {
		if n := DefaultConns(limit); n != want {
			t.Errorf("%d descriptors make %d connections, want %d", limit, n, want)
		}
	}
	if n := New().NewLimit(0, 0).Stats().Most; n < 1 {
		t.Errorf("%d here", n)
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// dialFrom connects from an address of this machine.
func dialFrom(t *testing.T, from string, l net.Listener) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c, err := d.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Skipf("this machine has no address %s: %v", from, err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(30 * time.Second))
	return c
}

func accepting(l net.Listener) chan *Conn {
	accepted := make(chan *Conn, 100)
	go func() {
		defer close(accepted)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- c.(*Conn)
		}
	}()
	return accepted
}

// Connections over the limit are told so and closed; one that is closed, however often,
// makes room for one.
func TestListener(t *testing.T) {
	limit := New().NewLimit(2, 0)
	l := limit.Listener(listen(t), []byte("full"))
	accepted := accepting(l)
	dialFrom(t, "127.0.0.1", l)
	first := <-accepted
	dialFrom(t, "127.0.0.1", l)
	<-accepted
	if b, err := io.ReadAll(dialFrom(t, "127.0.0.1", l)); err != nil || string(b) != "full" {
		t.Errorf("the third is told %q, %v", b, err)
	}
	first.Close()
	first.Close()
	dialFrom(t, "127.0.0.1", l)
	third := <-accepted
	if b, err := io.ReadAll(dialFrom(t, "127.0.0.1", l)); err != nil || string(b) != "full" {
		t.Errorf("one more is told %q, %v", b, err)
	}
	third.Close()
	if s := limit.Stats(); s != (LimitStats{Most: 2, Open: 1, Accepted: 3, Refused: 2}) {
		t.Errorf("%+v", s)
	}
}

// A newcomer that has fewer connections than another takes the place of one of the
// latter that is idle, or else of one whose request has not arrived; never of one that
// is being worked on.
func TestNewcomer(t *testing.T) {
	limit := New().NewLimit(4, 0)
	l := limit.Listener(listen(t), []byte("full"))
	accepted := accepting(l)
	var many []*Conn
	var theirs []net.Conn
	for range 4 {
		theirs = append(theirs, dialFrom(t, "127.0.0.2", l))
		c := <-accepted
		c.Begin()
		many = append(many, c)
	}
	refused := func(from string) {
		t.Helper()
		if b, err := io.ReadAll(dialFrom(t, from, l)); err != nil || string(b) != "full" {
			t.Errorf("%s is told %q, %v", from, b, err)
		}
	}
	refused("127.0.0.1")
	many[2].Await()
	many[1].End()
	for _, loser := range []int{1, 2} {
		if dialFrom(t, "127.0.0.1", l); (<-accepted).Principal().String() != "127.0.0.1" {
			t.Fatal("the newcomer is not let in")
		}
		if b, err := io.ReadAll(theirs[loser]); err != nil || len(b) > 0 {
			t.Errorf("connection %d: %q, %v", loser, b, err)
		}
	}
	many[0].End()
	refused("127.0.0.1") // has as many
	if s := limit.Stats(); s != (LimitStats{Most: 4, Open: 4, Accepted: 6, Refused: 2, Evicted: [evictions]uint64{Idle: 1, Arriving: 1}}) {
		t.Errorf("%+v", s)
	}
}

// A newcomer takes the place of the connection whose peer has not read for the longest time, and
// not of one whose peer reads, or on which something else is worked on.
func TestUnread(t *testing.T) {
	limit := New().NewLimit(6, 0)
	var told []string
	limit.Evicted = func(peer net.Addr, why string) { told = append(told, peer.String()+": "+why) }
	l := limit.Listener(listen(t), []byte("full"))
	accepted := accepting(l)
	var many []*Conn
	var theirs []net.Conn
	for range 6 {
		theirs = append(theirs, dialFrom(t, "127.0.0.2", l))
		c := <-accepted
		c.Begin()
		many = append(many, c)
	}
	many[1].Offer() // as of HTTP/2, one of two requests
	many[1].Begin()
	many[2].Offer()
	wrote := make(chan error)
	go func() { // more than the system keeps
		_, err := many[3].Write(make([]byte, 64<<20))
		wrote <- err
	}()
	go func() {
		for err := error(nil); err == nil; _, err = many[4].Write(make([]byte, 1<<10)) {
		}
	}()
	go io.Copy(io.Discard, theirs[4])
	for letIn := 0; letIn < 2; {
		refused, newcomer := make(chan bool), dialFrom(t, "127.0.0.1", l)
		go func() {
			io.ReadAll(newcomer)
			close(refused)
		}()
		select {
		case <-refused:
		case <-accepted:
			letIn++
		}
	}
	if <-wrote == nil {
		t.Error("the connection that was evicted could be written to")
	}
	want := []string{many[2].RemoteAddr().String() + ": " + lost[Unread], many[3].RemoteAddr().String() + ": " + lost[Unread]}
	if !slices.Equal(told, want) {
		t.Errorf("evicted %q, want %q", told, want)
	}
	many[0].Close()
	many[4].Close()
}

// A connection counts for the sender of its last request, and no more once it has lost its
// place.
func TestCharge(t *testing.T) {
	c := New()
	limit := c.NewLimit(2, 0)
	l := limit.Listener(listen(t), []byte("full"))
	accepted := accepting(l)
	shop := c.Named("shop", 1)
	dialFrom(t, "127.0.0.1", l)
	dialFrom(t, "127.0.0.2", l)
	a, b := <-accepted, <-accepted
	a.Charge(shop)
	b.Charge(shop)
	dialFrom(t, "127.0.0.3", l)
	newcomer := <-accepted
	for _, conn := range []*Conn{a, b} {
		conn.Charge(shop)
		conn.Charge(conn.Principal())
		conn.Close()
	}
	p := newcomer.Client(newcomer.Principal().id.addr)
	if p != newcomer.Principal() {
		t.Errorf("%v", p)
	}
	c.Release(p)
	p = newcomer.Client(Network(addrOf(a.RemoteAddr()).Next()))
	if p == newcomer.Principal() || p != newcomer.payer.Load() {
		t.Errorf("%v", p)
	}
	c.Release(p)
	newcomer.Close()
	if s := limit.Stats(); s.Open != 0 || len(limit.of) != 0 || len(c.principals) != 1 {
		t.Errorf("%+v, of %v, %d principals", s, limit.of, len(c.principals))
	}
}

// With a reserve, those over the limit are let in to be told, the oldest first to go.
func TestReserve(t *testing.T) {
	limit := New().NewLimit(1, 2)
	l := limit.Listener(listen(t), []byte("full"))
	accepted := accepting(l)
	var conns []net.Conn
	for i := range 4 {
		conns = append(conns, dialFrom(t, "127.0.0.1", l))
		if c := <-accepted; c.Over() != (i > 0) {
			t.Errorf("connection %d: %v", i, c.Over())
		} else if i == 3 {
			c.Answer(true)
			c.Close()
		}
	}
	if b, err := io.ReadAll(conns[1]); err != nil || len(b) > 0 {
		t.Errorf("%q, %v", b, err)
	}
	if s := limit.Stats(); s != (LimitStats{Most: 1, Open: 1, Accepted: 1, Refused: 1}) {
		t.Errorf("%+v", s)
	}
}

// What a refused connection is told is not lost because of what its client has
// sent meanwhile; without room for that it is closed at once.
func TestRefuse(t *testing.T) {
	inner := listen(t)
	limit := New().NewLimit(1, 0)
	pair := func() (client, server net.Conn) {
		client = dialFrom(t, "127.0.0.1", inner)
		server, err := inner.Accept()
		if err != nil {
			t.Fatal(err)
		}
		return client, server
	}
	client, server := pair()
	limit.refuse(server, []byte("full"))
	io.WriteString(client, "a request")
	if b, err := io.ReadAll(client); err != nil || string(b) != "full" {
		t.Errorf("told %q, %v", b, err)
	}
	client.Close()
	for range maxLeaving {
		limit.leaving <- struct{}{}
	}
	client, server = pair()
	limit.refuse(server, []byte("full"))
	if b, err := io.ReadAll(client); err != nil || string(b) != "full" {
		t.Errorf("told %q, %v", b, err)
	}
	if _, err := server.Write([]byte("x")); err == nil {
		t.Error("it is open still")
	}
}

// CloseAfterBacklog lets in the connections that were complete and not accepted yet.
func TestCloseAfterBacklog(t *testing.T) {
	inner := listen(t)
	l := New().NewLimit(10, 0).Listener(inner, nil)
	const waiting = 3
	for range waiting {
		dialFrom(t, "127.0.0.1", l)
	}
	l.CloseAfterBacklog()
	l.CloseAfterBacklog()
	select {
	case <-l.Closed():
		t.Error("it is closed before its backlog is accepted")
	default:
	}
	for range waiting {
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	if _, err := l.Accept(); err == nil {
		t.Error("a connection is accepted that nobody has opened")
	}
	if c, err := net.Dial("tcp", inner.Addr().String()); err == nil {
		c.Close()
		t.Error("the listener is open")
	}
	<-l.Closed()
}

// AwaitNone returns when the last connection is closed.
func TestAwaitNone(t *testing.T) {
	l := New().NewLimit(2, 0)
	l.AwaitNone(time.Hour)
	admit := func() *Conn { _, b := net.Pipe(); return l.Admit(b) }
	one, two := admit(), admit()
	done := make(chan struct{})
	go func() { l.AwaitNone(time.Hour); close(done) }()
	one.Close()
	two.Close()
	<-done
	admit()
	l.AwaitNone(time.Nanosecond)
}

// A connection that has lost its place gives back the clients that its proxy has named.
func TestClientAfterEviction(t *testing.T) {
	c := New()
	limit := c.NewLimit(2, 0)
	l := limit.Listener(listen(t), nil)
	accepted := accepting(l)
	dialFrom(t, "127.0.0.1", l)
	dialFrom(t, "127.0.0.1", l)
	many := []*Conn{<-accepted, <-accepted}
	ask := func(addr string) {
		for _, conn := range many {
			c.Release(conn.Client(netip.MustParseAddr(addr)))
		}
	}
	ask("192.0.2.1")
	dialFrom(t, "127.0.0.2", l)
	newcomer := <-accepted
	ask("192.0.2.2")
	many[0].Close()
	many[1].Close()
	ask("192.0.2.3")
	newcomer.Close()
	if s := limit.Stats(); s.Evicted != [evictions]uint64{Idle: 1} || s.Open != 0 || len(c.principals) != 0 {
		t.Errorf("%+v, %d principals", s, len(c.principals))
	}
}

// Over HTTP/2 a proxy has requests of several clients on one connection: what one of them
// holds counts, also if another asks in between.
func TestClientsOfOneConnection(t *testing.T) {
	c := New()
	limit := c.NewLimit(1, 0)
	l := limit.Listener(listen(t), nil)
	accepted := accepting(l)
	dialFrom(t, "127.0.0.1", l)
	conn := <-accepted
	one, other := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	first, between, again := conn.Client(one), conn.Client(other), conn.Client(one)
	if first != again {
		t.Error("a client is two principals")
	}
	for _, p := range []*Principal{first, between, again} {
		c.Release(p)
	}
	if conn.Close(); len(c.principals) != 0 {
		t.Errorf("%d principals are left", len(c.principals))
	}
}
