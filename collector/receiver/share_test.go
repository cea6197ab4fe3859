package receiver

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/rollway/rollway/collector/normalize"
)

// TCP connections that stall in the middle of long lines cannot take what
// HTTP needs: they share half of the budget, and one peer gets two thirds of that.
func TestTCPLeavesHalfOfTheBudget(t *testing.T) {
	const event = 64 << 10
	r := newReceiver(t, &memory{}, Options{Limits: normalize.Limits{MaxEventBytes: event}, MaxUnpacked: 256 << 10, InFlight: 1 << 20})
	addr, _ := serveTCP(t, r)
	url := newServer(t, r).URL
	for range 12 { // 12 × 2 × 64 KiB are more than all of it
		conn := dial(t, addr)
		go conn.Write([]byte(`{"msg":"` + strings.Repeat("x", event-10)))
	}
	waitFor(t, "the connections' share to be used up", func() bool { return r.Stats().InFlight > 256<<10 })
	body := `{"msg":"` + strings.Repeat("y", 50<<10) + `"}`
	for range 20 {
		if rep := post(t, url, strings.NewReader(body)); rep.Code != 200 {
			t.Fatalf("HTTP is answered %d while TCP connections stall", rep.Code)
		}
	}
	if got := r.Stats().InFlight; got > 1<<20 {
		t.Fatalf("%d bytes in flight", got)
	}
}

// lockedText is a log's text.
type lockedText struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// The log names a peer as people write it.
func TestPeerInLog(t *testing.T) {
	log := &lockedText{}
	r := newReceiver(t, &memory{}, Options{Log: slog.New(slog.NewJSONHandler(log, nil))})
	addr, _ := serveTCP(t, r)
	conn := dial(t, addr)
	if _, err := conn.Write([]byte("not JSON\n")); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "a line in the log", func() bool { return log.String() != "" })
	if want := `"peer":"` + conn.LocalAddr().String() + `"`; !strings.Contains(log.String(), want) {
		t.Errorf("the log holds %s, want %s in it", log, want)
	}
}

// A connection that gets no memory, as requests have taken all of it, holds nothing
// of what connections share while it waits.
func TestNoShareWithoutMemory(t *testing.T) {
	r := newReceiver(t, &memory{}, Options{})
	f, other := &batcher{r: r, space: r.get()}, r.opts.Admission.Named("other", 1)
	if !r.memory.Acquire(other, r.opts.InFlight-100) {
		t.Fatal("the budget is not empty")
	}
	if f.acquire(1000) || r.streams.Used() != 0 || f.space.held != 0 {
		t.Errorf("%d bytes of the share, %d of the budget", r.streams.Used(), f.space.held)
	}
	r.memory.Release(other, r.opts.InFlight-100)
	if !f.acquire(1000) || r.streams.Used() != 1000 || f.space.held != 1000 {
		t.Errorf("%d bytes of the share, %d of the budget", r.streams.Used(), f.space.held)
	}
	f.close(nil, nil)
}
