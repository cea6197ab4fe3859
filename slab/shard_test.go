package slab

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/rollwaytest"
)

// Moments that goroutines meet by chance, made by hand: these tests know the
// inside of a Writer.

// sharded starts a Writer of two shards in front of a Destination.
func sharded(t *testing.T, o Options) (*Writer, *rollwaytest.Destination) {
	t.Helper()
	o.Shards = 2
	dst := new(rollwaytest.Destination)
	o.Full = Block
	w, err := New(dst, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w, dst
}

// in writes a line to shard i as one of its goroutines does.
func in(w *Writer, i int, line string) {
	w.writeShardedSlow(&w.shards[i], []byte(line), unknown)
}

// A goroutine of shard 0 that comes into a slab which has become shard 1's
// meanwhile has its line queued before it goes on: the line that it writes next
// is after it, though that one's shard is sealed at once and the other one's not
// for a minute.
func TestLineInAStaleSlabKeepsItsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := sharded(t, Options{FlushInterval: time.Minute})
		mine, other := &w.shards[0], &w.shards[1]
		give := func(stale *term, line string) {
			t.Helper()
			start, ok := stale.reserve(len(line))
			if !ok {
				t.Fatalf("no place for %q", line)
			}
			w.putSharded(mine, stale, start, []byte(line))
		}
		in(w, 1, "other\n")
		give(other.cur.Load(), "first, in a stale slab\n")
		in(w, 0, "second\n")
		w.queueStale(mine.cur.Load())
		synctest.Wait()
		if got, want := string(dst.Bytes()), "other\nfirst, in a stale slab\nsecond\n"; got != want {
			t.Errorf("written: %q, want %q", got, want)
		}
	})
}

// What is queued is written when everybody has copied, and not before; and so
// Shutdown counts it, also one whose time is over.
func TestSlabWaitsForItsWriters(t *testing.T) {
	for name, end := range map[string]func(*Writer) error{
		"Flush": func(w *Writer) error { return w.Flush(t.Context()) },
		"Close": (*Writer).Close,
		"Shutdown, too late": func(w *Writer) error {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			return w.Shutdown(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, dst := sharded(t, Options{FlushInterval: time.Minute, CloseTimeout: time.Minute})
			in(w, 0, "one\n")
			slab := w.shards[0].cur.Load()
			start, ok := slab.reserve(4)
			if !ok {
				t.Fatal("no place")
			}
			ended := make(chan error, 1)
			go func() { ended <- end(w) }()
			for slab.fits(1) {
				runtime.Gosched()
			}
			if dst.Calls() > 0 || len(ended) > 0 {
				t.Errorf("%d calls of the destination, %d of %s have returned", dst.Calls(), len(ended), name)
			}
			slab.put(start, []byte("two\n"))
			err := <-ended
			for w.Stats().Pending > 0 {
				runtime.Gosched()
			}
			s := w.Stats()
			if got := string(dst.Bytes()); got != "one\ntwo\n" && !(err != nil && got == "") {
				t.Errorf("the destination has %q", got)
			}
			if s.Accepted != 2 || s.Written+s.Dropped.Shutdown != 2 || s.Written > 0 != (dst.Calls() > 0) {
				t.Errorf("Stats = %+v", s)
			}
		})
	}
}

// A free slab is for the shard of the first in line, and all who wait for that
// shard get their places before anybody else does.
func TestFreeSlabIsForTheFirstInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := sharded(t, Options{SlabSize: 64, SlabCount: 4, FlushInterval: time.Hour})
		dst.Stall()
		given := 0
		give := func(shard int) {
			line := fmt.Sprintf("%02d %s\n", given, strings.Repeat("x", 26))
			given++
			go in(w, shard, line)
			synctest.Wait()
		}
		for range 8 { // two in a slab
			give(0)
		}
		// Nothing is free: both shards wait. Each gets one slab at a time,
		// with room for two of the three that wait for it.
		for _, shard := range []int{0, 0, 1, 0, 1, 1} {
			give(shard)
		}
		if n := w.Stats().Waiting; n != 6 {
			t.Fatalf("%d are waiting, want 6", n)
		}
		dst.Heal()
		synctest.Wait()
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range dst.Lines() {
			got = append(got, l[:2])
		}
		if s := strings.Join(got, " "); s != "00 01 02 03 04 05 06 07 08 09 10 12 11 13" {
			t.Errorf("written in the order %s", s)
		}
	})
}
