//go:build !race

package direct

import (
	"path/filepath"
	"testing"

	"github.com/rollway/rollway/internal/testkit"
)

// However many buffers a call has, it allocates nothing.
func TestWriteBuffersDoesNotAllocate(t *testing.T) {
	for _, mode := range []Mode{Direct, Uncached, Buffered} {
		tail, f := openTail(t, filepath.Join(t.TempDir(), "tail"), Options{Mode: mode, inPlace: Align})
		bufs := lineBuffers(t, 100, Align)
		if n := testkit.Mallocs(func() {
			if n, err := tail.WriteBuffers(bufs); n != 100*Align || err != nil {
				t.Fatal(n, err)
			}
		}); n > 0 {
			t.Errorf("%v: %d allocations", mode, n)
		}
		closeTail(t, tail, f)
	}
}
