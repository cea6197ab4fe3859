package integration

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/line"
)

var (
	seedFlag   = flag.Uint64("seed", 0, "run TestStress and TestLogger with this seed")
	stressRuns = flag.Int("stress.runs", 2, "how many seeds TestStress and TestLogger run of each combination")
)

// eachSeed runs f for a few seeds, in virtual time if asked to. A failure says
// how to repeat it.
func eachSeed(t *testing.T, virtual bool, f func(t *testing.T, seed uint64)) {
	for i := range *stressRuns {
		seed := rand.Uint64()>>1<<1 | uint64(i&1) // Close comes amid the odd ones
		if *seedFlag != 0 {
			seed = *seedFlag
		}
		run := func(t *testing.T) { f(t, seed) }
		ok := t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			if virtual {
				synctest.Test(t, run)
			} else {
				run(t)
			}
		})
		if !ok {
			t.Fatalf("repeat with: go test -run '%s' -seed %d ./internal/integration", t.Name(), seed)
		}
		if *seedFlag != 0 {
			return
		}
	}
}

// TestStress follows every line of random runs over each combination: many
// producers, a gate that stalls, fails and takes parts, Flush, Sync and Stats
// meanwhile, Close amid half of the runs.
func TestStress(t *testing.T) {
	for _, c := range combinations() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			eachSeed(t, c.virtual, func(t *testing.T, seed uint64) { stress(t, c, seed) })
		})
	}
}

const producers, linesEach = 12, 300

func stress(t *testing.T, c combination, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0))
	r := c.open(t)
	closeAmid := seed&1 == 1
	for _, g := range r.gates {
		g.trip(1, 0, rng.IntN(10))
	}

	var stop, closing atomic.Bool
	var others, writers sync.WaitGroup
	others.Go(func() { faults(rand.New(rand.NewPCG(seed, 1)), r, &stop) })
	others.Go(func() {
		rng := rand.New(rand.NewPCG(seed, 2))
		for !stop.Load() {
			var err error
			if rng.IntN(2) == 0 {
				err = r.Sync()
			} else {
				err = r.Flush(t.Context())
			}
			switch {
			case err == nil:
			case errors.Is(err, os.ErrClosed) && closing.Load():
			case c.failover && strings.Contains(err.Error(), "has not returned"):
				// The gate stalls, or a busy machine's file does for longer than a
				// failover is given; nobody knows what the end has.
			case strings.Contains(c.name, "with a spill") && errors.Is(err, line.ErrPending):
				// Sync does not wait for a peer that is away: the lines are on disk.
			default:
				t.Errorf("barrier: %v", err)
			}
			time.Sleep(time.Duration(rng.IntN(5000)) * time.Microsecond)
		}
	})
	others.Go(func() {
		for !stop.Load() {
			r.ledger().Check(t)
			for _, e := range r.ends {
				e.ledger().Check(t)
			}
			time.Sleep(200 * time.Microsecond)
		}
	})

	taken := make([]account, producers)
	for p := range producers {
		writers.Go(func() { taken[p] = produce(t, r.head, p, seed) })
	}
	if closeAmid {
		time.Sleep(time.Duration(rng.IntN(20_000)) * time.Microsecond)
	} else {
		writers.Wait()
	}
	closing.Store(true)
	if err := r.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	writers.Wait()
	stop.Store(true)
	others.Wait()
	r.settle(t, c, taken)
}

// faults trips the gates, and lets the peer go away where a writer minds that,
// until it is told to stop or has done it often enough.
func faults(rng *rand.Rand, r *road, stop *atomic.Bool) {
	for range 50 {
		for _, g := range r.gates {
			switch rng.IntN(4) {
			case 0:
				g.trip(rng.IntN(20), rng.IntN(3), 0)
			case 1:
				g.trip(0, 0, 0, 0, 0)
			case 2:
				g.stall()
			}
		}
		for _, e := range r.ends {
			if e.away != nil && rng.IntN(3) == 0 {
				e.away(true)
			}
		}
		time.Sleep(time.Duration(rng.IntN(2000)) * time.Microsecond)
		for _, g := range r.gates {
			g.heal()
		}
		for _, e := range r.ends {
			if e.away != nil {
				e.away(false)
			}
		}
		if stop.Load() {
			return
		}
		time.Sleep(time.Duration(rng.IntN(1000)) * time.Microsecond)
	}
}

// account is what became of one producer's lines as far as it was told.
type account struct {
	accepted int // its first so many
	rejected int
}

// produce writes the lines of producer p, one or a few in each call.
func produce(t *testing.T, h *head, p int, seed uint64) (a account) {
	rng := rand.New(rand.NewPCG(seed, 100+uint64(p)))
	leveled, _ := h.Writer.(interface {
		WriteLevel(slog.Level, []byte) (int, error)
	})
	var buf []byte
	for seq := 0; seq < linesEach; {
		buf = buf[:0]
		n := 1 + rng.IntN(4)
		for range n {
			size := rng.IntN(200)
			if rng.IntN(100) == 0 {
				size = rng.IntN(20_000)
			}
			buf = appendLine(buf, p, seq, size)
			seq++
		}
		lines := buf
		if rng.IntN(5) == 0 {
			lines = buf[:len(buf)-1] // the newline is added
		}
		var taken int
		var err error
		if leveled != nil && rng.IntN(2) == 0 {
			taken, err = leveled.WriteLevel(slog.Level(4*rng.IntN(4)-4), lines)
		} else {
			taken, err = h.Write(lines)
		}
		switch {
		case err == nil && taken == len(lines):
			a.accepted += n
		case errors.Is(err, os.ErrClosed):
			in := bytes.Count(lines[:taken], newline)
			if taken == len(lines) {
				in = n
			}
			a.accepted, a.rejected = a.accepted+in, a.rejected+n-in
			return a
		default:
			t.Errorf("Write of %d bytes = %d, %v", len(lines), taken, err)
			return a
		}
		for i := range buf {
			buf[i] = '!' // nobody keeps it
		}
		if rng.IntN(3) == 0 {
			time.Sleep(time.Duration(rng.IntN(1000)) * time.Microsecond)
		}
	}
	return a
}

// The parts of a line, with a producer, a seq and padding between them.
const (
	lineHead = `{"msg":"line","attrs":{"p":`
	lineSeq  = `,"s":`
	linePad  = `,"pad":"`
	lineTail = "\"}}\n"
)

func appendLine(b []byte, p, seq, pad int) []byte {
	b = strconv.AppendInt(append(b, lineHead...), int64(p), 10)
	b = strconv.AppendInt(append(b, lineSeq...), int64(seq), 10)
	b = append(b, linePad...)
	for range pad {
		b = append(b, byte('a'+seq%26))
	}
	return append(b, lineTail...)
}

// parseLine returns which line this is. It has to be whole and as it was written.
func parseLine(t *testing.T, line []byte) (at place) {
	t.Helper()
	rest, _ := strings.CutPrefix(string(line), lineHead)
	first, rest, _ := strings.Cut(rest, lineSeq)
	second, _, _ := strings.Cut(rest, linePad)
	var err1, err2 error
	at.producer, err1 = strconv.Atoi(first)
	at.seq, err2 = strconv.Atoi(second)
	if err1 != nil || err2 != nil || at.seq < 0 {
		t.Fatalf("not a line that was written: %.120q", line)
	}
	want := appendLine(make([]byte, 0, len(line)), at.producer, at.seq, 0)
	if pad := len(line) - len(want); pad > 0 {
		want = appendLine(want[:0], at.producer, at.seq, pad)
	}
	if !bytes.Equal(line, want) {
		t.Fatalf("torn or mixed: %.120q", line)
	}
	return at
}

// settle wants every line found once, whole and in order, and every account to
// say so.
func (r *road) settle(t *testing.T, c combination, taken []account) {
	t.Helper()
	found, accepted, rejected := map[place]bool{}, 0, 0
	var notices, announced, twice int
	for _, e := range r.ends {
		if err := e.Close(); err != nil {
			t.Errorf("Close of the end: %v", err)
		}
		b := e.delivered()
		here := map[place]bool{}
		n, extra, dropped := follow(t, b, here)
		notices, announced = notices+extra, announced+dropped
		for at := range here {
			if found[at] {
				twice++
			}
			found[at] = true
		}
		e.ledger().CheckSettled(t, n+extra, n+extra)
	}
	missing := 0
	for p, a := range taken {
		accepted, rejected = accepted+a.accepted, rejected+a.rejected
		for seq := range a.accepted {
			if !found[place{p, seq}] {
				missing++
			}
		}
	}
	if len(found) != accepted-missing {
		t.Errorf("%d lines found that were not accepted", len(found)-(accepted-missing))
	}
	if twice > 0 && !c.failover { // what a call was inside of when it was left goes to the failover as well
		t.Errorf("%d lines came twice", twice)
	}
	l := r.ledger()
	l.CheckSettled(t, accepted, len(found))
	if l.Dropped.Total() != uint64(missing) || announced != missing || missing > 0 && !c.drops {
		t.Errorf("%d lines are missing, %d counted as dropped, %d announced", missing, l.Dropped.Total(), announced)
	}
	if l.Rejected != uint64(rejected) {
		t.Errorf("ledger: %d lines rejected, want %d", l.Rejected, rejected)
	}
	if n := r.notices(); n != uint64(notices) {
		t.Errorf("%d notices written, %d found", n, notices)
	}
}

// place names a line.
type place struct{ producer, seq int }

// follow adds the lines of b to found. It wants each whole, none twice and those
// of one producer in order. It returns their number, that of notices, and how
// many lines these say were dropped.
func follow(t *testing.T, b []byte, found map[place]bool) (lines, notices, dropped int) {
	t.Helper()
	if len(b) > 0 && b[len(b)-1] != '\n' {
		t.Errorf("the last line is torn: %q", b[max(0, len(b)-80):])
	}
	next := map[int]int{}
	for line := range bytes.Lines(b) {
		if bytes.Contains(line, []byte(`"msg":"rollway: `)) {
			var notice struct{ Attrs struct{ Dropped int } }
			if err := json.Unmarshal(line, &notice); err != nil {
				t.Fatalf("notice %q: %v", line, err)
			}
			notices, dropped = notices+1, dropped+notice.Attrs.Dropped
			continue
		}
		at := parseLine(t, line)
		p, seq := at.producer, at.seq
		if found[at] {
			t.Fatalf("line %d of producer %d came twice", seq, p)
		}
		found[at] = true
		if seq < next[p] {
			t.Fatalf("producer %d: line %d comes after %d", p, seq, next[p]-1)
		}
		next[p] = seq + 1
		lines++
	}
	return lines, notices, dropped
}
