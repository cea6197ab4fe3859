package receive

import (
	"bytes"
	"context"
	"net"
	"time"

	"github.com/rollway/rollway/collector/normalize"
)

// Sizes of a connection's buffer: what it starts with, and what it grows to
// for speed; it grows further only for a longer line.
const (
	firstRead = 16 << 10
	fastRead  = 64 << 10
)

// Waits between attempts to store when the store is full, or to grow when the
// budget is used up.
const (
	firstWait = 10 * time.Millisecond
	maxWait   = time.Second
)

// stream is one TCP connection, owned by its goroutine.
type stream struct {
	r    *Receiver
	ctx  context.Context
	conn net.Conn
	work *work

	skipping bool // inside a line that is too long
	storing  bool // the batch is with the store
	started  bool // what was read shows that the peer sends lines
}

// serve reads until the connection or ctx ends.
func (s *stream) serve() {
	s.work.buf = nil // the pool's may be larger than a connection is worth
	if !s.grow(firstRead) {
		return
	}
	for {
		s.conn.SetReadDeadline(time.Now().Add(s.r.opts.IdleTimeout))
		if s.ctx.Err() != nil { // its deadline may have been overwritten
			s.finish()
			return
		}
		w := s.work
		used := len(w.buf)
		n, err := s.conn.Read(w.buf[used:cap(w.buf)])
		w.buf = w.buf[:used+n]
		s.r.count.add(func(s *Stats) { s.WireBytes += uint64(n); s.UnpackedBytes += uint64(n) })
		if n > 0 && !s.started {
			protocol, undecided := otherProtocol(w.buf)
			if protocol != "" {
				s.r.count.reject(normalize.ReasonSyntax)
				s.warn("the peer speaks " + protocol + ", this address takes lines of JSON")
				return
			}
			s.started = !undecided
		}
		full := len(w.buf) == cap(w.buf)
		if !s.lines() {
			return
		}
		if err != nil {
			s.finish()
			return
		}
		if !s.fit(full) {
			return
		}
	}
}

// tlsHandshake is the first byte of a TLS connection, and of no JSON.
const tlsHandshake = 0x16

// httpMethods are the beginnings of HTTP connections, and of no JSON.
var httpMethods = []string{"GET ", "HEAD ", "POST ", "PUT ", "OPTIONS ", "DELETE ", "PATCH ", "PRI "}

// otherProtocol names the protocol that a peer begins to speak if it is not
// lines; undecided tells that more bytes are needed to know. HTTP is refused
// because any web page can make a browser post to this address, and each line
// of the body would be taken.
func otherProtocol(begin []byte) (name string, undecided bool) {
	if begin[0] == tlsHandshake {
		return "TLS", false
	}
	for _, m := range httpMethods {
		n := min(len(m), len(begin))
		if string(begin[:n]) != m[:n] {
			continue
		}
		if n == len(m) {
			return "HTTP", false
		}
		undecided = true
	}
	return "", undecided
}

// lines stores the whole lines in the buffer and leaves the rest. It returns
// false if the connection is to be closed.
func (s *stream) lines() bool {
	w := s.work
	data := w.buf
	if s.skipping {
		i := bytes.IndexByte(data, '\n')
		if i < 0 {
			w.buf = w.buf[:0]
			return true
		}
		s.skipping = false
		data = data[i+1:]
	}
	now := time.Now()
	for {
		i := bytes.IndexByte(data, '\n')
		if i < 0 {
			break
		}
		s.line(data[:i], now)
		data = data[i+1:]
	}
	if !s.store() {
		return false
	}
	w.buf = w.buf[:copy(w.buf, data)]
	if len(w.buf) > s.maxLine() {
		s.r.count.reject(normalize.ReasonTooLarge)
		s.skipping = true
		w.buf = w.buf[:0]
	}
	return true
}

func (s *stream) maxLine() int { return s.r.opts.Limits.MaxEventBytes }

// line adds one line, without its end, to the batch.
func (s *stream) line(line []byte, now time.Time) {
	if len(line) > s.maxLine() {
		s.r.count.reject(normalize.ReasonTooLarge)
		return
	}
	s.work.norm.Line(&s.work.batch, line, now) // the error is in the batch
}

// finish stores a last line that has no end, if it is whole.
func (s *stream) finish() {
	w := s.work
	tail := bytes.TrimSpace(w.buf)
	if s.skipping || len(tail) == 0 {
		return
	}
	// Only an object or an array shows by itself that nothing is missing.
	whole := tail[0] == '{' || tail[0] == '['
	if !whole || w.norm.Line(&w.batch, tail, time.Now()) != nil {
		w.batch.Reset()
		s.r.count.reject(ReasonTorn)
		s.warn("the connection ended inside a line")
		return
	}
	s.store()
}

// store stores the batch and empties it, waiting as long as the store is full.
// It returns false if the connection is to be closed.
func (s *stream) store() bool {
	b := &s.work.batch
	if b.RejectedTotal > 0 {
		s.warn("events rejected", "count", b.RejectedTotal, "reason", b.Rejected[0].Reason, "detail", b.Rejected[0].Detail)
	}
	var err error
	if b.Records > 0 {
		s.storing = true // and still the case after a panic
		err = s.storeWaiting(b)
		s.storing = false
	}
	stored, failed := b.Records, 0
	if err != nil {
		if !s.r.opts.IsStored(err) {
			stored, failed = 0, b.Records
		}
		if s.r.logged.may() {
			s.r.opts.Log.Error("store events", "peer", s.conn.RemoteAddr().String(), "events", b.Records, "error", err)
		}
	}
	s.r.count.events(b, stored, failed)
	b.Reset()
	return err == nil
}

func (s *stream) storeWaiting(b *normalize.Batch) error {
	ctx := context.WithoutCancel(s.ctx)
	done := s.ctx.Done()
	var giveUp <-chan time.Time
	for wait := firstWait; ; wait = min(2*wait, maxWait) {
		err := s.r.opts.Store(ctx, b)
		if err == nil || !s.r.opts.IsFull(err) {
			return err
		}
		s.r.count.add(func(s *Stats) { s.StoreRetries++ })
		s.warn("store is full, the connection waits", "error", err)
		select {
		case <-time.After(wait):
		case <-done:
			done = nil
			giveUp = time.After(s.r.opts.DrainTimeout)
		case <-giveUp:
			return err
		}
	}
}

// fit gives the buffer room for the next read.
func (s *stream) fit(wasFull bool) bool {
	w := s.work
	size := cap(w.buf)
	switch {
	case len(w.buf) == size: // in the middle of a long line
		return s.grow(min(2*size, s.maxLine()+1))
	case wasFull && size < fastRead:
		return s.grow(min(2*size, fastRead))
	case size > fastRead && len(w.buf) <= fastRead/2:
		// The long line is over.
		small := make([]byte, len(w.buf), fastRead)
		copy(small, w.buf)
		w.buf = small
		s.r.streams.give(w.held - 2*fastRead)
		s.r.budget.give(w.held - 2*fastRead)
		w.held = 2 * fastRead
	}
	return true
}

// grow makes the buffer size bytes large, waiting for the budget as long as a
// sender may be silent.
func (s *stream) grow(size int) bool {
	w := s.work
	size = max(size, len(w.buf)+1)
	end := time.Now().Add(s.r.opts.IdleTimeout)
	for wait := firstWait; !s.take(2 * int64(size)); wait = min(2*wait, maxWait) {
		if time.Now().After(end) {
			s.warn("no memory is left in the budget, the connection is closed")
			s.finish()
			return false
		}
		select {
		case <-time.After(wait):
		case <-s.ctx.Done():
			s.finish()
			return false
		}
	}
	grown := make([]byte, len(w.buf), size)
	copy(grown, w.buf)
	w.buf = grown
	return true
}

// take raises what the connection holds of its share and of the budget to n
// bytes.
func (s *stream) take(n int64) bool {
	more := n - s.work.held
	if more <= 0 {
		return true
	}
	if !s.r.streams.take(more) {
		return false
	}
	if !s.r.take(s.work, n) {
		s.r.streams.give(more)
		return false
	}
	return true
}

func (s *stream) warn(msg string, args ...any) {
	if s.r.logged.may() {
		s.r.opts.Log.Warn(msg, append([]any{"peer", s.conn.RemoteAddr().String()}, args...)...)
	}
}
