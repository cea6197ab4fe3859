package slab_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/rollway/rollway/line"
	"github.com/rollway/rollway/rollwaytest"
	"github.com/rollway/rollway/slab"
)

var (
	_ line.Writer    = (*slab.Writer)(nil)
	_ line.TryWriter = (*slab.Writer)(nil)
)

// open is front.open of what is for locked slabs alone.
func open(t *testing.T, o slab.Options) (*slab.Writer, *rollwaytest.Destination) {
	t.Helper()
	return front{}.open(t, o)
}

func ledger(w *slab.Writer) rollwaytest.Ledger {
	s := w.Stats()
	return rollwaytest.Ledger{Ledger: s.Ledger}
}

// instance is w, in the form f gives it, in front of dst.
func instance(w *slab.Writer, f line.Writer, dst *rollwaytest.Destination) *rollwaytest.Instance {
	return &rollwaytest.Instance{
		Writer:    f,
		Delivered: dst.Bytes,
		Ledger:    func() rollwaytest.Ledger { return ledger(w) },
		Stall:     dst.Stall,
		Fail:      func() { dst.Fail(nil) },
		Heal:      dst.Heal,
		Calls:     dst.Calls,

		Panic:    func() { dst.Always(rollwaytest.Fault{Panic: "bang"}) },
		FailSync: func() { dst.FailSync(rollwaytest.ErrFault) },
	}
}

// through is a Writer whose lines are all written through.
type through struct{ *slab.Writer }

func (w through) Write(p []byte) (int, error) { return w.WriteLevel(slog.LevelInfo, p) }

func (w through) WriteLevel(_ slog.Level, p []byte) (int, error) {
	return w.Writer.WriteLevel(slog.LevelError, p)
}

// trying is a Writer that is tried first.
type trying struct{ *slab.Writer }

func (w trying) Write(p []byte) (int, error) { return w.WriteLevel(slog.LevelInfo, p) }

func (w trying) WriteLevel(l slog.Level, p []byte) (int, error) {
	if len(p) == 0 || p[len(p)-1] != '\n' {
		return w.Writer.WriteLevel(l, p)
	}
	switch err := w.TryWriteLevel(l, p); err {
	case nil:
		return len(p), nil
	case line.ErrWouldWait, line.ErrFull:
		return w.Writer.WriteLevel(l, p)
	default:
		return 0, err
	}
}

// longestRule is the longest line of the contract's rules.
const longestRule = 128 << 10

func TestLineWriter(t *testing.T) { roads(t, testLineWriter) }

func testLineWriter(t *testing.T, on front) {
	for name, o := range map[string]slab.Options{
		"defaults":        {},
		"small slabs":     {SlabSize: 512, Full: slab.Block, FlushInterval: time.Millisecond},
		"tiny slabs":      {SlabSize: 64, SlabCount: 64, Full: slab.Block},
		"large slabs":     {SlabSize: 1 << 20, SlabCount: 32, Full: slab.Drop}, // room for all lines of a rule
		"long waits":      {SlabSize: 512, MaxWait: time.Minute},
		"written through": {WriteThrough: slog.LevelError, SlabSize: 512, Full: slab.Block},
		"tried first":     {SlabSize: 512, Full: slab.Block},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rollwaytest.TestLineWriter(t, rollwaytest.Subject{Virtual: true, Open: func(t *testing.T) *rollwaytest.Instance {
				w, dst := on.open(t, on.fit(o, longestRule))
				switch {
				case o.WriteThrough != nil:
					return instance(w, through{w}, dst)
				case name == "tried first":
					return instance(w, trying{w}, dst)
				}
				return instance(w, w, dst)
			}})
		})
	}
}

// TestLineWriterWithFailover runs the contract on the road to the failover,
// while the destination fails for ever.
func TestLineWriterWithFailover(t *testing.T) { roads(t, testLineWriterWithFailover) }

func testLineWriterWithFailover(t *testing.T, on front) {
	for name, fault := range map[string]rollwaytest.Fault{
		"fails":             {Err: rollwaytest.ErrFault},
		"panics":            {Panic: "for ever"},
		"ends its callers":  {Exit: true},
		"writes short":      {},
		"fails after hours": {Delay: 5 * time.Second},
	} {
		t.Run("a destination that "+name, func(t *testing.T) {
			t.Parallel()
			rollwaytest.TestLineWriter(t, rollwaytest.Subject{Virtual: true, Open: func(t *testing.T) *rollwaytest.Instance {
				t.Cleanup(func() { time.Sleep(2 * fault.Delay) }) // an abandoned call ends
				second := new(rollwaytest.Destination)
				w, first := on.open(t, on.fit(slab.Options{SlabSize: 1024, Full: slab.Block, Failover: second, MaxWait: 8 * time.Millisecond, KeepOpen: fault.Delay > 0}, longestRule))
				first.Always(fault)
				return instance(w, w, second)
			}})
		})
	}
}
