package slab_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/rollway/rollway/rollwaytest"
	"github.com/rollway/rollway/slab"
)

// open starts a Writer in front of a new Destination, and stops it at the end
// of the test.
func open(t *testing.T, o slab.Options) (*slab.Writer, *rollwaytest.Destination) {
	t.Helper()
	dst := new(rollwaytest.Destination)
	w, err := slab.New(dst, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		dst.Heal()
		w.Close()
		if n := dst.Overlaps(); n > 0 {
			t.Errorf("%d calls of the destination came while a Write was under way", n)
		}
	})
	return w, dst
}

func ledger(w *slab.Writer) rollwaytest.Ledger {
	s := w.Stats()
	return rollwaytest.Ledger{
		Accepted: s.Accepted,
		Written:  s.Written,
		Dropped:  s.Dropped.Total(),
		Pending:  s.Pending,
		Rejected: s.Rejected,
	}
}

func TestLineWriter(t *testing.T) {
	retry := slab.Retry{Min: time.Millisecond, Max: 5 * time.Millisecond}
	for name, o := range map[string]slab.Options{
		"defaults":    {Retry: retry},
		"two slabs":   {SlabCount: 2, Retry: retry},
		"small slabs": {SlabSize: 512, FlushInterval: time.Millisecond, Retry: retry},
		"tiny slabs":  {SlabSize: 64, SlabCount: 64, OversizeLimit: 1 << 20, Retry: retry},
		"large slabs": {SlabSize: 1 << 20, SlabCount: 4, Full: slab.Drop, Retry: retry},
	} {
		o.CloseTimeout = time.Minute // for a busy machine
		t.Run(name, func(t *testing.T) {
			rollwaytest.TestLineWriter(t, rollwaytest.Subject{Open: func(t *testing.T) *rollwaytest.Instance {
				w, dst := open(t, o)
				return &rollwaytest.Instance{
					Writer:    w,
					Delivered: dst.Bytes,
					Ledger:    func() rollwaytest.Ledger { return ledger(w) },
					Stall:     dst.Stall,
					Fail:      func() { dst.Fail(nil) },
					Heal:      dst.Heal,
					Calls:     dst.Calls,

					Panic:    func() { dst.Always(rollwaytest.Fault{Panic: "bang"}) },
					FailSync: func() { dst.FailSync(rollwaytest.ErrFault) },
				}
			}})
		})
	}
}

// TestLineWriterWithFailover runs the contract on the road to the failover,
// while the destination fails for ever.
func TestLineWriterWithFailover(t *testing.T) {
	for name, fault := range map[string]rollwaytest.Fault{
		"fails":             {Err: rollwaytest.ErrFault},
		"panics":            {Panic: "for ever"},
		"ends its callers":  {Exit: true},
		"writes short":      {},
		"fails after hours": {Delay: 5 * time.Second},
	} {
		t.Run("a destination that "+name, func(t *testing.T) {
			// In virtual time a Sync that is not scheduled for a millisecond does not count as one that hangs.
			rollwaytest.TestLineWriter(t, rollwaytest.Subject{Virtual: true, Open: func(t *testing.T) *rollwaytest.Instance {
				t.Cleanup(func() { time.Sleep(2 * fault.Delay) }) // a call left behind ends
				second := new(rollwaytest.Destination)
				w, first := open(t, slab.Options{
					SlabSize: 1024, Failover: second,
					FailoverAfter: time.Millisecond, FailoverProbe: 10 * time.Millisecond,
					Retry: slab.Retry{Min: time.Millisecond, Max: 5 * time.Millisecond},
				})
				first.Always(fault)
				return &rollwaytest.Instance{
					Writer:    w,
					Delivered: second.Bytes,
					Ledger:    func() rollwaytest.Ledger { return ledger(w) },
					Stall:     second.Stall,
					Fail:      func() { second.Fail(nil) },
					Heal:      second.Heal,
					Calls:     second.Calls,

					Panic:    func() { second.Always(rollwaytest.Fault{Panic: "bang"}) },
					FailSync: func() { second.FailSync(rollwaytest.ErrFault) },
				}
			}})
		})
	}
}

// through is a Writer whose lines are all written through.
type through struct{ *slab.Writer }

func (w through) Write(p []byte) (int, error) { return w.WriteLevel(slog.LevelInfo, p) }

func (w through) WriteLevel(_ slog.Level, p []byte) (int, error) {
	return w.Writer.WriteLevel(slog.LevelError, p)
}

func TestLineWriterWithLevels(t *testing.T) {
	retry := slab.Retry{Min: time.Millisecond, Max: 5 * time.Millisecond}
	for name, o := range map[string]slab.Options{
		"written through":        {Retry: retry, Levels: slab.Levels{WriteThrough: slog.LevelError, WriteThroughTimeout: 20 * time.Millisecond}},
		"written through, small": {SlabSize: 64, SlabCount: 64, Retry: retry, Levels: slab.Levels{WriteThrough: slog.LevelError, WriteThroughTimeout: 20 * time.Millisecond}},
		"bounded waits":          {SlabSize: 512, Retry: retry, BlockTimeout: time.Minute},
		"waits under Drop":       {SlabSize: 512, Full: slab.Drop, Retry: retry, Levels: slab.Levels{ErrorWait: time.Minute}},
	} {
		o.CloseTimeout = time.Minute
		t.Run(name, func(t *testing.T) {
			rollwaytest.TestLineWriter(t, rollwaytest.Subject{Open: func(t *testing.T) *rollwaytest.Instance {
				w, dst := open(t, o)
				return &rollwaytest.Instance{
					Writer:    through{w},
					Delivered: dst.Bytes,
					Ledger:    func() rollwaytest.Ledger { return ledger(w) },
					Stall:     dst.Stall,
					Fail:      func() { dst.Fail(nil) },
					Heal:      dst.Heal,
					Calls:     dst.Calls,

					Panic:    func() { dst.Always(rollwaytest.Fault{Panic: "bang"}) },
					FailSync: func() { dst.FailSync(rollwaytest.ErrFault) },
				}
			}})
		})
	}
}
