package admission

import (
	"container/heap"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// A CPU gives as many turns at a time as there are processors, to those who have work for
// them. While turns are free one costs two atomic operations. Otherwise the next goes to the
// principal that has used least: start-time fair queueing (Goyal, Vin and Cheng, 1996),
// in which each has a tag that grows with the time it uses, divided by its weight, and
// who comes anew gets the tag of the turn that was given last. A long piece of work
// yields every slice, so that a short one waits for that long at most.
type CPU struct {
	slots int64
	busy  atomic.Int64 // turns that are taken or waited for
	poll  poller

	mu      sync.Mutex
	free    int           // guarded by mu; turns given back before who waits has queued
	virtual time.Duration // guarded by mu; the tag of the turn given last
	queue   turnHeap      // guarded by mu; principals with work that waits
}

// slice is how long a turn lasts while others wait, and how long who works lets no other goroutine
// run while there are requests. A request waits for some slices.
const slice = time.Millisecond / 2

// credit is how much a principal that has used less than its share may use before others.
// A request takes several turns, and a new connection of TLS more.
const credit = 8 * time.Millisecond

func newCPU() *CPU { return &CPU{slots: int64(runtime.GOMAXPROCS(0))} }

// Turns returns how many turns there are at a time.
func (c *CPU) Turns() int { return int(c.slots) }

// Waiting returns how much work waits for its turn.
func (c *CPU) Waiting() int { return int(max(0, c.busy.Load()-c.slots)) }

// turns are what a CPU knows of a principal; guarded by CPU.mu.
type turns struct {
	tag     time.Duration
	waiting [3]struct{ first, last *Turn } // by Turn.low
	at      int                            // in CPU.queue; -1: nobody waits
}

// low is the least Turn.low of what waits; len(waiting): nobody waits.
func (p *turns) low() int {
	for low := range p.waiting {
		if p.waiting[low].first != nil {
			return low
		}
	}
	return len(p.waiting)
}

// A Turn is the right of one goroutine, its owner, to work. It is used again and again.
type Turn struct {
	cpu     *CPU
	p       *Principal
	low     int // turns of p that have less come first; 0: short work
	held    bool
	begun   time.Time // zero: nobody was waiting yet
	charged bool      // p has paid for a slice
	rested  time.Time // when it has let others run; zero: not in this turn, or if low not at all
	fresh   bool      // p had used less than others when it was to wait
	ready   chan struct{}
	next    *Turn // of p
}

// Use has the turns that follow be p's, on cpu.
func (t *Turn) Use(cpu *CPU, p *Principal) { t.cpu, t.p = cpu, p }

// SetLow has the turns that follow come after those of the same principal that are not low. It is
// for work that lasts, such as a query. With later they also come after others that are low: for
// work that nobody waits for as much, such as figures beside lines.
func (t *Turn) SetLow(later bool) {
	if t.low = 1; later {
		t.low = 2
	}
}

// Begin returns once it is the owner's turn. It does nothing if it is already.
func (t *Turn) Begin() {
	if t.held || t.cpu == nil {
		return
	}
	t.held = true
	if t.low == 0 {
		t.cpu.poll.asked.Add(1)
	}
	if c := t.cpu; c.busy.Add(1) > c.slots {
		c.await(t)
	}
}

// End ends the turn, if there is one.
func (t *Turn) End() {
	if !t.held {
		return
	}
	t.held = false
	c := t.cpu
	if c.busy.Add(-1) >= c.slots {
		c.mu.Lock()
		c.chargeLocked(t)
		c.passLocked()
		c.mu.Unlock()
	}
	t.begun, t.charged = time.Time{}, false
	if t.low == 0 { // else short turns that follow each other would never rest
		t.rested = time.Time{}
	}
}

// Yield lets others work if it is their turn. It costs an atomic operation as long as
// turns are free.
func (t *Turn) Yield() {
	if t.held && t.cpu.busy.Load() >= t.cpu.slots {
		t.cpu.yield(t)
	}
}

// Rest lets requests go on, if there are any. It is for work without turns, once in a slice or more often.
func (c *CPU) Rest() { c.poll.look(time.Now()) }

// Suspend ends the turn before something that may take long, and reports whether there was
// one, which is then to begin again.
func (t *Turn) Suspend() bool {
	held := t.held
	t.End()
	return held
}

func (c *CPU) await(t *Turn) {
	c.mu.Lock()
	if c.free > 0 {
		c.free--
		c.startLocked(t)
		c.mu.Unlock()
		return
	}
	c.queueLocked(t)
	c.mu.Unlock()
	<-t.ready
	if !t.fresh {
		t.letOthers()
	}
}

// letOthers lets the other goroutines that can run do so before a slice: their work is short,
// and some of it is to read what the next principal has sent. Otherwise Go's scheduler would go
// from turn to turn, and look at its other queues only now and then.
func (t *Turn) letOthers() {
	if t.low == 0 || !t.cpu.poll.look(t.begun) {
		runtime.Gosched()
	}
	t.begun = time.Now()
	t.rested = t.begun
}

func (c *CPU) yield(t *Turn) {
	now := time.Now()
	if t.begun.IsZero() {
		t.begun = now
	}
	if t.rested.IsZero() {
		t.rested = now
	}
	if now.Sub(t.rested) < slice {
		return
	}
	if c.Waiting() == 0 && !c.poll.wanted(now) {
		t.rested = now
		return
	}
	c.mu.Lock()
	c.chargeLocked(t)
	if !c.nextLocked(t) {
		c.startLocked(t)
		c.mu.Unlock()
	} else {
		c.passLocked()
		c.queueLocked(t)
		c.mu.Unlock()
		<-t.ready
	}
	t.letOthers()
}

// nextLocked reports whether somebody comes before another slice of t.
func (c *CPU) nextLocked(t *Turn) bool {
	if len(c.queue) == 0 {
		return false
	}
	if p := c.queue[0]; p != t.p {
		return p.turns.tag < t.p.turns.tag
	}
	return t.p.turns.low() < t.low
}

// startLocked begins a slice of t, and charges for it in advance: a principal may have
// several turns at a time.
func (c *CPU) startLocked(t *Turn) {
	p := &t.p.turns
	p.tag = max(p.tag, c.virtual-credit)
	c.virtual = max(c.virtual, p.tag)
	c.addLocked(t.p, slice)
	t.begun, t.charged = time.Now(), true
}

// chargeLocked charges for what t has used.
func (c *CPU) chargeLocked(t *Turn) {
	if t.begun.IsZero() {
		return
	}
	used := time.Since(t.begun)
	if t.charged {
		used -= slice
	}
	c.addLocked(t.p, used)
	t.begun, t.charged = time.Time{}, false
}

func (c *CPU) addLocked(p *Principal, used time.Duration) {
	p.turns.tag += used / time.Duration(p.weight.Load())
	if p.turns.at >= 0 {
		heap.Fix(&c.queue, p.turns.at)
	}
}

// queueLocked has t wait.
func (c *CPU) queueLocked(t *Turn) {
	if t.ready == nil {
		t.ready = make(chan struct{}, 1)
	}
	p := &t.p.turns
	if line := &p.waiting[t.low]; line.first != nil {
		line.last.next, line.last = t, t
	} else {
		line.first, line.last = t, t
	}
	if t.fresh = false; p.at >= 0 {
		return
	}
	t.fresh = p.tag < c.virtual
	p.tag = max(p.tag, c.virtual-credit)
	heap.Push(&c.queue, t.p)
}

// passLocked gives a turn that has ended to who is next.
func (c *CPU) passLocked() {
	if len(c.queue) == 0 {
		c.free++
		return
	}
	p := &c.queue[0].turns
	line := &p.waiting[p.low()]
	t := line.first
	line.first, t.next = t.next, nil
	if p.low() == len(p.waiting) {
		heap.Pop(&c.queue)
	}
	c.startLocked(t)
	t.ready <- struct{}{}
}

// turnHeap has the principal with the least tag first.
type turnHeap []*Principal

func (h turnHeap) Len() int           { return len(h) }
func (h turnHeap) Less(i, j int) bool { return h[i].turns.tag < h[j].turns.tag }
func (h turnHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].turns.at, h[j].turns.at = i, j
}
func (h *turnHeap) Push(p any) { p.(*Principal).turns.at = len(*h); *h = append(*h, p.(*Principal)) }
func (h *turnHeap) Pop() any {
	last := len(*h) - 1
	p := (*h)[last]
	(*h)[last], *h = nil, (*h)[:last]
	p.turns.at = -1
	return p
}
