package slab_test

import (
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/slab"
)

// What the notices in the stream say was dropped, by level and reason, is what
// Stats say.
func TestNoticesSayLevels(t *testing.T) {
	for seed := range uint64(8) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			w, dst := open(t, slab.Options{
				SlabSize: 256, SlabCount: 4 + rng.IntN(8), OversizeLimit: 300, Full: slab.Drop,
				Levels: slab.Levels{ErrorWait: time.Duration(rng.IntN(3)) * 10 * time.Millisecond},
				Retry:  slab.Retry{GiveUp: 2 * time.Second},
			})
			for i := range 600 {
				if i%100 == 50 {
					dst.Fail(nil)
				}
				size := 10 + rng.IntN(60)
				if rng.IntN(50) == 0 {
					size = 400
				}
				line := []byte(numbered(i, size) + "\n")
				if level := rng.IntN(6); level < 5 {
					w.WriteLevel(slog.Level(4*level-6), line) // DEBUG-2 to ERROR+2
				} else {
					w.Write(line)
				}
				switch {
				case i%100 == 80:
					time.Sleep(5 * time.Second)
				case i%100 == 90:
					dst.Heal()
				case rng.IntN(10) == 0:
					time.Sleep(time.Duration(rng.IntN(200)) * time.Millisecond)
				}
			}
			dst.Heal()
			time.Sleep(time.Minute)
			if err := w.Close(); err == nil {
				t.Error("Close = nil, and lines were given up")
			}
			_, notices := lines(dst)
			type key struct{ reason, level string }
			said := map[key]uint64{}
			for _, n := range notices {
				var notice struct {
					Attrs struct {
						Reason  string
						Dropped uint64
						Levels  map[string]uint64
					}
				}
				if err := json.Unmarshal([]byte("{"+n), &notice); err != nil {
					t.Fatalf("%v: %s", err, n)
				}
				unknown := notice.Attrs.Dropped
				for level, n := range notice.Attrs.Levels {
					said[key{notice.Attrs.Reason, level}] += n
					unknown -= n
				}
				said[key{notice.Attrs.Reason, "unknown"}] += unknown
			}
			d := w.Stats().DroppedByLevel
			for level, lost := range map[string]slab.Drops{"DEBUG": d.Debug, "INFO": d.Info, "WARN": d.Warn, "ERROR": d.Error, "unknown": d.Unknown} {
				for reason, n := range map[string]uint64{
					"buffer full": lost.BufferFull, "buffer full for too long": lost.Timeout, "line too large": lost.TooLarge, "destination failed": lost.GaveUp,
				} {
					if got := said[key{reason, level}]; got != n {
						t.Errorf("%d %s lines said to be dropped for %s, want %d", got, level, reason, n)
					}
				}
			}
			if d.Debug.Total() == 0 || d.Unknown.Total() == 0 || w.Stats().Dropped.GaveUp == 0 {
				t.Errorf("too little was dropped for this to say much: %+v", d)
			}
		})
	}
}
