package remote_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rollway/rollway/remote"
	"github.com/rollway/rollway/rollwaytest"
)

// A keyedPeer stores requests with the same Idempotency-Key once, as a collector
// does.
type keyedPeer struct {
	*home

	mu       sync.Mutex
	refuse   http.HandlerFunc // answers instead, if not nil
	stalled  chan struct{}    // requests wait for it or their end, and then fail
	poison   string           // a body with it is answered with code
	code     int
	latency  time.Duration // after which a request is answered
	most     int           // requests at a time
	now      int           // requests
	keys     map[string]string
	taken    bytes.Buffer
	repeated int
	requests []arrival
}

type arrival struct {
	when      time.Time
	key, body string
}

// newKeyedPeer returns a peer that is down.
func newKeyedPeer(t testing.TB) *keyedPeer {
	p := &keyedPeer{keys: map[string]string{}}
	p.home = newHome(t, p)
	return p
}

func (p *keyedPeer) url() string { return "http://" + p.addr + "/" }

// answer lets f answer requests instead; nil takes that back.
func (p *keyedPeer) answer(f http.HandlerFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = f
}

func (p *keyedPeer) stall() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stalled = make(chan struct{})
}

func (p *keyedPeer) fail() { p.answer(status(http.StatusServiceUnavailable, "")) }

func (p *keyedPeer) heal() {
	p.answer(nil)
	p.release()
}

// release lets the requests that are stalled fail.
func (p *keyedPeer) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stalled != nil {
		close(p.stalled)
		p.stalled = nil
	}
}

func (p *keyedPeer) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	key := r.Header.Get("Idempotency-Key")
	p.mu.Lock()
	stalled := p.stalled
	p.requests = append(p.requests, arrival{time.Now(), key, string(data)})
	p.mu.Unlock()
	if stalled != nil {
		select {
		case <-stalled:
		case <-r.Context().Done():
		}
		rw.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.latency > 0 { // the lines are taken at once, and the answer is late
		p.now++
		p.most = max(p.most, p.now)
		defer func() {
			p.mu.Unlock()
			select {
			case <-time.After(p.latency):
			case <-r.Context().Done():
			}
			p.mu.Lock()
			p.now--
		}()
	}
	if p.refuse != nil {
		p.refuse(rw, r)
		return
	}
	if p.poison != "" && bytes.Contains(data, []byte(p.poison)) {
		http.Error(rw, "blocked", p.code)
		return
	}
	switch was, ok := p.keys[key]; {
	case !ok:
		p.keys[key] = string(data)
		p.taken.Write(data)
	case was != string(data):
		p.t.Errorf("key %s for %.100q and %.100q", key, was, data)
	default:
		p.repeated++
	}
}

func (p *keyedPeer) bytes() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return bytes.Clone(p.taken.Bytes())
}

func (p *keyedPeer) seen() []arrival {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]arrival(nil), p.requests...)
}

func (p *keyedPeer) want(t testing.TB, lines string) {
	t.Helper()
	if got := string(p.bytes()); got != lines {
		t.Errorf("the peer took %d bytes %.300q, want %d bytes %.300q", len(got), got, len(lines), lines)
	}
}

// spillTo is Options.Spill with a folder of its own.
func spillTo(t testing.TB) remote.Spill { return remote.Spill{Dir: t.TempDir()} }

func flush(t testing.TB, w *remote.Writer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := w.Flush(ctx); err != nil {
		t.Fatalf("Flush = %v", err)
	}
}

// balanced wants the ledger to close.
func balanced(t testing.TB, w *remote.Writer) remote.Stats {
	t.Helper()
	ledger(w).Check(t)
	return w.Stats()
}

// A leaver is a Writer whose lines on disk count as dropped when it is closed:
// the suite knows of no next Writer that delivers them.
type leaver struct {
	*remote.Writer
	closed atomic.Bool
}

func (l *leaver) Close() error {
	err := l.Writer.Close()
	l.closed.Store(true)
	return err
}

func (l *leaver) Shutdown(ctx context.Context) error {
	err := l.Writer.Shutdown(ctx)
	l.closed.Store(true)
	return err
}

func (l *leaver) ledger() rollwaytest.Ledger {
	closed := l.closed.Load()
	s := l.Stats()
	got := rollwaytest.Ledger{Ledger: s.Ledger}
	if closed {
		got.Pending -= s.Spill.Lines
		got.Dropped.Refused += s.Spill.Lines
	}
	return got
}
