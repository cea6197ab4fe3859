package receiver

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/rollway/rollway/collector/admission"
	"github.com/rollway/rollway/collector/clients"
	"github.com/rollway/rollway/internal/backoff"
)

// Waits between attempts to store when the store is full, or to grow when the
// budget is used up.
const (
	firstWait = 10 * time.Millisecond
	maxWait   = time.Second
)

// batcher is what a connection and a socket for datagrams have in common: memory, a
// share of the budget, and a batch that waits while the store is full. One goroutine
// owns it.
type batcher struct {
	r        *Receiver
	ctx      context.Context // its end is the end of reading
	space    *workspace
	peer     string     // for the log
	from     netip.Addr // of a connection, whose batches are all its own; else the zero Addr
	receiver string     // what the protocol is called
	waiting  func()     // is called once a second while nothing can be stored; nil: nothing is

	request    *http.Request // whose body it reads; nil: none
	durability string        // that the request has asked for
	total      clients.Seen  // of the request

	spare   int   // bytes that lines may take up beyond its buffer; 0: as many as that
	lines   int   // bytes that lines may take up now
	extra   int64 // bytes taken from the budget until the batch is stored
	scratch int   // of them, those that frames use one after another
	others  int   // rejected events of the chunk that are of other peers, which were seen
	due     bool  // what is in the batch is not counted

	end time.Time // of the wait for more memory; zero: it has not waited since the last event
}

// chunk prepares what a protocol gets.
func (f *batcher) chunk(data []byte, peer netip.AddrPort, received time.Time) *Chunk {
	w := f.space
	f.due = true // also after a panic
	w.policy = f.r.backend.Policy()
	w.options.Durability = f.durability
	w.enrich(peer.Addr())
	if w.batch.Held() == 0 {
		f.lines = f.free()
		w.batch.Within(f, f.lines)
		if 2*len(data) > cap(w.buf) { // a busy connection fills it
			w.batch.Expect(f.lines)
		}
	}
	w.chunk = Chunk{Data: data, Received: received, Peer: peer, Norm: w.norm, Batch: &w.batch, Reply: w.answer[:0], batcher: f}
	return &w.chunk
}

// free returns how many bytes lines may take up uncounted.
func (f *batcher) free() int {
	if f.spare > 0 {
		return f.spare
	}
	return cap(f.space.buf)
}

// Grow implements normalize.Room.
func (f *batcher) Grow(memory, lines int) bool {
	more := int64(max(0, memory-f.lines))
	if int64(lines) > f.r.opts.InFlight || !f.await(f.space.held+more) {
		return false
	}
	f.extra += more
	f.lines += int(more)
	return true
}

// errOverflow is the error of a batch that was refused room.
var errOverflow = errors.New("there is no memory for the lines of what has arrived together")

// store stores the batch and empties it. It waits while the store is full.
func (f *batcher) store() error {
	b := &f.space.batch
	if b.RejectedTotal > 0 {
		reason, detail := "", ""
		if len(b.Rejected) > 0 {
			reason, detail = b.Rejected[0].Reason, b.Rejected[0].Detail
			if b.Withholds() {
				detail = "withheld, as rules redact events"
			}
		}
		f.warn("events rejected", "count", b.RejectedTotal, "reason", reason, "detail", detail)
	}
	f.space.turn.End()
	var err error
	switch {
	case b.Overflowed():
		err = errOverflow
	case b.Records > 0 || b.DroppedTotal > 0 && f.space.options.Key != "": // see endpoint.handle
		err = f.storeWaiting()
	}
	stored, failed := b.Records, 0
	if err != nil {
		if !errors.Is(err, ErrNotSynced) {
			stored, failed = 0, b.Records
		}
		f.r.logSome(slog.LevelError, "store events", "peer", f.peer, "events", b.Records, "error", err)
	}
	f.r.count.batch(f.space, stored, failed)
	f.see(f.space.seen(err))
	if f.request != nil && f.space.sender != nil {
		f.space.sender.Charge(time.Now(), int(f.space.wire.n), b.Events())
	}
	f.space.wire.n = 0
	f.due = false
	if b.Events() > 0 {
		f.end = time.Time{}
	}
	f.r.keepRejected(f.space, f.receiver, f.request, f.from)
	b.Reset()
	f.space.options, f.space.stored = StoreOptions{}, Stored{}
	if cap(b.Lines) > f.free() { // more than a connection that waits is worth
		b.Lines = nil
	}
	f.release(f.extra)
	f.extra, f.scratch = 0, 0
	return err
}

func (f *batcher) storeWaiting() error {
	f.space.checkLines()
	ctx := context.WithoutCancel(f.ctx)
	done := f.ctx.Done()
	var giveUp <-chan time.Time
	for wait := firstWait; ; wait = min(2*wait, maxWait) {
		err := f.r.storeBatch(ctx, f.space)
		if err == nil || !errors.Is(err, ErrFull) && !errors.Is(err, ErrUnavailable) {
			return err
		}
		f.r.count.add(func(s *Stats) { s.StoreRetries++ })
		f.warn("nothing can be stored now, the sender waits", "error", err)
		select {
		case <-time.After(wait):
			if wait == maxWait && f.waiting != nil {
				f.waiting()
			}
		case <-done:
			done = nil
			giveUp = time.After(f.r.opts.DrainTimeout)
		case <-giveUp:
			return err
		}
	}
}

// How long a connection waits for memory at most: for its first, and for more between two
// events. Those that have some may wait for each other, and others for all of them.
const (
	maxAwait     = 5 * time.Minute
	maxAwaitMore = 10 * time.Second
)

// await raises what the batcher holds of its share and of the budget to n bytes. It waits,
// at most for as long as a sender may be silent, unless there are never as many.
func (f *batcher) await(n int64) bool {
	if f.acquire(n) {
		return true
	}
	if f.space.turn.Suspend() {
		defer f.space.turn.Begin()
	}
	end := time.Now().Add(min(f.r.opts.IdleTimeout, maxAwait))
	if f.space.held > 0 {
		if f.end.IsZero() {
			f.end = time.Now().Add(min(f.r.opts.IdleTimeout, maxAwaitMore))
		}
		end = f.end
	}
	for wait := firstWait; !f.acquire(n); wait = min(2*wait, maxWait) {
		if n > f.r.streams.Most(f.space.principal) || time.Now().After(end) {
			f.warn("no memory is left in the budget, the connection is closed")
			f.see(clients.Seen{Refused: clients.Reason(http.StatusServiceUnavailable), Text: "no memory is left in the budget"})
			return false
		}
		if !backoff.Sleep(f.ctx, wait) {
			return false
		}
	}
	return true
}

func (f *batcher) acquire(n int64) bool {
	w := f.space
	if n <= w.held {
		return true
	}
	if !f.r.opts.Admission.AcquirePart(admission.Streams, w.principal, n-w.held) {
		return false
	}
	w.held = n
	return true
}

// release gives n bytes of what the batcher holds back.
func (f *batcher) release(n int64) {
	f.r.opts.Admission.ReleasePart(admission.Streams, f.space.principal, n)
	f.space.held -= n
}

// close gives the batcher's memory back; p is the panic that ended it, or nil.
// What a panic has left does not go back to the pool.
func (f *batcher) close(p any, stack func() []byte) {
	f.r.streams.Release(f.space.principal, f.space.held)
	if p == nil {
		f.r.put(f.space)
		return
	}
	f.r.release(f.space)
	f.r.opts.Log.Error("connection failed", "peer", f.peer, "panic", p, "stack", string(stack()))
	f.r.count.add(func(s *Stats) { s.Panics++ })
	f.fail()
}

// fail counts what a panic has left in the batch.
func (f *batcher) fail() {
	if f.due {
		f.due = false
		f.r.count.batch(f.space, 0, f.space.batch.Records)
	}
}

func (f *batcher) warn(msg string, args ...any) {
	f.r.logSome(slog.LevelWarn, msg, append([]any{"peer", f.peer}, args...)...)
}
