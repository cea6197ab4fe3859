package shard_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/rollwaytest"
	"github.com/rollway/rollway/shard"
)

// The times of writes in Stats are those that the destination took.
func TestStatsOfWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := small
		o.StallAfter = time.Hour
		w, dst := open(t, o)
		if s := w.Stats(); s.Flushes != 0 || s.FlushMean != 0 || s.FlushP95 != 0 || s.FlushP99 != 0 || s.FlushMax != 0 {
			t.Errorf("before the first write: Stats %+v", s)
		}
		var sum time.Duration
		for _, part := range []struct { // the longest first, the shortest last
			writes int
			take   time.Duration
		}{{1, 1600 * time.Millisecond}, {2, 400 * time.Millisecond}, {12, 80 * time.Millisecond}, {85, 20 * time.Millisecond}, {100, 10 * time.Millisecond}} {
			for range part.writes {
				dst.Next(rollwaytest.Fault{Delay: part.take, Take: 1 << 30})
				log(t, w, "record")
				if err := w.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
				sum += part.take
			}
		}
		s := w.Stats()
		if s.Flushes != 200 || s.FlushMean != sum/200 || s.FlushMax != 1600*time.Millisecond {
			t.Errorf("%d writes, %v on average, %v at most; want 200, %v, 1.6s", s.Flushes, s.FlushMean, s.FlushMax, sum/200)
		}
		eighth := func(name string, got, want time.Duration) {
			t.Helper()
			if got < want || got > want+want/8 {
				t.Errorf("%s is %v, want %v to an eighth", name, got, want)
			}
		}
		eighth("FlushP95", s.FlushP95, 80*time.Millisecond)
		eighth("FlushP99", s.FlushP99, 400*time.Millisecond)
	})
}

// OldestAge is that of the record that waits longest, wherever it is.
func TestStatsOfAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := shard.Options{BufferSize: 256 << 10, Shards: 1, TermsPerShard: 4, FlushInterval: time.Second, StallAfter: time.Hour}
		w, dst := open(t, o)
		age := func(want time.Duration) {
			t.Helper()
			if s := w.Stats(); s.OldestAge != want {
				t.Fatalf("OldestAge is %v, want %v; Stats %+v", s.OldestAge, want, s)
			}
		}
		time.Sleep(time.Hour)
		age(0)
		for range 4 { // in other buffers each time
			dst.Stall()
			log(t, w, "one")
			age(0)
			time.Sleep(700 * time.Millisecond)
			log(t, w, "in the same buffer")
			age(700 * time.Millisecond)
			time.Sleep(2 * time.Second) // it is inside a write
			age(2700 * time.Millisecond)
			log(t, w, "in another")
			time.Sleep(3 * time.Second)
			age(5700 * time.Millisecond)
			dst.Heal()
			if err := w.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			age(0)
		}
		time.Sleep(time.Minute)
		log(t, w, "later")
		time.Sleep(300 * time.Millisecond)
		age(300 * time.Millisecond)
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		age(0)
	})
}
