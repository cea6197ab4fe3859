package receiver

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollway/rollway/collector/normalize"
)

// ReasonTorn is why the last line of a TCP connection is rejected if the connection ended
// inside it, and a message that parts are missing of.
const ReasonTorn = normalize.ReasonTorn

// Reasons returns every key that Stats.Rejected can have.
func Reasons() []string { return normalize.Reasons() }

// Events are events by what became of them:
// Received = Stored + the sums of Rejected, Dropped and Ignored + Failed + Duplicate.
type Events struct {
	Received uint64            // events read
	Stored   uint64            // events that Store took
	Rejected map[string]uint64 // events that cannot be stored as they are, by reason
	Failed   uint64            // events that Store did not take; their senders know

	Duplicate uint64 // events that were stored before, under the key of their request or frame

	Dropped map[string]uint64 // events that a rule has dropped, by its name
	Ignored map[string]uint64 // what is acknowledged and not kept, as it is no log, by kind

	StoredBytes uint64 // canonical lines
}

// Stats is a snapshot of the counters since New. All but Storing, InFlight and Connections
// only rise. Whatever Store has taken is in Stored, in Duplicate or in Storing.
type Stats struct {
	Events                    // all of them
	Tenants map[string]Events // of them, those of senders with a tenant, by tenant

	Requests map[int]uint64 // HTTP requests by status
	Aborted  uint64         // of them, those whose client went away in the body
	Panics   uint64         // requests and connections that ended in a panic

	WireBytes     uint64 // bodies as sent, TCP and UDP
	UnpackedBytes uint64 // bodies unpacked, TCP and UDP

	Storing     int64 // events that Store has now; none of the counters above counts them yet
	InFlight    int64 // bytes taken from Options.InFlight now
	Connections int   // TCP connections now

	ConnectionsTotal   uint64 // TCP connections taken
	ConnectionsRefused uint64 // over Options.MaxConns
	StoreRetries       uint64 // batches from TCP and UDP that had to wait because the store was full

	Ahead uint64 // batches stored with an event whose time is more than a minute from now

	Datagrams        uint64 // read from UDP
	DatagramsDropped uint64 // by the system before they could be read, as far as it tells
}

// RejectedTotal sums up Rejected.
func (e *Events) RejectedTotal() uint64 { return sum(e.Rejected) }

// DroppedTotal sums up Dropped.
func (e *Events) DroppedTotal() uint64 { return sum(e.Dropped) }

// add adds what o counts.
func (e *Events) add(o *Events) {
	e.Received += o.Received
	e.Stored += o.Stored
	e.Failed += o.Failed
	e.Duplicate += o.Duplicate
	e.StoredBytes += o.StoredBytes
	addAll(&e.Rejected, o.Rejected)
	addAll(&e.Dropped, o.Dropped)
	addAll(&e.Ignored, o.Ignored)
}

func addAll(counts *map[string]uint64, more map[string]uint64) {
	for key, n := range more {
		addTo(counts, key, n)
	}
}

func addTo(counts *map[string]uint64, key string, n uint64) {
	if *counts == nil {
		*counts = make(map[string]uint64)
	}
	(*counts)[key] += n
}

// IgnoredTotal sums up Ignored.
func (e *Events) IgnoredTotal() uint64 { return sum(e.Ignored) }

func sum(counts map[string]uint64) (n uint64) {
	for _, c := range counts {
		n += c
	}
	return n
}

// Stats returns the counters.
func (r *Receiver) Stats() Stats {
	storing := r.count.storing.Load() // before Stored: what is counted meanwhile is in both
	s := r.count.snapshot()
	s.Storing = storing
	s.InFlight = r.memory.Used()
	return s
}

// counters is locked for additions only, so that snapshots are consistent and nobody
// waits.
type counters struct {
	mu      sync.Mutex
	s       Stats              // guarded by mu; without Events and Tenants
	events  map[string]*Events // guarded by mu; by tenant, "": of nobody's
	storing atomic.Int64       // events; given back once they are counted
}

func (c *counters) snapshot() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.s
	s.Requests, s.Tenants = maps.Clone(s.Requests), make(map[string]Events)
	for tenant, e := range c.events {
		s.Events.add(e)
		if tenant != "" {
			own := Events{}
			own.add(e)
			s.Tenants[tenant] = own
		}
	}
	return s
}

// request counts an HTTP request.
func (c *counters) request(w *workspace, o *outcome) {
	defer c.stored(w)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.s.Requests == nil {
		c.s.Requests = make(map[int]uint64)
	}
	c.s.Requests[o.code]++
	if o.aborted {
		c.s.Aborted++
	}
	if o.panicked {
		c.s.Panics++
	}
	c.s.WireBytes += uint64(w.wire.n)
	c.s.UnpackedBytes += uint64(len(w.buf))
	c.eventsLocked(w, o.stored, o.failed)
}

// batch counts the events of the batch of w.
func (c *counters) batch(w *workspace, stored, failed int) {
	defer c.stored(w)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.eventsLocked(w, stored, failed)
}

// storeBatch stores the batch of w. The caller counts its events afterwards.
func (r *Receiver) storeBatch(ctx context.Context, w *workspace) error {
	r.count.storing.Add(int64(w.batch.Records - w.storing))
	w.storing = w.batch.Records
	if w.options.Key != "" {
		w.options.Owner = w.principal.String()
	}
	var err error
	w.stored, err = r.backend.Store(ctx, &w.batch, w.options)
	return err
}

// stored takes back what storeBatch has added.
func (c *counters) stored(w *workspace) {
	c.storing.Add(int64(-w.storing))
	w.storing = 0
}

func (c *counters) eventsLocked(w *workspace, stored, failed int) {
	b, e := &w.batch, c.ofLocked(w)
	e.Received += uint64(stored + failed + b.DroppedTotal + b.IgnoredTotal + b.RejectedTotal)
	e.Failed += uint64(failed)
	switch {
	case w.stored.Duplicate:
		e.Duplicate += uint64(stored)
	case stored > 0:
		if b.MaxTime > time.Now().Add(time.Minute).UnixNano() {
			c.s.Ahead++
		}
		e.Stored += uint64(stored)
		e.StoredBytes += uint64(b.Size())
	}
	addDrops(&e.Dropped, b.Dropped)
	addDrops(&e.Ignored, b.Ignored)
	if b.RejectedTotal > 0 {
		for _, reason := range normalize.Reasons() {
			if n := b.RejectedFor(reason); n > 0 {
				addTo(&e.Rejected, reason, uint64(n))
			}
		}
	}
}

// addDrops adds the numbers of list to counts.
func addDrops(counts *map[string]uint64, list []normalize.Drop) {
	for _, d := range list {
		if d.Events > 0 {
			addTo(counts, d.Rule, uint64(d.Events))
		}
	}
}

// ofLocked returns the counts of the tenant whose the events of w are.
func (c *counters) ofLocked(w *workspace) *Events {
	e := c.events[w.tenant()]
	if e == nil {
		if c.events == nil {
			c.events = make(map[string]*Events)
		}
		e = new(Events)
		c.events[w.tenant()] = e
	}
	return e
}

// reject counts an event from the sender of w that never made it into a batch.
func (c *counters) reject(w *workspace, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.ofLocked(w)
	e.Received++
	addTo(&e.Rejected, reason, 1)
}

// add changes counters that stand alone.
func (c *counters) add(change func(*Stats)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.s)
}
