package remote_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
)

const (
	producers = 4
	perEach   = 3000
)

// progress counts lines, for others to wait until there are enough.
type progress struct {
	mu    sync.Mutex
	more  *sync.Cond
	lines int // guarded by mu
}

func newProgress() *progress {
	p := new(progress)
	p.more = sync.NewCond(&p.mu)
	return p
}

func (p *progress) add(lines int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines += lines
	p.more.Broadcast()
}

func (p *progress) reaches(lines int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.lines < lines {
		p.more.Wait()
	}
}

// produceTo lets each of the producers write its lines from to to-1, a few at a
// time.
func produceTo(t *testing.T, w io.Writer, from, to int, written *progress) {
	t.Helper()
	var wg sync.WaitGroup
	for p := range producers {
		wg.Go(func() {
			for seq := from; seq < to; {
				var b strings.Builder
				first := seq
				for range 1 + seq%5 {
					if seq < to {
						fmt.Fprintf(&b, `{"msg":"line","attrs":{"producer":%d,"seq":%d}}`+"\n", p, seq)
						seq++
					}
				}
				if _, err := io.WriteString(w, b.String()); err != nil {
					t.Errorf("Write = %v", err)
					seq = to
				}
				written.add(seq - first)
			}
		})
	}
	wg.Wait()
}

// produce lets the producers write all their lines in rounds. Amid each it calls
// disturb.
func produce(t *testing.T, w io.Writer, disturb func()) {
	t.Helper()
	const rounds = 10
	for round := range rounds {
		var work sync.WaitGroup
		written := newProgress()
		work.Go(func() { produceTo(t, w, round*perEach/rounds, (round+1)*perEach/rounds, written) })
		written.reaches(producers * perEach / rounds / 2)
		disturb()
		work.Wait()
	}
}

type place struct{ producer, seq int }

// inOrder wants whole lines, and each producer's numbers to rise within data;
// a line that comes again, with all those after it, begins a new run if again
// is true. It adds what it finds to seen.
func inOrder(t *testing.T, data []byte, again bool, seen map[place]int) {
	t.Helper()
	last := map[int]int{}
	for line := range bytes.Lines(data) {
		var l struct{ Attrs struct{ Producer, Seq int } }
		if err := json.Unmarshal(line, &l); err != nil {
			t.Errorf("torn line %q: %v", line, err)
			continue
		}
		p, seq := l.Attrs.Producer, l.Attrs.Seq
		if prev, ok := last[p]; ok && seq != prev+1 && !(again && seq <= prev && seen[place{p, seq}] > 0) {
			t.Errorf("producer %d: line %d after line %d", p, seq, prev)
		}
		last[p] = seq
		seen[place{p, seq}]++
	}
}

func wantAll(t *testing.T, seen map[place]int) (extra int) {
	t.Helper()
	for p := range producers {
		first, missing := 0, 0
		for seq := range perEach {
			if seen[place{p, seq}] == 0 {
				if missing++; missing == 1 {
					first = seq
				}
			}
			extra += max(0, seen[place{p, seq}]-1)
		}
		if missing > 0 {
			t.Errorf("producer %d: %d lines are missing, line %d is the first", p, missing, first)
		}
	}
	return extra
}
