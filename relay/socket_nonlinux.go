//go:build !linux

package relay

import "time"

// awaitReset is for Linux: elsewhere the reset of a side that has finished
// sending is noticed with the next byte for it.
func (s *peer) awaitReset() error { return nil }

// isDead is for Linux: elsewhere a reset that a write has met may look like an
// end to the other direction.
func (s *peer) isDead() bool { return false }

// flush is for Linux: elsewhere a reset discards bytes that were not sent yet.
func (s *peer) flush(time.Duration) {}

// write is for Linux: elsewhere each record is sent on its own, and a write counts as
// blocked until it returns.
func (w *tlsSocket) write(p []byte, _ bool) (int, error) {
	if w.pumping.Load() {
		w.onBlocked()
	}
	return w.Conn.Write(p)
}

// unsent is for Linux: elsewhere bytes in a socket count as acknowledged.
func (s *peer) unsent() int { return 0 }

// splicer is what a pump needs to splice, which is for Linux.
type splicer struct{}

func (p *pump) spliceable() bool { return false }

func (p *pump) splice() (*peer, error) { return nil, errUseBuffers }

func (p *pump) shouldSplice(int, int) bool { return false }

func sleepShortly(time.Duration) {}

func (s *peer) setLowWater(int) {}

func defaultBudget() int64 { return 0 }

func (s *peer) limitUnsent(int) {}

func (s *peer) setReceiveBuffer(int, bool) {}

func (p *pump) mustCopyUnbuffered() bool { return false }

func (p *pump) copyUnbuffered() (bool, *peer, error) { return false, nil, errUseBuffers }

// pipes is for Linux.
type pipes struct{ max int }

func (p *pipes) trim()                   {}
func (p *pipes) close()                  {}
func (p *pipes) count() (open, lent int) { return 0, 0 }
