package shard

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/rollwaytest"
)

// Moments that goroutines meet by chance, made by hand: these tests know the
// inside of a Writer.

// halted returns a Writer of two shards whose run was not started: nothing
// happens by itself.
func halted(t *testing.T) *Writer {
	t.Helper()
	o, err := Options{BufferSize: 128 << 10, Shards: 2, FlushInterval: time.Second}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	w := build(new(rollwaytest.Destination), o)
	for range 4 {
		w.terms = append(w.terms, sealedTerm(make([]byte, w.termSize)))
	}
	w.free = append(w.free, w.terms...)
	for i := range w.shards {
		w.shards[i].cur.Store(w.full)
		w.rotate(&w.shards[i])
	}
	w.io.tick = w.opts.FlushInterval / 8
	return w
}

// place takes n bytes of t.
func place(t *testing.T, in *term, n uint64) (start uint64) {
	t.Helper()
	start, ok := in.reserve(n)
	if !ok {
		t.Fatalf("no place of %d bytes", n)
	}
	return start
}

// A goroutine of shard 0 that comes into a term which has become shard 1's
// meanwhile has its record queued before it goes on: the record that it gives
// next is behind it, though that one's shard is sent off at once and the other
// one's not for a minute.
func TestRecordInAStaleTermKeepsItsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dst := new(rollwaytest.Destination)
		w, err := New(dst, Options{BufferSize: 128 << 10, Shards: 2, FlushInterval: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		mine, other := &w.shards[0], &w.shards[1]
		give := func(in *term, line string) {
			n := uint64(len(line))
			w.fill(mine, in, place(t, in, n), n, []byte(line), false, 1)
		}
		give(other.cur.Load(), "first in a stale term\n")
		next := mine.cur.Load()
		give(next, "second\n")
		w.sendOff(mine, next)
		synctest.Wait()
		stale := other.cur.Load()
		give(stale, "third, beside others\n") // not the first record in it
		give(mine.cur.Load(), "fourth\n")
		w.sendOff(mine, mine.cur.Load())
		synctest.Wait()
		if got, want := string(dst.Bytes()), "first in a stale term\nsecond\nthird, beside others\nfourth\n"; got != want {
			t.Errorf("written: %q, want %q", got, want)
		}
	})
}

// A record that has its place and is not copied yet is no reason to send its
// buffer off: its age begins when it is first seen, or copied.
func TestAgeOfARecordBeingCopied(t *testing.T) {
	w := halted(t)
	s := &w.shards[0]
	in := s.cur.Load()
	start := place(t, in, 5)
	now := time.Now()
	if !w.sendOffDue(now) || s.cur.Load() != in || len(w.queue) > 0 {
		t.Fatalf("sent off at an age of nothing: %d in the queue", len(w.queue))
	}
	w.fill(s, in, start, 5, []byte("line\n"), false, 1)
	if w.sendOffDue(now.Add(w.opts.FlushInterval - 2*w.io.tick)); s.cur.Load() != in {
		t.Error("sent off two ticks early")
	}
	if w.sendOffDue(now.Add(w.opts.FlushInterval)); s.cur.Load() == in || len(w.queue) != 1 {
		t.Errorf("not sent off in time: %d in the queue", len(w.queue))
	}
}

// A free buffer is for the shard of the first in line: nobody else takes it, be
// it that a record came to another shard just then or that a buffer there is old.
func TestFreeBufferIsForTheFirstInLine(t *testing.T) {
	w := halted(t)
	first, other := &w.shards[0], &w.shards[1]
	for _, s := range []*shard{first, other, first, other} { // both are full, nothing is free
		s.cur.Load().seal()
		w.rotate(s)
	}
	me := &waiter{shard: first, n: 5, turn: make(chan struct{}, 1)}
	if open, closed := w.standInLine(me); open || closed {
		t.Fatal("there is room")
	}
	w.mu.Lock()
	w.releaseLocked(w.queue[0])
	w.queue = w.queue[1:]
	w.mu.Unlock()
	if w.rotate(other) || other.cur.Load() != w.full || len(w.free) != 1 {
		t.Fatal("another shard took the buffer")
	}
	if len(me.turn) != 1 {
		t.Error("the first in line was not told")
	}
	if !w.rotate(first) || me.state.Load() != placed || me.term != first.cur.Load() || len(w.waiters) > 0 {
		t.Errorf("the first in line has no place: state %d", me.state.Load())
	}
}

// A Flush that comes behind a Sync is not told of that one's error.
func TestFlushBehindASync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dst := new(rollwaytest.Destination)
		w, err := New(dst, Options{BufferSize: 64 << 10, Shards: 1, FlushInterval: time.Minute, CloseTimeout: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		dst.FailSync(rollwaytest.ErrFault)
		dst.Next(rollwaytest.Fault{Delay: time.Minute, Take: 1 << 20})
		if err := w.LogBytes([]byte("one")); err != nil {
			t.Fatal(err)
		}
		results := [3]chan error{}
		for i, call := range []func() error{w.Sync, func() error { return w.Flush(t.Context()) }, w.Sync} {
			results[i] = make(chan error, 1)
			go func() { results[i] <- call() }()
			synctest.Wait() // in that order
		}
		for i, wrong := range []bool{true, false, true} {
			if err := <-results[i]; (err != nil) != wrong {
				t.Errorf("call %d: %v", i, err)
			}
		}
		if got := dst.Bytes(); !bytes.Equal(got, []byte("one\n")) {
			t.Errorf("written: %q", got)
		}
	})
}

// A Sync whose time was up, and that left when run had just seen it, leaves the
// destination alone and the Flush behind it its answer.
func TestSyncThatHasJustLeft(t *testing.T) {
	w := halted(t)
	w.io.watch = time.AfterFunc(time.Hour, w.stalled)
	defer w.io.watch.Stop()
	dst := w.dst.(*rollwaytest.Destination)
	dst.FailSync(rollwaytest.ErrFault)
	flush := &barrier{ctx: t.Context(), done: make(chan error, 1)}
	w.barrier = append(w.barrier, flush)
	w.syncBarriers()
	select {
	case err := <-flush.done:
		if err != nil {
			t.Errorf("Flush = %v", err)
		}
	default:
		t.Error("Flush has no answer")
	}
	if n := dst.Syncs(); n != 0 || w.tally.inside != "" {
		t.Errorf("%d calls of the destination's Sync, inside of %q", n, w.tally.inside)
	}
}

// The age of a record is what has passed since New, whatever clock is set meanwhile.
func TestAgeIsNotTheClocks(t *testing.T) {
	w := halted(t)
	if err := w.LogBytes([]byte("record")); err != nil {
		t.Fatal(err)
	}
	ages := 0
	for _, term := range w.terms {
		if since := term.since.Load(); since != 0 {
			ages++
			if d := time.Duration(since); d < 0 || d > time.Hour {
				t.Errorf("it came %v after New", d)
			}
		}
	}
	if ages != 1 {
		t.Errorf("%d terms have an age", ages)
	}
}
