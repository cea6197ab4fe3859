package admission

import (
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// One principal alone gets two thirds, and who has nothing gets something as long as
// there is anything.
func TestResource(t *testing.T) {
	c := New()
	r := c.Resource(Memory)
	r.SetLimit(900)
	take := func(p *Principal) (n int64) {
		for r.Acquire(p, 1) {
			n++
		}
		return n
	}
	a, b, d := c.Named("a", 1), c.Named("b", 1), c.Named("c", 4)
	for _, step := range []struct {
		p    *Principal
		want int64
	}{{a, 600}, {b, 200}, {d, 88}, {a, 0}} {
		if n := take(step.p); n != step.want {
			t.Errorf("%v gets %d, want %d", step.p, n, step.want)
		}
	}
	if r.Release(a, 600); r.Used() != 288 || r.Of(a) != 0 {
		t.Errorf("%d used", r.Used())
	}
	if n := take(d); n != 534 {
		t.Errorf("of weight 4: %d more", n) // 622 ≤ 2 × 4 × 78
	}
	if r.Acquire(a, 79) || !r.Acquire(a, 78) || r.Acquire(c.Named("e", 1), 1) {
		t.Error("not what is there is given to who has nothing")
	}
}

// Clients of one address, or of one /64, are one principal for as long as it is used.
func TestPrincipals(t *testing.T) {
	c := New()
	p := c.OfAddr(netip.MustParseAddr("2001:db8::1"))
	if q := c.OfAddr(netip.MustParseAddr("2001:db8::ffff:1%eth0")); q != p || p.String() != "2001:db8::" {
		t.Errorf("%v, %v", p, q)
	}
	if q := c.OfAddr(netip.MustParseAddr("2001:db8:0:1::1")); q == p {
		t.Error("another /64 is the same")
	}
	v4 := c.OfAddr(netip.MustParseAddr("::ffff:192.0.2.1"))
	if q := c.OfAddr(netip.MustParseAddr("192.0.2.1")); q != v4 {
		t.Errorf("%v, %v", v4, q)
	}
	for range 2 {
		c.Release(p)
		c.Release(v4)
	}
	if len(c.principals) != 1 {
		t.Errorf("%d are left", len(c.principals))
	}
	if c.Named("shop", 2) != c.OfName("shop") || c.OfName("shop").weight.Load() != 2 {
		t.Error("the tenant has another weight")
	}
}

// Every turn that begins ends, and no more are held at a time than there are slots.
func TestTurnsUnderLoad(t *testing.T) {
	c := New()
	c.CPU.slots = 2
	var held, most atomic.Int64
	var all sync.WaitGroup
	for i := range 40 {
		p := c.Named(string(rune('a'+i%7)), 1+i%3)
		all.Go(func() {
			var turn Turn
			turn.Use(c.CPU, p)
			for range 200 {
				turn.Begin()
				turn.Begin()
				if n := held.Add(1); n > most.Load() {
					most.Store(n)
				}
				held.Add(-1)
				turn.Yield()
				if turn.Suspend() {
					turn.Begin()
				}
				turn.End()
				turn.End()
			}
		})
	}
	all.Wait()
	if c := c.CPU; c.busy.Load() != 0 || len(c.queue) != 0 || most.Load() > 2 {
		t.Errorf("%d busy, %d wait, %d at a time", c.busy.Load(), len(c.queue), most.Load())
	}
	var turn Turn
	if turn.Begin(); turn.Suspend() {
		t.Error("a turn of nobody")
	}
}

// busy works in slices, as a decoder does, for d, or until stop is closed.
func busy(turn *Turn, d time.Duration, stop chan struct{}) (used time.Duration) {
	turn.Begin()
	defer turn.End()
	for used < d {
		select {
		case <-stop:
			return used
		default:
		}
		time.Sleep(slice / 2)
		used += slice / 2
		turn.Yield()
	}
	return used
}

// While 100 pieces of long work of eight principals wait, a short piece of another waits for
// a slice or two, and so do those that follow it: a request takes several turns.
func TestShortWorkOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New()
		c.CPU.slots = 1
		stop := make(chan struct{})
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				var turn Turn
				turn.Use(c.CPU, c.OfName(strconv.Itoa(i%8)))
				busy(&turn, time.Hour, stop)
			})
		}
		time.Sleep(time.Minute)
		var turn Turn
		turn.Use(c.CPU, c.OfName("one"))
		for i := range 40 {
			begin := time.Now()
			turn.Begin()
			if waited := time.Since(begin); waited > 2*slice {
				t.Errorf("piece %d has waited %v", i, waited)
			}
			time.Sleep(slice / 2)
			if turn.End(); i%4 == 3 {
				time.Sleep(time.Second)
			}
		}
		close(stop)
		all.Wait()
	})
}

// Principals that always have work get time by their weights, however many pieces each has.
func TestTimeByWeight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New()
		c.CPU.slots = 1
		used := make(map[string]*atomic.Int64)
		stop := make(chan struct{})
		var all sync.WaitGroup
		for name, pieces := range map[string]int{"a": 1, "b": 30, "heavy": 2} {
			weight := 1
			if name == "heavy" {
				weight = 3
			}
			p, sum := c.Named(name, weight), new(atomic.Int64)
			used[name] = sum
			for range pieces {
				all.Go(func() {
					var turn Turn
					turn.Use(c.CPU, p)
					for {
						select {
						case <-stop:
							return
						default:
						}
						sum.Add(int64(busy(&turn, 10*time.Millisecond, stop)))
					}
				})
			}
		}
		time.Sleep(10 * time.Second)
		close(stop)
		all.Wait()
		for name, part := range map[string]time.Duration{"a": 2, "b": 2, "heavy": 6} {
			got, want := time.Duration(used[name].Load()), part*time.Second
			if got < want*9/10 || got > want*11/10 {
				t.Errorf("%s has worked for %v, want %v", name, got, want)
			}
		}
	})
}

// Who asks for more than there is takes nothing from others, not even for a moment.
func TestRefusedAcquireTakesNothing(t *testing.T) {
	c := New()
	r := c.Resource(Memory)
	r.SetLimit(100)
	greedy, modest := c.Named("greedy", 1), c.Named("modest", 1)
	var end atomic.Bool
	var asking sync.WaitGroup
	for range 2 {
		asking.Go(func() {
			for !end.Load() {
				if r.Acquire(greedy, 200) {
					t.Error("more than there is")
				}
			}
		})
	}
	for range 200_000 {
		if !r.Acquire(modest, 1) {
			t.Error("the modest one is refused")
			break
		}
		r.Release(modest, 1)
	}
	end.Store(true)
	asking.Wait()
}

// Work of a principal's own that lasts lets its other work go first, within a slice, and what comes later all of it.
func TestLowTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New()
		c.CPU.slots = 1
		p := c.Named("p", 1)
		var order []string
		turnOf := func(name string) *Turn {
			turn := new(Turn)
			turn.Use(c.CPU, p)
			if name != "request" {
				turn.SetLow(name == "figures")
			}
			return turn
		}
		scan := turnOf("scan")
		scan.Begin()
		for _, name := range []string{"figures", "another scan", "request", "request"} {
			go func() {
				turn := turnOf(name)
				turn.Begin()
				order = append(order, name)
				turn.End()
			}()
			synctest.Wait()
		}
		for range 4 {
			scan.Yield()
			time.Sleep(slice)
		}
		order = append(order, "scan")
		scan.End()
		synctest.Wait()
		if want := []string{"request", "request", "another scan", "scan", "figures"}; !slices.Equal(order, want) {
			t.Errorf("%q, want %q", order, want)
		}
	})
}

// An address has one principal as long as that is used, however many begin and end to use it at
// a time; then it is forgotten.
func TestPrincipalIsKeptWhileUsed(t *testing.T) {
	c := New()
	addr := netip.MustParseAddr("192.0.2.1")
	conn := c.NewLimit(10, 0).Admit(pipeFrom(t, addr))
	used := conn.Client(addr)
	conn.Close()
	if again := c.OfAddr(addr); again != used || used != conn.Principal() {
		t.Error("the principal of a request became another one when its connection ended")
	} else {
		c.Release(again)
	}
	c.Release(used)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 5000 {
				p := c.OfAddr(addr)
				if !p.retain() {
					t.Error("nobody uses what is used")
				}
				c.Release(p)
				c.Release(p)
			}
		})
	}
	all.Wait()
	if len(c.principals) != 0 || used.retain() {
		t.Errorf("%d principals are left", len(c.principals))
	}
}

// addressed is a connection from an address.
type addressed struct {
	net.Conn
	from net.Addr
}

func (a addressed) RemoteAddr() net.Addr { return a.from }

func pipeFrom(t *testing.T, addr netip.Addr) net.Conn {
	near, far := net.Pipe()
	t.Cleanup(func() { far.Close() })
	return addressed{near, net.TCPAddrFromAddrPort(netip.AddrPortFrom(addr, 7))}
}
