package shard_test

import (
	"testing"
	"time"

	"github.com/rollway/rollway/rollwaytest"
	"github.com/rollway/rollway/shard"
)

// open starts a Writer in front of a new Destination, and stops it at the end
// of the test.
func open(t *testing.T, o shard.Options) (*shard.Writer, *rollwaytest.Destination) {
	t.Helper()
	dst := new(rollwaytest.Destination)
	w, err := shard.New(dst, o)
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

func ledger(w *shard.Writer) rollwaytest.Ledger {
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
	retry := shard.Retry{Min: time.Millisecond, Max: 5 * time.Millisecond}
	for name, o := range map[string]shard.Options{
		"one shard":   {BufferSize: 1 << 20, Shards: 1, FlushInterval: 5 * time.Millisecond, Retry: retry},
		"four shards": {BufferSize: 4 << 20, Shards: 4, FlushInterval: 5 * time.Millisecond, Retry: retry},
		"small terms": {BufferSize: 2 << 20, Shards: 16, TermsPerShard: 4, FlushInterval: time.Millisecond, Retry: retry},
	} {
		o.Full, o.CloseTimeout = shard.Block, time.Minute
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
