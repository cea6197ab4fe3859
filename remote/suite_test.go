package remote_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/remote"
	"github.com/rollway/rollway/rollwaytest"
	"github.com/rollway/rollway/slab"
)

// A Writer keeps the contract of a line writer over every scheme. It buffers nothing, so
// the rules about lines that are accepted while the destination stalls or fails are for
// a slab.Writer before it.
func TestLineWriter(t *testing.T) {
	t.Parallel()
	eachPeer(t, func(t *testing.T, kind *anyPeer) {
		subject := rollwaytest.Subject{Slow: true, Open: func(t *testing.T) *rollwaytest.Instance {
			peer := kind.start(t)
			peer.up()
			w := open(t, peer.url, peer.options)
			return &rollwaytest.Instance{
				Writer: w,
				Delivered: func() []byte {
					// Written is with the system; the peer may be a little behind.
					written := w.Stats().Written
					eventually(t, "the peer has read what was written", func() bool {
						return uint64(bytes.Count(peer.lines(), []byte("\n"))) >= written
					})
					return peer.lines()
				},
				Ledger: func() rollwaytest.Ledger { return ledger(w) },
			}
		}}
		switch {
		case strings.HasPrefix(kind.url, "journald"):
			subject.LongLine = 2 << 20
		case kind.gram:
			subject.LongLine = 60_000
		}
		rollwaytest.TestLineWriter(t, subject)
	})
}

func openSlab(t testing.TB, dst *remote.Writer) *slab.Writer {
	t.Helper()
	w, err := slab.New(dst, slab.Options{Full: slab.Block, FlushInterval: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func slabLedger(w *slab.Writer) rollwaytest.Ledger {
	s := w.Stats()
	return rollwaytest.Ledger{Ledger: s.Ledger}
}
