package slab_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/slab"
)

// reconnecting is a destination that begins a new stream after each failure,
// and therefore reports whole lines only, as remote.Writer does.
type reconnecting struct {
	rng     *rand.Rand
	streams []bytes.Buffer
}

func (d *reconnecting) Write(p []byte) (int, error) {
	if len(d.streams) == 0 {
		d.streams = append(d.streams, bytes.Buffer{})
	}
	s := &d.streams[len(d.streams)-1]
	if d.rng.IntN(3) > 0 {
		return s.Write(p)
	}
	n, _ := s.Write(p[:d.rng.IntN(len(p))]) // the peer may have seen this much
	d.streams = append(d.streams, bytes.Buffer{})
	return bytes.LastIndexByte(p[:n], '\n') + 1, syscall.ECONNRESET
}

func TestAfterAReconnectTheStreamBeginsWithAWholeLine(t *testing.T) {
	fronts(t, testAfterAReconnectTheStreamBeginsWithAWholeLine)
}

func testAfterAReconnectTheStreamBeginsWithAWholeLine(t *testing.T, on front) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			dst := &reconnecting{rng: rand.New(rand.NewPCG(seed, 7))}
			w, err := on.New(dst, slab.Options{SlabSize: 256, Full: slab.Block})
			if err != nil {
				t.Fatal(err)
			}
			const n = 200
			for i := range n {
				put(t, w, numbered(i, 10+i*7%60))
				if i%9 == 0 {
					time.Sleep(200 * time.Millisecond)
				}
			}
			if err := w.Shutdown(t.Context()); err != nil {
				t.Fatal(err)
			}
			whole := 0
			for i := range dst.streams {
				text := dst.streams[i].String()
				for l := range strings.Lines(text) {
					if !strings.HasSuffix(l, "\n") {
						break // the stream broke within it
					}
					if want := numbered(whole, 10+whole*7%60) + "\n"; l != want {
						t.Fatalf("seed %d, stream %d: line %q, want %q", seed, i, l, want)
					}
					whole++
				}
			}
			ledger(w).CheckSettled(t, n, whole)
		})
	}
}

func TestNoByteWaitsLongerThanFlushIntervalAtRandom(t *testing.T) {
	fronts(t, testNoByteWaitsLongerThanFlushIntervalAtRandom)
}

func testNoByteWaitsLongerThanFlushIntervalAtRandom(t *testing.T, on front) {
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 3))
			interval := time.Duration(1+rng.IntN(50)) * time.Millisecond
			pause := 1 + rng.IntN(3*int(interval))
			dst := &stamped{delay: time.Duration(rng.IntN(2) * rng.IntN(int(interval))), at: make(map[string]time.Time)}
			w, err := on.New(dst, slab.Options{FlushInterval: interval})
			if err != nil {
				t.Fatal(err)
			}
			written := make([]time.Time, 500)
			for i := range written {
				written[i] = time.Now()
				put(t, w, fmt.Sprint(i))
				time.Sleep(time.Duration(rng.IntN(pause)))
				if rng.IntN(50) == 0 {
					if err := w.Flush(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if rng.IntN(100) == 0 {
					time.Sleep(time.Duration(rng.IntN(20)) * interval)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			bound := interval + 2*dst.delay
			for i, at := range written {
				if age := dst.at[fmt.Sprint(i)].Sub(at); age > bound {
					t.Fatalf("seed %d: line %d was %v old when written, want up to %v", seed, i, age, bound)
				}
			}
		})
	}
}
