package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway"
	"github.com/rollway/rollway/internal/testkit"
	"github.com/rollway/rollway/remote"
	"github.com/rollway/rollway/slab"
)

// TestCollectorAway: a service that ships as README shows logs on while the
// collector is away, and when it is back every line is there, once and in order.
// No line was dropped and no call has lasted longer than slab's bound.
func TestCollectorAway(t *testing.T) {
	const perSecond = 2000
	away := time.Duration(testkit.Rounds(t, testkit.Kills, 3, 60)) * time.Second
	data := filepath.Join(t.TempDir(), "data")
	d := serveDaemon(t, "-data", data)
	peer, err := remote.Open(d.addr+"/api/logs", remote.Options{Spill: remote.Spill{Dir: filepath.Join(t.TempDir(), "spill")}})
	if err != nil {
		t.Fatal(err)
	}
	lines, err := slab.New(peer, slab.Options{SlabSize: 1 << 20}) // room for all lines of the short run: a busy machine is slow to empty them
	if err != nil {
		t.Fatal(err)
	}
	log, err := rollway.New(rollway.Options{
		Outputs:      []rollway.Output{{Writer: lines, Encoder: rollway.JSON{}}},
		CloseTimeout: time.Minute, // of a busy machine
	})
	if err != nil {
		t.Fatal(err)
	}

	logged, longest := 0, time.Duration(0)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	logFor := func(d time.Duration) {
		for begin, before := time.Now(), logged; time.Since(begin) < d; <-tick.C {
			for due := before + int(time.Since(begin).Seconds()*perSecond); logged < due; logged++ {
				called := time.Now()
				log.Info(context.Background(), "charged", slog.Int("seq", logged), slog.String("pad", strings.Repeat("p", 100)))
				longest = max(longest, time.Since(called))
			}
		}
	}
	logFor(time.Second)
	d.end(t)
	logFor(away)
	d = serveDaemon(t, "-data", data, "-listen", strings.TrimPrefix(d.addr, "http://"))
	logFor(time.Second)
	err = log.Close()

	ledger, shipped := lines.Stats().Ledger, peer.Stats()
	if err := errors.Join(err, ledger.Err()); err != nil || ledger.Written != uint64(logged) || shipped.Written != uint64(logged) {
		t.Errorf("%d lines logged, slab: %+v, remote: %+v, %v", logged, ledger, shipped, err)
	}
	if bound := 100*time.Millisecond + 500*time.Millisecond; longest > bound { // on a busy machine
		t.Errorf("a call took %v", longest)
	}
	for i, stored := range d.query(t) {
		var e struct{ Attrs struct{ Seq json.Number } }
		if err := json.Unmarshal([]byte(stored), &e); err != nil || e.Attrs.Seq.String() != strconv.Itoa(i) {
			t.Fatalf("line %d is %s, %v", i, stored, err)
		}
		logged--
	}
	if logged != 0 {
		t.Errorf("%d lines are missing", logged)
	}
	t.Logf("collector away for %v: %d lines, the longest call %v", away, ledger.Written, longest)
}
