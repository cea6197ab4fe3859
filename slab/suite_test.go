package slab_test

import (
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
				}
			}})
		})
	}
}
