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
	c := r.join(side{}, side{}, time.Now())
	p := &c.up
	p.gathering.low = true  // no socket to set it at
	r.sleeping.Add(1 << 20) // nobody sleeps
	begin := func() {
		t.Helper()
		eventually(t, func() bool {
			for range 2 * gatherRounds {
				p.gather(200, false)
			}
			return p.gathering.on
		}, func() string { return "small pieces do not gather" })
	}
	begin()
	for range gatherRounds {
		p.gathering.waited = true
		if p.gather(200, false); !p.gathering.on {
			t.Fatal("a piece that was waited for ends the gathering")
		}
	}
	p.gather(gatherBelow, false)
	if !p.gathering.on {
		t.Error("a large piece ends the gathering")
	}
	c.down.bytes.Add(1)
	p.gathering.low = false
	if p.gather(200, false); p.gathering.on {
		t.Error("an answer does not end the gathering")
	}
	begin()
	for range gatherRounds + 1 {
		p.gathering.waited = true
		p.gather(200, false)
	}
	if p.gathering.on {
		t.Error("pieces that are all waited for gather")
	}
	for range 4 * gatherRounds {
		p.gather(200, true)
	}
	if p.gathering.on {
		t.Error("pieces that fill a small buffer gather")
	}
}
