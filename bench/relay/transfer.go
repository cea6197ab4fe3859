package relay

import (
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/internal/promtext"
)

// A transfer is one way to send bytes through a relay.
type transfer struct {
	name     string
	tls      bool
	download bool
	chunk    int // bytes of one write
	length   int // bytes on each connection
	conns    int // connections, one after the other
}

// take sends the bytes through the relay and returns the sample: times per byte,
// the CPU time of the relay's process alone. With one connection, opening it and a
// first stretch are not part of the measurement.
func (t transfer) take(r *rig, c contender) (s measure.Sample, err error) {
	p, err := c.run(r, t.tls)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	var warm net.Conn
	if warm, err = r.dial(p.Addr, t.tls); err != nil {
		return s, err
	}
	defer warm.Close()
	first := min(t.length, 8<<20)
	if err := t.move(warm, first); err != nil {
		return s, fmt.Errorf("first %d bytes: %w", first, err)
	}
	w, err := watch(p, r.upstream)
	if err != nil {
		return s, err
	}
	for i := range t.conns {
		conn := warm
		if i > 0 {
			if conn, err = r.dial(p.Addr, t.tls); err != nil {
				return s, err
			}
			defer conn.Close() // not sooner: the relay's work for it would end unseen
		}
		if err := t.move(conn, t.length); err != nil {
			return s, err
		}
	}
	s, err = w.sample(t.length * t.conns)
	if err == nil && c.inGo() {
		s.Extra["reads_gib"] = w.reads / float64(s.Ops) * (1 << 30)
	}
	return s, err
}

func (t transfer) move(c io.ReadWriter, length int) error {
	if t.download {
		return download(c, length, t.chunk)
	}
	return upload(c, length, t.chunk)
}

// A watcher measures a relay's process.
type watcher struct {
	relay, upstream *process
	meter           measure.Meter
	cpu, upCPU      time.Duration
	reads           float64
}

func watch(relay, upstream *process) (*watcher, error) {
	w := &watcher{relay: relay, upstream: upstream, meter: measure.StartMeter()}
	var errs [3]error
	w.reads, errs[0] = relay.Reads()
	w.upCPU, errs[1] = upstream.CPU()
	w.cpu, errs[2] = relay.CPU()
	return w, errors.Join(errs[:]...)
}

// sample ends the measurement of n operations. The relay and the upstream do not
// count as other processes.
func (w *watcher) sample(n int) (measure.Sample, error) {
	cpu, err := w.relay.CPU()
	took, _, others := w.meter.Read()
	upCPU, err2 := w.upstream.CPU()
	reads, err3 := w.relay.Reads()
	if err := errors.Join(err, err2, err3); err != nil {
		return measure.Sample{}, err
	}
	cpu, upCPU, w.reads = cpu-w.cpu, upCPU-w.upCPU, reads-w.reads
	return measure.Sample{
		Ops: n, NsPerOp: float64(took) / float64(n), CPUNsPerOp: float64(cpu) / float64(n),
		OthersPct: max(0, others-100*float64(cpu+upCPU)/float64(took)),
		Extra:     map[string]float64{},
	}, nil
}

// A pingPongs is one connection on which small messages go to and fro.
type pingPongs struct {
	tls bool
	n   int
}

// take returns percentiles of the round trips, in ns. Without a relay the
// client talks to the upstream itself.
func (t pingPongs) take(r *rig, c contender) (s measure.Sample, err error) {
	p, addr := r.upstream, r.upstream.Addr
	if t.tls {
		addr = r.upstream.TLSAddr
	}
	if c.name != direct {
		if p, err = c.run(r, t.tls); err != nil {
			return s, err
		}
		defer func() { err = errors.Join(err, p.Stop()) }()
		addr = p.Addr
	}
	conn, err := r.dial(addr, t.tls)
	if err != nil {
		return s, err
	}
	defer conn.Close()
	if err := pingPong(conn, max(1, t.n/10), message, nil); err != nil {
		return s, err
	}
	w, err := watch(p, r.upstream)
	if err != nil {
		return s, err
	}
	var h promtext.Histogram
	if err := pingPong(conn, t.n, message, &h); err != nil {
		return s, err
	}
	if s, err = w.sample(t.n); err != nil {
		return s, err
	}
	for name, q := range map[string]float64{"p50": 0.5, "p99": 0.99, "p999": 0.999} {
		s.Extra[name] = float64(h.Quantile(q))
	}
	return s, nil
}
