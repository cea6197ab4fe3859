package rollway

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/line"
)

// arrivals is a plain writer that notes when its lines come.
type arrivals struct {
	mu    sync.Mutex
	lines []string
	at    []time.Time
}

func (a *arrivals) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lines, a.at = append(a.lines, string(p)), append(a.at, time.Now())
	return len(p), nil
}

// hung is a plain writer that nothing comes back from.
type hung struct {
	arrivals
	release chan struct{} // closed when it is mended
}

func (h *hung) Write(p []byte) (int, error) {
	<-h.release
	return h.arrivals.Write(p)
}

// tank is a line.TryWriter with room or without. For no room it waits, or else
// drops.
type tank struct {
	arrivals
	room    chan struct{} // closed when there is room
	bound   time.Duration // how long it waits for room; less than 0: for ever
	dropped int           // guarded by mu
}

func (t *tank) Write([]byte) (int, error) { panic("Write called where WriteLevel exists") }

func (t *tank) TryWriteLevel(_ slog.Level, p []byte) error {
	select {
	case <-t.room:
		_, err := t.arrivals.Write(p)
		return err
	default:
	}
	if t.bound == 0 {
		return line.ErrFull
	}
	return line.ErrWouldWait
}

func (t *tank) WriteLevel(_ slog.Level, p []byte) (int, error) {
	late := (<-chan time.Time)(nil)
	if t.bound >= 0 {
		late = time.After(t.bound)
	}
	select {
	case <-t.room:
		return t.arrivals.Write(p)
	case <-late:
		t.mu.Lock()
		defer t.mu.Unlock()
		t.dropped++
		return len(p), nil
	}
}

func (t *tank) Flush(ctx context.Context) error {
	select {
	case <-t.room:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("7 %w: %w", line.ErrPending, ctx.Err())
	}
}

// foreign is a line.LevelWriter that cannot be asked.
type foreign struct{ arrivals }

func (f *foreign) WriteLevel(_ slog.Level, p []byte) (int, error) { return f.arrivals.Write(p) }

func opened() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// stuckWriters are the ways of being stuck. Each returns the writer and what
// mends it.
var stuckWriters = map[string]func() (io.Writer, func()){
	"a plain writer hangs": func() (io.Writer, func()) {
		w := &hung{release: make(chan struct{})}
		return w, func() { close(w.release) }
	},
	"a buffer is full and waits for ever": func() (io.Writer, func()) {
		w := &tank{room: make(chan struct{}), bound: -1}
		return w, func() { close(w.room) }
	},
	"a buffer is full and waits a while": func() (io.Writer, func()) {
		w := &tank{room: make(chan struct{}), bound: 100 * time.Millisecond}
		return w, func() { close(w.room) }
	},
	"a buffer is full and drops": func() (io.Writer, func()) {
		w := &tank{room: make(chan struct{})}
		return w, func() { close(w.room) }
	},
}

// TestNoOutputHoldsUpAnother: with one output stuck, in any place of the list,
// with the encoder of the others or another, the others get every line in order
// and at once. Excepted is the line whose call hangs in a plain writer itself:
// the plain writers after that do not get it, nor do those that cannot be asked
// whether they would wait.
func TestNoOutputHoldsUpAnother(t *testing.T) {
	for name, stuck := range stuckWriters {
		for place := range 4 {
			for _, enc := range []Encoder{JSON{}, Logfmt{}} {
				t.Run(fmt.Sprintf("%s/place %d/%T", name, place, enc), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { testOneStuck(t, stuck, place, enc) })
				})
			}
		}
	}
}

func testOneStuck(t *testing.T, stuck func() (io.Writer, func()), place int, enc Encoder) {
	w, mend := stuck()
	_, isPlain := w.(*hung)
	direct, buffered, other := &arrivals{}, &tank{room: opened()}, &foreign{}
	outputs := []Output{{Writer: direct}, {Writer: buffered}, {Writer: other, Encoder: Logfmt{}}}
	outputs = append(outputs[:place:place], append([]Output{{Name: "stuck", Writer: w, Encoder: enc}}, outputs[place:]...)...)
	l := mustNew(t, Options{Outputs: outputs, Caller: LevelOff, OnError: func(error) {}})

	const goroutines, each = 3, 20
	var called [goroutines + 1]int // by each
	var wg sync.WaitGroup
	log := func(g, seq int) {
		called[g] = seq
		l.Info(t.Context(), fmt.Sprintf("line/%d/%d/%d", g, seq, time.Now().UnixNano()))
	}
	wg.Go(func() { log(0, 1) }) // the call that hangs where anything does
	synctest.Wait()
	for g := 1; g <= goroutines; g++ {
		wg.Go(func() {
			for seq := 1; seq <= each; seq++ {
				log(g, seq)
			}
		})
	}
	time.Sleep(time.Minute)
	synctest.Wait()

	total := 0
	for _, n := range called {
		total += n
	}
	for i, o := range outputs {
		stats := l.Stats().Outputs[i]
		if err := stats.Err(); err != nil {
			t.Errorf("%s: %v", stats.Name, err)
		}
		var a *arrivals
		switch w := o.Writer.(type) {
		case *arrivals:
			a = w
		case *foreign:
			a = &w.arrivals
		case *tank:
			a = &w.arrivals
		}
		if o.Name == "stuck" {
			continue
		}
		want := called
		if isPlain && a != &buffered.arrivals && (a != direct || place == 0) {
			want[0] = 0 // the exception: the call hangs before it gets there
		}
		checkArrivals(t, stats.Name, a, want[:])
		if n := uint64(total - called[0] + want[0]); stats.Accepted != n || stats.Written != n {
			t.Errorf("%+v of %d lines", stats, n)
		}
	}
	mend()
	wg.Wait()
	if s := l.Stats().Outputs[place]; isPlain && (s.Accepted != uint64(total) || s.Dropped.Full != goroutines*each || s.Pending != 0 || s.Err() != nil) {
		t.Errorf("stuck: %+v of %d lines", s, total)
	}
}

// checkArrivals checks that each goroutine's lines came in order, as many as it
// logged, at the time of the call.
func checkArrivals(t *testing.T, name string, a *arrivals, want []int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	next := make([]int, len(want))
	for i, text := range a.lines {
		var g, seq int
		var ns int64
		_, text, _ = strings.Cut(text, "line/")
		if _, err := fmt.Sscanf(text, "%d/%d/%d", &g, &seq, &ns); err != nil {
			t.Fatalf("%s: %q: %v", name, text, err)
		}
		if next[g]++; seq != next[g] {
			t.Errorf("%s: goroutine %d: line %d where %d was due", name, g, seq, next[g])
		}
		if late := a.at[i].UnixNano() - ns; late != 0 {
			t.Errorf("%s: line %d/%d came after %v", name, g, seq, time.Duration(late))
		}
	}
	if fmt.Sprint(next) != fmt.Sprint(want) {
		t.Errorf("%s: got %v lines of the goroutines, want %v", name, next, want)
	}
}

// TestWaitsAreAtTheSameTime: of several outputs that have to be waited for each
// gets the line when it can take it, not after the others.
func TestWaitsAreAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		never := &tank{room: make(chan struct{}), bound: -1}
		soon := &tank{room: make(chan struct{}), bound: time.Second}
		busy := &hung{release: make(chan struct{})}
		var own foreign
		l := mustNew(t, Options{Outputs: []Output{{Writer: never}, {Writer: busy, Level: slog.LevelInfo}, {Writer: soon}, {Writer: &own}}})
		var wg sync.WaitGroup
		wg.Go(func() { l.Info(t.Context(), "is in the plain writer") })
		synctest.Wait()
		start := time.Now()
		time.AfterFunc(30*time.Millisecond, func() { close(soon.room) })
		time.AfterFunc(50*time.Millisecond, func() { close(busy.release) })
		wg.Go(func() { l.Info(t.Context(), "the line") })
		time.Sleep(time.Minute)
		for _, c := range []struct {
			name string
			a    *arrivals
			want time.Duration
		}{{"foreign", &own.arrivals, 0}, {"soon", &soon.arrivals, 30 * time.Millisecond}, {"busy", &busy.arrivals, 50 * time.Millisecond}} {
			took := time.Duration(-1)
			c.a.mu.Lock()
			for i, text := range c.a.lines {
				if strings.Contains(text, "the line") {
					took = c.a.at[i].Sub(start)
				}
			}
			c.a.mu.Unlock()
			if took != c.want {
				t.Errorf("%s got the line after %v, want %v", c.name, took, c.want)
			}
		}
		close(never.room)
		wg.Wait()
		for _, s := range l.Stats().Outputs {
			if s.Ledger != (line.Ledger{Accepted: 2, Written: 2}) {
				t.Errorf("%+v", s)
			}
		}
	})
}
