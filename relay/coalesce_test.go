package relay

import (
	"testing"
	"time"
)

// Small pieces in quick succession gather, until somebody answers or they come
// no more.
func TestGathering(t *testing.T) {
	noLeak(t)
	r, err := New(Options{To: []string{"tcp://127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c := r.join(peer{}, peer{}, time.Now())
	p := &c.up
	p.coalescing.low = true // no socket to set it at
	r.sleeping.Add(1 << 20) // nobody sleeps
	begin := func() {
		t.Helper()
		eventually(t, func() bool {
			for range 2 * coalesceRounds {
				p.coalesce(200, false)
			}
			return p.coalescing.on
		}, func() string { return "small pieces do not gather" })
	}
	begin()
	for range coalesceRounds {
		p.coalescing.waited = true
		if p.coalesce(200, false); !p.coalescing.on {
			t.Fatal("a piece that was waited for ends the gathering")
		}
	}
	p.coalesce(smallRound, false)
	if !p.coalescing.on {
		t.Error("a large piece ends the gathering")
	}
	c.down.bytes.Add(1)
	p.coalescing.low = false
	if p.coalesce(200, false); p.coalescing.on {
		t.Error("an answer does not end the gathering")
	}
	begin()
	for range coalesceRounds + 1 {
		p.coalescing.waited = true
		p.coalesce(200, false)
	}
	if p.coalescing.on {
		t.Error("pieces that are all waited for gather")
	}
	for range 4 * coalesceRounds {
		p.coalesce(200, true)
	}
	if p.coalescing.on {
		t.Error("pieces that fill a small buffer gather")
	}
}
