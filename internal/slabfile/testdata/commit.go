// Package commit is the hot path of a writer over slabs, for a test that looks
// at what the compiler makes of it.
package commit

type writer struct {
	buf       []byte
	pos, end  int
	committed *uint64
}

func (w *writer) write(p []byte) bool {
	n := len(p)
	if n == 0 || n > w.end-w.pos || p[n-1] != '\n' {
		return false
	}
	copy(w.buf[w.pos:], p)
	w.pos += n
	*w.committed = uint64(w.pos)
	return true
}
