//go:build race

package receive

// poison overwrites what goes back to the pool, so that tests see whoever
// still reads it.
func (w *work) poison() {
	for _, b := range [][]byte{w.buf, w.answer, w.note, w.packed, w.batch.Lines} {
		b = b[:cap(b)]
		for i := range b {
			b[i] = 0xDB
		}
	}
}
