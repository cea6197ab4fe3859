//go:build !linux

package relay

import "time"

// awaitReset is for Linux: elsewhere the reset of a side that has finished
// sending is noticed with the next byte for it.
func (s *side) awaitReset() error { return nil }

// isDead is for Linux: elsewhere a reset that a write has met may look like an
// end to the other direction.
func (s *side) isDead() bool { return false }

// flush is for Linux: elsewhere a reset overtakes what has not left.
func (s *side) flush(time.Duration) {}

// write is for Linux: elsewhere each record leaves by itself, and whoever waits is
// taken for one who waits for room.
func (w *wire) write(p []byte, _ bool) (int, error) {
	if w.pumped.Load() {
		w.full()
	}
	return w.Conn.Write(p)
}

// unsent is for Linux: elsewhere only what the relay holds is known to wait, and
// what a socket has taken its peer is assumed to have.
func (s *side) unsent() int { return 0 }
