// Package commit is the hot path of a writer over slabs, for a test that looks
// at what the compiler makes of it.
package commit

type writer struct {
	buf        []byte
	pos, lines int
	committed  *uint64
}

func (w *writer) put(p []byte) {
	pos, lines := w.pos+copy(w.buf[w.pos:], p), w.lines+count(p)
	*w.committed = uint64(uint32(lines))<<32 | uint64(uint32(pos))
	w.pos, w.lines = pos, lines
}

//go:noinline
func count(p []byte) int { return len(p) }
