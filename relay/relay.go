package relay

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Relay accepts connections and copies them to upstreams. It is safe for concurrent
// use. Its owner calls Close, which ends its goroutines and closes its pipes.
type Relay struct {
	options   Options
	upstreams *upstreams
	buffers   buffers
	pipes     pipes
	budget    budget
	sleeping  atomic.Int32 // directions in sleepShortly
	counts    counts
	sources   sources
	serverTLS *reloadedTLS
	clientTLS *reloadedTLS
	lookup    func(ctx context.Context, host string) ([]netip.Addr, error) // tests have their own
	limited   limitedLog

	stop    context.CancelFunc // ends the goroutines that New started
	stopped context.Context
	workers sync.WaitGroup // those goroutines

	mu        sync.Mutex
	conns     map[*conn]struct{}        // guarded by mu
	setups    int                       // guarded by mu: connections not in conns yet
	listeners map[net.Listener]struct{} // guarded by mu
	closing   bool                      // guarded by mu: nothing new is taken
	cutting   bool                      // guarded by mu: what there is is being ended
	empty     chan struct{}             // guarded by mu: closed when closing and nothing is left
}

var background = context.Background()

// New checks the options and returns a Relay, running.
func New(o Options) (*Relay, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	r := &Relay{
		options:   o,
		conns:     map[*conn]struct{}{},
		listeners: map[net.Listener]struct{}{},
		empty:     make(chan struct{}),
		sources:   sources{count: map[netip.Addr]int{}},
		limited:   limitedLog{to: o.Log, notes: map[string]*limitedNote{}},
	}
	if r.serverTLS, err = newReloadedTLS("server", o.ServerTLS, o.ServerFiles); err != nil {
		return nil, fmt.Errorf("ServerFiles: %w", err)
	}
	if r.clientTLS, err = newReloadedTLS("client", o.ClientTLS, o.ClientFiles); err != nil {
		return nil, fmt.Errorf("ClientFiles: %w", err)
	}
	if r.upstreams, err = newUpstreams(o, r.clientTLS); err != nil {
		return nil, err
	}
	r.buffers.init(o.bufferSize)
	r.pipes.max = o.maxPipes
	r.budget.size = o.SocketMemory
	r.stopped, r.stop = context.WithCancel(background)
	r.lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
		return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	}
	r.work()
	return r, nil
}

// work starts the goroutines that serve no single connection.
func (r *Relay) work() {
	r.workers.Go(r.enforceTimeouts)
	if slices.ContainsFunc(r.upstreams.all, func(up *upstream) bool { return up.named }) {
		r.workers.Go(func() { r.every(r.options.ResolveInterval, r.resolveAll) })
	}
	if !r.options.ServerFiles.none() || !r.options.ClientFiles.none() {
		r.workers.Go(func() { r.every(reloadEvery, func() { r.reloadTLS(false) }) })
	}
	if r.options.HealthInterval > 0 {
		r.workers.Go(func() {
			r.checkHealth()
			r.every(r.options.HealthInterval, r.checkHealth)
		})
	}
}

// every calls do at an interval until the relay stops.
func (r *Relay) every(interval time.Duration, do func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-r.stopped.Done():
			return
		case <-tick.C:
			do()
		}
	}
}

var errClosed = fmt.Errorf("relay: shut down: %w", net.ErrClosed)

// Serve accepts connections of l, which it closes, until ctx ends or Shutdown
// or Close is called: then its error wraps net.ErrClosed. When ctx ends it
// closes the relay and returns nil.
func (r *Relay) Serve(ctx context.Context, l net.Listener) error {
	if own, ok := l.(*Listener); ok && own.TLS() && r.options.ServerTLS == nil && len(r.options.ServerFiles.Certificates) == 0 {
		l.Close()
		return fmt.Errorf("%s needs Options.ServerTLS or ServerFiles", own)
	}
	if !r.listen(l) {
		l.Close()
		return errClosed
	}
	unhook := context.AfterFunc(ctx, r.stopAccepting)
	defer unhook()
	err := r.accept(ctx, l)
	if ctx.Err() != nil {
		_ = r.Close() // the connections that were cut are counted
		return nil
	}
	return err
}

// Close is Shutdown within Options.DrainTimeout.
func (r *Relay) Close() error {
	ctx, cancel := context.WithTimeout(background, max(r.options.DrainTimeout, 0))
	defer cancel()
	return r.Shutdown(ctx)
}

// Shutdown closes the listeners and waits for the connections to end. When ctx ends
// first, it stops reading, passes on the bytes that were read, ends the streams on both
// sides, and a second later resets the connections that are left. It returns ctx's error
// at most two seconds after ctx has ended. It does not wait for a log that takes no
// record for a second.
func (r *Relay) Shutdown(ctx context.Context) error {
	r.stopAccepting()
	ended := make(chan error, 1)
	go func() { ended <- r.end(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(2 * r.options.grace):
	}
	for _, q := range r.options.logQueues {
		q.abandon()
	}
	return ctx.Err()
}

// end waits for the connections, which it cuts when ctx ends, and then for the
// rest.
func (r *Relay) end(ctx context.Context) (err error) {
	select {
	case <-r.empty:
	case <-ctx.Done():
		select {
		case <-r.empty:
		default:
			err = ctx.Err()
			r.cutConns()
		}
	}
	r.stop()
	<-r.empty
	r.workers.Wait()
	r.pipes.close()
	var logs sync.WaitGroup
	for _, q := range r.options.logQueues {
		logs.Go(func() { q.drain(r.options.grace) })
	}
	logs.Wait()
	return err
}

// drainGrace is how long directions may pass on the bytes they hold, once they have
// to stop reading.
const drainGrace = time.Second

// cutConns ends every connection. It does not wait for the last of them.
func (r *Relay) cutConns() {
	r.mu.Lock()
	r.cutting = true
	r.mu.Unlock()
	r.stop() // dials and handshakes end
	for _, c := range r.snapshot() {
		c.stop(ReasonDrained)
	}
	grace := time.NewTimer(r.options.grace)
	defer grace.Stop()
	select {
	case <-r.empty:
		return
	case <-grace.C:
	}
	left := r.snapshot()
	for _, c := range left {
		c.kill(ReasonDrainCut, true)
	}
	if len(left) > 0 {
		r.options.Log.Warn("connections were cut off while draining", slog.Int("connections", len(left)))
	}
}

func (r *Relay) snapshot() []*conn {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.conns))
}

// listen adds a listener. It returns false if the relay is closing.
func (r *Relay) listen(l net.Listener) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closing {
		return false
	}
	r.listeners[l] = struct{}{}
	return true
}

func (r *Relay) stopAccepting() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closing {
		return
	}
	r.closing = true
	for l := range r.listeners {
		l.Close()
	}
	r.checkEmptyLocked()
}

func (r *Relay) checkEmptyLocked() {
	if r.closing && len(r.conns) == 0 && r.setups == 0 {
		close(r.empty)
	}
}

// beginSetup counts a connection that is not in conns yet. It returns a Reason if there
// are most already (most ≤ 0: no limit) or the relay is closing.
func (r *Relay) beginSetup(most int) Reason {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closing:
		return ReasonDrainCut
	case most > 0 && len(r.conns)+r.setups >= most:
		return ReasonLimit
	}
	r.setups++
	return 0
}

// endSetup undoes beginSetup for a connection that was not established.
func (r *Relay) endSetup() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.setups--
	r.checkEmptyLocked()
}

// add moves a connection from the setups to conns. It returns false if cutConns has
// already run. At no time is the connection counted twice, or not at all.
func (r *Relay) add(c *conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.setups--
	r.conns[c] = struct{}{}
	return !r.cutting
}

func (r *Relay) remove(c *conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, c)
	r.checkEmptyLocked()
}
