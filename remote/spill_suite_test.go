package remote_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/rollwaytest"
)

// With a folder to spill to, a Writer keeps the whole contract by itself, also
// while the peer stalls or is away, over every scheme that hears of it: Fail takes
// the peer away, when it has read what it was sent, and Heal brings it back.
func TestSpillLineWriterOverEveryScheme(t *testing.T) {
	t.Parallel()
	for name, start := range anyPeers {
		if strings.Contains(name, "udp") {
			continue // it is heard only after a line was lost
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of it is waiting
			rollwaytest.TestLineWriter(t, rollwaytest.Subject{LongLine: 60_000, Slow: true, Open: func(t *testing.T) *rollwaytest.Instance {
				peer := start(t)
				peer.up()
				o := peer.options
				o.Spill = spillTo(t)
				if peer.stall != nil && strings.Contains(t.Name(), "stall") { // the first Write to a peer that hangs lasts so long
					o.Timeout = 600 * time.Millisecond
				}
				w := &leaver{Writer: open(t, peer.url, o)}
				delivered := func() []byte {
					written := w.Stats().Written
					eventually(t, "the peer has read what was written", func() bool {
						return uint64(bytes.Count(peer.lines(), []byte("\n"))) >= written
					})
					return peer.lines()
				}
				away := false
				return &rollwaytest.Instance{
					Writer:    w,
					Delivered: delivered,
					Ledger:    w.ledger,
					Stall:     peer.stall,
					Fail: func() {
						delivered()
						peer.down()
						away = true
						if !peer.gram {
							eventually(t, "the Writer hears that the peer is away", func() bool { return peerGone(w.Writer) })
						}
					},
					Heal: func() {
						if away || peer.stall != nil {
							peer.up()
							away = false
						}
					},
				}
			}})
		})
	}
}
