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

// crowd opens connections until there are n, each with one message there and
// back, so that the relay has needed a buffer for it.
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

// A memoryOver is the memory of a Go process with more and more relays in it.
type memoryOver struct {
	steps []int
	how   string // doSpawn, doPipes, or "" for connections over sockets
	tls   bool
}

// take returns heap and stack in bytes at each step, and over sockets the
// memory of the whole process.
func (t memoryOver) take(r *rig, c contender) (s measure.Sample, err error) {
	p, err := c.run(r, t.tls)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	base, err := p.do(doGC, 0)
	if err != nil {
		return s, err
	}
	process, _, err := p.Space()
	if err != nil {
		return s, err
	}
	var conns []net.Conn
	defer func() { closeAll(conns) }()
	s = measure.Sample{Ops: t.steps[len(t.steps)-1], Extra: map[string]float64{}}
	for _, n := range t.steps {
		var g gauges
		if t.how != "" {
			g, err = p.do(t.how, n)
		} else if conns, err = r.crowd(p.Addr, t.tls, conns, n); err == nil {
			time.Sleep(r.settle)
			g, err = p.do(doGauge, 0)
		}
		if err != nil {
			return s, fmt.Errorf("at %d: %w", n, err)
		}
		now, _, err := p.Space()
		if err != nil {
			return s, err
		}
		s.Extra[fmt.Sprintf("heap_%d", n)] = grown(g.Heap, base.Heap)
		s.Extra[fmt.Sprintf("stack_%d", n)] = grown(g.Stack, base.Stack)
		s.Extra[fmt.Sprintf("process_%d", n)] = max(0, now-process)
	}
	return s, nil
}

// grown is how much more there is than before.
func grown(now, before uint64) float64 { return max(0, float64(now)-float64(before)) }

// fewGoroutines is how many a relay may start that are not of a connection.
const fewGoroutines = 4

// A twoBursts is n connections at once, twice, with nothing in between.
type twoBursts struct {
	n     int
	pipes bool
	tls   bool
}

// take returns what is left of the first burst and what the second needs.
func (t twoBursts) take(r *rig, c contender) (s measure.Sample, err error) {
	p, err := c.run(r, t.tls)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	base, err := p.do(doGC, 0)
	if err != nil {
		return s, err
	}
	if err := t.burst(r, p); err != nil {
		return s, err
	}
	idle, err := p.settle(base.Goroutines + fewGoroutines)
	if err != nil {
		return s, err
	}
	if _, err := p.do(doWatch, 0); err != nil {
		return s, err
	}
	if t.pipes { // the child does one thing at a time, so the burst ends first; the peak is kept
		if _, err := p.do(doBurst, t.n); err != nil {
			return s, err
		}
	} else if err := t.burst(r, p); err != nil {
		return s, err
	}
	peak, err := p.do(doPeak, 0)
	if err != nil {
		return s, err
	}
	if _, err := p.settle(base.Goroutines + fewGoroutines); err != nil {
		return s, err
	}
	clean, err := p.do(doGC, 0)
	if err != nil {
		return s, err
	}
	return measure.Sample{Ops: t.n, Extra: map[string]float64{
		"idle_heap": grown(idle.Heap, base.Heap), "clean_heap": grown(clean.Heap, base.Heap),
		"active_heap": grown(peak.Heap, base.Heap), "active_stack": grown(peak.Stack, base.Stack),
	}}, nil
}

// burst is one: all connections are open before the first sends, and all have
// sent before the first closes.
func (t twoBursts) burst(r *rig, p *process) error {
	if t.pipes {
		_, err := p.do(doBurst, t.n)
		return err
	}
	conns, err := r.crowd(p.Addr, t.tls, nil, t.n)
	defer func() { closeAll(conns) }()
	if err != nil {
		return err
	}
	errs := make(chan error, len(conns))
	for _, c := range conns {
		go func() { errs <- upload(c, burstBytes, burst) }()
	}
	for range conns {
		err = errors.Join(err, <-errs)
	}
	return err
}
