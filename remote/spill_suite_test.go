package remote_test

import (
	"bytes"
	"crypto/tls"
	"testing"
	"time"

	"github.com/rollway/rollway/remote"
	"github.com/rollway/rollway/rollwaytest"
)

// With a folder to spill to, a Writer keeps the whole contract by itself, also
// while the peer stalls or fails.
func TestSpillLineWriter(t *testing.T) {
	t.Run("http", func(t *testing.T) {
		rollwaytest.TestLineWriter(t, rollwaytest.Subject{Open: func(t *testing.T) *rollwaytest.Instance {
			peer := newKeyedPeer(t)
			peer.up()
			w := &leaver{Writer: open(t, peer.url(), remote.Options{Spill: spillTo(t), RequestTimeout: 300 * time.Millisecond})}
			return &rollwaytest.Instance{
				Writer:    w,
				Delivered: peer.bytes,
				Ledger:    w.ledger,
				Stall:     peer.stall,
				Fail:      peer.fail,
				Heal:      peer.heal,
			}
		}})
	})
	streams(t, func(t *testing.T, scheme string, serverTLS *tls.Config, o remote.Options) {
		rollwaytest.TestLineWriter(t, rollwaytest.Subject{Open: func(t *testing.T) *rollwaytest.Instance {
			peer := startTCPPeer(t, anywhere(t, scheme), serverTLS, nil)
			o.Spill = spillTo(t)
			w := &leaver{Writer: open(t, scheme+"://"+peer.Addr().String(), o)}
			return &rollwaytest.Instance{
				Writer: w,
				Delivered: func() []byte {
					written := w.Stats().Written
					eventually(t, "the peer has read what was written", func() bool {
						return uint64(bytes.Count(peer.bytes(), []byte("\n"))) >= written
					})
					return peer.bytes()
				},
				Ledger: w.ledger,
			}
		}})
	})
	t.Run("slab and http", func(t *testing.T) {
		rollwaytest.TestLineWriter(t, rollwaytest.Subject{Open: func(t *testing.T) *rollwaytest.Instance {
			peer := newKeyedPeer(t)
			peer.up()
			dst := open(t, peer.url(), remote.Options{Spill: spillTo(t)})
			w := openSlab(t, dst)
			return &rollwaytest.Instance{
				Writer: w,
				Delivered: func() []byte { // what slab has passed on is on its way, or on disk
					flush(t, dst)
					return peer.bytes()
				},
				Ledger: func() rollwaytest.Ledger { return slabLedger(w) },
			}
		}})
	})
}
