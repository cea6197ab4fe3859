package slab_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rollway/rollway/rollwaytest"
	"github.com/rollway/rollway/slab"
)

// tracked is one producer of a stress test. Its lines are "producer seq pad".
type tracked struct {
	accepted int // lines given to Write before it returned os.ErrClosed
}

// follow wants whole lines at dst, in order for each producer, none twice. It
// returns the next seq of each producer.
func follow(t *testing.T, dst *rollwaytest.Destination) map[int]int {
	t.Helper()
	next := make(map[int]int)
	got, _ := lines(dst)
	for i, l := range got {
		var p, seq int
		pad := ""
		if n, err := fmt.Sscanf(l, "%d %d %s", &p, &seq, &pad); n < 2 || strings.Trim(pad, "p") != "" {
			t.Fatalf("line %d is torn or mixed: %q (%v)", i+1, l, err)
		}
		if seq < next[p] {
			t.Fatalf("line %d: seq %d of producer %d after %d", i+1, seq, p, next[p]-1)
		}
		next[p] = seq + 1
	}
	return next
}

// announced wants the notices at dst to add up to what was dropped.
func announced(t *testing.T, dst *rollwaytest.Destination, s slab.Stats) {
	t.Helper()
	sum, n := uint64(0), uint64(0)
	for _, l := range dst.Lines() {
		if !isNotice(l) {
			continue
		}
		var rec struct{ Attrs struct{ Dropped uint64 } }
		if err := json.Unmarshal([]byte(l), &rec); err != nil {
			t.Errorf("notice %q: %v", l, err)
		}
		sum += rec.Attrs.Dropped
		n++
	}
	if sum != s.Dropped.Total() || n != s.Notices {
		t.Errorf("%d notices announce %d lines, the account says %d and %d", n, sum, s.Notices, s.Dropped.Total())
	}
}

// TestStressClose closes the Writer at a random moment amid writes, again and
// again, also with a deadline that is too short.
func TestStressClose(t *testing.T) { roads(t, testStressClose) }

func testStressClose(t *testing.T, on front) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(5, 6))
	for round := range 60 {
		full := slab.Policy(round % 3)
		o := slab.Options{SlabSize: 256, SlabCount: on.slabs(3), Full: full, FlushInterval: time.Millisecond, CloseTimeout: time.Minute}
		short := round%5 == 0
		if short {
			o.CloseTimeout = time.Microsecond
		}
		w, dst := on.open(t, o)
		dst.Always(rollwaytest.Fault{Delay: time.Duration(rng.IntN(20)) * time.Microsecond, Take: 1 << 20})
		done := make([]tracked, 8)
		enough, many := make(chan struct{}), int64(1+rng.IntN(4000))
		var taken atomic.Int64
		var wg sync.WaitGroup
		for p := range done {
			wg.Go(func() {
				for seq := 0; ; seq++ {
					l := fmt.Sprintf("%d %d pp\n", p, seq)
					if _, err := w.Write([]byte(l)); errors.Is(err, os.ErrClosed) {
						return
					} else if err != nil {
						t.Errorf("Write: %v", err)
						return
					}
					done[p].accepted++
					if taken.Add(1) == many {
						close(enough)
					}
				}
			})
		}
		<-enough
		err := w.Close()
		wg.Wait()
		if err != nil && !short {
			t.Fatalf("Close: %v", err)
		}
		for w.Stats().Pending > 0 || w.Stats().SlabsFree < w.Stats().Slabs {
			time.Sleep(10 * time.Microsecond) // a write that outlived the deadline
		}
		accepted := 0
		next := follow(t, dst)
		for p := range done {
			accepted += done[p].accepted
			if full == slab.Block && !short && next[p] != done[p].accepted {
				t.Fatalf("round %d: producer %d: %d lines accepted, the last one delivered is %d", round, p, done[p].accepted, next[p]-1)
			}
		}
		settled(t, w, dst, accepted)
		if got := w.Stats().Rejected; got != uint64(len(done)) {
			t.Errorf("round %d: %d lines rejected, want %d", round, got, len(done))
		}
	}
}

func TestWriteDoesNotAllocate(t *testing.T) { fronts(t, testWriteDoesNotAllocate) }

func testWriteDoesNotAllocate(t *testing.T, on front) {
	p := append(bytes.Repeat([]byte{'x'}, 255), '\n')
	for name, write := range map[string]func(*slab.Writer){
		"Write":                   func(w *slab.Writer) { w.Write(p) },
		"Write without a newline": func(w *slab.Writer) { w.Write(p[:255]) },
		"WriteLevel":              func(w *slab.Writer) { w.WriteLevel(slog.LevelWarn, p) },
		"TryWriteLevel":           func(w *slab.Writer) { w.TryWriteLevel(slog.LevelWarn, p) },
	} {
		// Slabs enough for all calls, or a producer that waits may need its
		// place in the queue allocated.
		w, err := on.New(writerFunc(func(p []byte) (int, error) { return len(p), nil }), slab.Options{SlabCount: 128})
		if err != nil {
			t.Fatal(err)
		}
		// All calls in one run, so that a rare allocation shows. Those of the
		// goroutine that passes the 40 slabs on are counted as well; the runtime
		// may allocate a few records for goroutines that block.
		const n, ofRuntime = 10_000, 8
		least := math.Inf(1)
		for tries := 0; tries < 10 && least > ofRuntime; tries++ { // what runs beside may allocate now and then
			least = min(least, testing.AllocsPerRun(1, func() {
				for range n {
					write(w)
				}
			}))
		}
		if least > ofRuntime {
			t.Errorf("%d calls of %s allocate %v times, want none", n, name, least)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
