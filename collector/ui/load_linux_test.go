package ui_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/ui/uitest"
	"github.com/rollway/rollway/internal/testkit"
)

// The page under load: lines a second, and for how long.
const liveRate, liveFor = 5000, time.Minute

// TestLiveLoad shows 5,000 lines a second for a minute: frames come in time, no task of the
// page is long, and the tab stays small.
func TestLiveLoad(t *testing.T) {
	testkit.Nightly(t, testkit.Bench, "a minute of 5,000 lines a second")
	browser, at := uitest.Start(t), started(t)
	tab := open(t, browser, at+"/ui/#/live")
	tab.Until(`document.querySelector('.dot.live')`)
	end := tab.Smooth(browser)
	const batches = 20 // a second
	tick := time.NewTicker(time.Second / batches)
	defer tick.Stop()
	for i := range int(liveFor/time.Second) * batches {
		<-tick.C
		send(t, at, numbered(i*liveRate/batches, liveRate/batches)...)
	}
	t.Logf("%d lines/s for %v; the page says %q", liveRate, liveFor, tab.Text(".toolbar .grow"))
	end()
}

// TestPostToPixels measures how long a line takes from a sender's POST until it is drawn.
func TestPostToPixels(t *testing.T) {
	testkit.Nightly(t, testkit.Bench, "it measures times")
	at := started(t)
	tab := open(t, uitest.Start(t), at+"/ui/#/live")
	tab.Until(`document.querySelector('.dot.live')`)
	tab.Eval(`void (() => { window.drawn = {}
		const look = () => { const n = [...document.querySelectorAll('.row-msg')].pop()?.innerText; if (n && !drawn[n]) drawn[n] = Date.now(); requestAnimationFrame(look) }
		look() })()`, nil)
	var took []time.Duration
	for i := range 100 {
		began := time.Now()
		send(t, at, numbered(i, 1)...)
		name := fmt.Sprintf("order %d", i)
		tab.Until(fmt.Sprintf("drawn[%q]", name))
		var ms int64
		tab.Eval(fmt.Sprintf("drawn[%q]", name), &ms)
		took = append(took, time.UnixMilli(ms).Sub(began))
	}
	if p := percentile(took, 95); p > 200*time.Millisecond {
		t.Errorf("95 of 100 lines are drawn within %v, want 200 ms", p)
	} else {
		t.Logf("95 of 100 lines are drawn within %v", p)
	}
}
