package relay

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/rollway/rollway/bench/internal/measure"
)

// dialers is how many connections are opened at the same time.
const dialers = 32

// crowd opens connections until there are n, and sends one message there and
// back on each, so that the relay has used a buffer for it.
func (r *rig) crowd(addr string, encrypted bool, conns []net.Conn, n int) ([]net.Conn, error) {
	var mu sync.Mutex
	var errs error // guarded by mu, as conns is
	var all sync.WaitGroup
	next := make(chan struct{}, max(0, n-len(conns)))
	for range cap(next) {
		next <- struct{}{}
	}
	close(next)
	for range dialers {
		all.Go(func() {
			for range next {
				c, err := r.dial(addr, encrypted)
				if err == nil {
					err = pingPong(c, 1, message, nil)
				}
				mu.Lock()
				if c != nil {
					conns = append(conns, c)
				}
				errs = errors.Join(errs, err)
				failed := errs != nil
				mu.Unlock()
				if failed {
					return
				}
			}
		})
	}
	all.Wait()
	return conns, errs
}

func closeAll(conns []net.Conn) {
	for _, c := range conns {
		if t, ok := c.(interface{ NetConn() net.Conn }); ok {
			c = t.NetConn() // without TLS, which would wait to send an alert
		}
		c.Close()
	}
}

// An idleness is n connections on which nothing happens any more.
type idleness struct {
	tls bool
	n   int
}

// take returns what the relay has for each connection.
func (t idleness) take(r *rig, c contender) (s measure.Sample, err error) {
	n := t.n
	if c.idle > 0 {
		n = min(n, c.idle)
	}
	p, err := c.run(r, t.tls)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	// One connection first: a program that listens may not have started all of
	// its processes yet.
	first, err := r.crowd(p.Addr, t.tls, nil, 1)
	defer func() { closeAll(first) }()
	if err != nil {
		return s, err
	}
	memory, descriptors, err := p.Space()
	if err != nil {
		return s, err
	}
	n -= len(first)
	begin := time.Now()
	conns, err := r.crowd(p.Addr, t.tls, nil, n)
	defer func() { closeAll(conns) }()
	if err != nil {
		return s, fmt.Errorf("%d of %d connections: %w", len(conns), n, err)
	}
	took := time.Since(begin)
	time.Sleep(r.settle)
	memory2, descriptors2, err := p.Space()
	if err != nil {
		return s, err
	}
	return measure.Sample{Ops: n, NsPerOp: float64(took) / float64(n), Extra: map[string]float64{
		"conns":       float64(n + len(first)),
		"bytes":       (memory2 - memory) / float64(n),
		"descriptors": float64(descriptors2-descriptors) / float64(n),
	}}, nil
}

// fewGoroutines is how many a relay may start beside those of its connections.
const fewGoroutines = 4

// idleInGo is the memory of a Go process with many idle connections.
type idleInGo struct {
	tls bool
	n   int
}

// take returns heap, stack and the memory of the whole process in bytes.
func (t idleInGo) take(r *rig, c contender) (s measure.Sample, err error) {
	p, err := c.run(r, t.tls)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	base, err := p.gauge(true)
	if err != nil {
		return s, err
	}
	before, _, err := p.Space()
	if err != nil {
		return s, err
	}
	conns, err := r.crowd(p.Addr, t.tls, nil, t.n)
	defer func() { closeAll(conns) }()
	if err != nil {
		return s, err
	}
	time.Sleep(r.settle)
	g, err := p.gauge(false)
	after, _, err2 := p.Space()
	return measure.Sample{Ops: t.n, Extra: map[string]float64{
		"conns": float64(t.n), "heap": grown(g.Heap, base.Heap), "stack": grown(g.Stack, base.Stack), "process": max(0, after-before),
	}}, errors.Join(err, err2)
}

// grown is how much more there is than before.
func grown(now, before uint64) float64 { return max(0, float64(now)-float64(before)) }

// afterBurst is what is left of many connections at once.
type afterBurst struct {
	tls bool
	n   int
}

// burstBytes is what each connection of a burst carries.
const burstBytes = 256 << 10

// take returns the heap after the burst, and after a collection. All connections are
// open before the first sends, and all have sent before the first closes.
func (t afterBurst) take(r *rig, c contender) (s measure.Sample, err error) {
	p, err := c.run(r, t.tls)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	base, err := p.gauge(true)
	if err != nil {
		return s, err
	}
	conns, err := r.crowd(p.Addr, t.tls, nil, t.n)
	if err != nil {
		closeAll(conns)
		return s, err
	}
	errs := make(chan error, len(conns))
	for _, c := range conns {
		go func() { errs <- upload(c, burstBytes, burst) }()
	}
	for range conns {
		err = errors.Join(err, <-errs)
	}
	closeAll(conns)
	if err != nil {
		return s, err
	}
	idle, err := p.settle(base.Goroutines + fewGoroutines)
	if err != nil {
		return s, err
	}
	clean, err := p.gauge(true)
	return measure.Sample{Ops: t.n, Extra: map[string]float64{
		"conns": float64(t.n), "idle_heap": grown(idle.Heap, base.Heap), "clean_heap": grown(clean.Heap, base.Heap),
	}}, err
}
