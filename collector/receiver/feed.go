package receiver

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/rollway/rollway/collector/pool"
)

// Waits between attempts to store when the store is full, or to grow when the
// budget is used up.
const (
	firstWait = 10 * time.Millisecond
	maxWait   = time.Second
)

// feed is what connections and sockets for datagrams have in common: memory,
// a share of the budget, and a batch that waits while the store is full. It is
// owned by one goroutine.
type feed struct {
	r        *Receiver
	ctx      context.Context // its end is the end of reading
	work     *work
	peer     string // for the log
	receiver string // what the protocol is called

	spare int   // bytes that lines may take up uncounted; 0: as goes with the buffer
	lines int   // bytes that lines may take up now
	extra int64 // bytes taken from the budget until the batch is stored
	due   bool  // what is in the batch is not counted
}

// chunk prepares what a protocol is given.
func (f *feed) chunk(data []byte, peer netip.AddrPort, received time.Time) *Chunk {
	w := f.work
	f.due = true // and still the case after a panic
	w.policy = f.r.backend.Policy()
	w.enrich(peer.Addr())
	if w.batch.Held() == 0 {
		f.lines = f.free()
		w.batch.Within(f, f.lines)
	}
	w.chunk = Chunk{Data: data, Received: received, Peer: peer, Norm: w.norm, Batch: &w.batch, Reply: w.answer[:0], feed: f}
	return &w.chunk
}

// free is how many bytes of lines belong to the feed's buffer.
func (f *feed) free() int {
	if f.spare > 0 {
		return f.spare
	}
	return 2 * cap(f.work.buf)
}

// Grow implements normalize.Room.
func (f *feed) Grow(n int) bool {
	more := int64(n - f.lines)
	if !f.await(f.work.held + more) {
		return false
	}
	f.extra += more
	f.lines = n
	return true
}

// errOverflow is why a batch is not stored that was refused room.
var errOverflow = errors.New("there is no memory for the lines of what has arrived together")

// store stores the batch and empties it, waiting as long as the store is full.
func (f *feed) store() error {
	b := &f.work.batch
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
	var err error
	switch {
	case b.Overflowed():
		err = errOverflow
	case b.Records > 0 || b.DroppedTotal > 0 && f.work.options.Key != "": // see endpoint.handle
		err = f.storeWaiting()
	}
	stored, failed := b.Records, 0
	if err != nil {
		if !errors.Is(err, ErrNotSynced) {
			stored, failed = 0, b.Records
		}
		if f.r.logged.may() {
			f.r.opts.Log.Error("store events", "peer", f.peer, "events", b.Records, "error", err)
		}
	}
	f.r.count.events(f.work, stored, failed)
	f.due = false
	f.r.bury(f.work, f.receiver)
	b.Reset()
	f.work.options, f.work.stored = StoreOptions{}, Stored{}
	if cap(b.Lines) > 2*f.free() { // more than a connection that waits is worth
		b.Lines = nil
	}
	f.give(f.extra)
	f.extra = 0
	return err
}

func (f *feed) storeWaiting() error {
	pool.CheckText(f.work.batch.Lines)
	ctx := context.WithoutCancel(f.ctx)
	done := f.ctx.Done()
	var giveUp <-chan time.Time
	for wait := firstWait; ; wait = min(2*wait, maxWait) {
		err := f.r.store(ctx, f.work)
		if err == nil || !errors.Is(err, ErrFull) {
			return err
		}
		f.r.count.add(func(s *Stats) { s.StoreRetries++ })
		f.warn("store is full, the sender waits", "error", err)
		select {
		case <-time.After(wait):
		case <-done:
			done = nil
			giveUp = time.After(f.r.opts.DrainTimeout)
		case <-giveUp:
			return err
		}
	}
}

// starve is how long a connection waits for memory at most.
const starve = 5 * time.Minute

// await raises what the feed holds of its share and of the budget to n bytes,
// waiting for as long as a sender may be silent, unless there are never as many.
func (f *feed) await(n int64) bool {
	end := time.Now().Add(min(f.r.opts.IdleTimeout, starve))
	for wait := firstWait; !f.take(n); wait = min(2*wait, maxWait) {
		if n > f.r.streams.limit || time.Now().After(end) {
			f.warn("no memory is left in the budget, the connection is closed")
			return false
		}
		select {
		case <-time.After(wait):
		case <-f.ctx.Done():
			return false
		}
	}
	return true
}

func (f *feed) take(n int64) bool {
	more := n - f.work.held
	if more <= 0 {
		return true
	}
	if !f.r.streams.take(more) {
		return false
	}
	if !f.r.take(f.work, n) {
		f.r.streams.give(more)
		return false
	}
	return true
}

// give gives n bytes of what the feed holds back.
func (f *feed) give(n int64) {
	f.r.streams.give(n)
	f.r.budget.give(n)
	f.work.held -= n
}

// close gives the feed's memory back; p is the panic that ended it, or nil.
// What a panic left behind does not go back to the pool.
func (f *feed) close(p any, stack func() []byte) {
	f.r.streams.give(f.work.held)
	if p == nil {
		f.r.put(f.work)
		return
	}
	f.r.release(f.work)
	f.r.opts.Log.Error("connection failed", "peer", f.peer, "panic", p, "stack", string(stack()))
	f.r.count.add(func(s *Stats) { s.Panics++ })
	f.fail()
}

// fail counts what a panic has left in the batch.
func (f *feed) fail() {
	if f.due {
		f.due = false
		f.r.count.events(f.work, 0, f.work.batch.Records)
	}
}

func (f *feed) warn(msg string, args ...any) {
	if f.r.logged.may() {
		f.r.opts.Log.Warn(msg, append([]any{"peer", f.peer}, args...)...)
	}
}
