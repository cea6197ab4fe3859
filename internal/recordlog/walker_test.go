package recordlog

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"
)

// countedFile counts the bytes that are read of it.
type countedFile struct {
	io.ReaderAt
	read int
}

func (f *countedFile) ReadAt(b []byte, at int64) (int, error) {
	n, err := f.ReaderAt.ReadAt(b, at)
	f.read += n
	return n, err
}

// A Walker that goes forward reads each byte once, in whatever steps.
func TestBytesAreReadOnce(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 9))
	content := make([]byte, 3<<20)
	for i := range content {
		content[i] = byte(r.Uint32())
	}
	f := &countedFile{ReaderAt: bytes.NewReader(content)}
	var w Walker
	for range 20 {
		f.read = 0
		w.Open(f, "file", int64(len(content)))
		for pos := 0; pos < len(content); {
			for _, n := range []int{FrameHeaderSize, 1 + r.IntN(200<<10)} { // a header, and a frame with it
				n = min(n, len(content)-pos)
				b, err := w.Bytes(int64(pos), n)
				if err != nil || !bytes.Equal(b, content[pos:pos+n]) {
					t.Fatalf("%d bytes at %d: %v", n, pos, err)
				}
			}
			pos += r.IntN(200 << 10)
			if back := r.IntN(50); back == 0 { // as for damage
				pos = r.IntN(pos + 1)
				f.read = -len(content)
			}
		}
		if f.read > len(content) {
			t.Fatalf("%d bytes are read of %d", f.read, len(content))
		}
	}
}
