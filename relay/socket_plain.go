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

// writeMore is for Linux: elsewhere each record leaves by itself.
func (w *wire) writeMore(p []byte) (int, error) { return w.Conn.Write(p) }
