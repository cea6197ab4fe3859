package shard_test

import (
	"bytes"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/shard"
)

// A buffer is sent off by the record with which nine tenths of it are taken, if
// another is free: not before, and not only when it is full.
func TestSentOffAtNineTenths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const term, record = 64 << 10, 512
		o := small
		o.FlushInterval, o.Full = time.Minute, shard.Drop
		w, dst := open(t, o)
		line := append(bytes.Repeat([]byte("r"), record-1), '\n')
		fill := func() (n int) { // until something is written, or nearly no room is left
			for before := len(dst.Bytes()); len(dst.Bytes()) == before && n < term-record; n += record {
				if _, err := w.Write(line); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
			}
			return n
		}
		const mark = term * 9 / 10
		for range 3 {
			if n := fill(); n < mark-record || n > mark+record {
				t.Fatalf("sent off at %d of %d bytes, want about %d", n, term, mark)
			}
			if s := w.Stats(); s.Pending != 0 || s.TermsFree != 1 {
				t.Fatalf("Stats %+v", s)
			}
		}
		dst.Stall()
		for range mark/record + 1 { // held up in the write
			w.Write(line)
		}
		synctest.Wait()
		for range term / record { // no other buffer is free: this one is filled up
			w.Write(line)
		}
		if s := w.Stats(); s.Dropped.Total() > 0 || s.Pending != mark/record+1+term/record || s.TermsFree != 0 {
			t.Errorf("Stats %+v", s)
		}
		dst.Heal()
	})
}

// By default there are as many shards as the published rule gives for 25 threads
// a processor, and no fewer than two.
func TestDefaultShards(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for procs, want := range map[int]int{1: 2, 2: 4, 3: 8, 4: 8, 8: 16, 12: 32, 16: 32, 100: 32} {
		runtime.GOMAXPROCS(procs)
		w, err := shard.New(discard{}, shard.Options{BufferSize: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		if s := w.Stats(); len(s.Shards) != want || s.Terms != 2*want {
			t.Errorf("%d processors: %d shards with %d buffers, want %d with %d", procs, len(s.Shards), s.Terms, want, 2*want)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
}
