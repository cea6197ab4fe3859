package direct

import (
	"fmt"
	"os"
)

// Blocks writes whole blocks to places of a file that the caller chooses: for
// formats of which each piece is a number of blocks. It is not safe for
// concurrent use.
type Blocks struct{ t Tail }

// NewBlocks takes over f as New does; Options.InPlace means nothing.
func NewBlocks(f *os.File, o Options) (*Blocks, error) {
	b := &Blocks{Tail{f: f, block: 1}}
	if err := b.t.open(o); err != nil {
		return nil, err
	}
	return b, nil
}

// Block is what buffers, their lengths and their places must be multiples of,
// in bytes.
func (b *Blocks) Block() int { return b.t.block }

// Mode is Tail's.
func (b *Blocks) Mode() Mode { return b.t.Mode() }

// WriteAt writes bufs one behind the other at offset, and returns how many of
// their bytes are there: all of them, or less and an error.
func (b *Blocks) WriteAt(bufs [][]byte, offset int64) (n int64, err error) {
	t := &b.t
	for len(bufs) > 0 {
		t.iov = t.iov[:0]
		size := 0
		for len(bufs) > 0 && len(t.iov) < maxVectors && size < t.opt.Chunk {
			k := min(len(bufs[0]), t.opt.Chunk-size)
			if t.block > 1 && !aligned(bufs[0], t.block) {
				return n, fmt.Errorf("direct: a buffer for %s is not aligned to %d bytes", t.f.Name(), t.block)
			}
			t.iov = append(t.iov, bufs[0][:k])
			size += k
			if bufs[0] = bufs[0][k:]; len(bufs[0]) == 0 {
				bufs = bufs[1:]
			}
		}
		wrote, err := t.writeAt(offset+n, size)
		n += int64(wrote)
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// Close gives back what was allocated beyond the end of the file. It does not
// close the file, which is left in its mode.
func (b *Blocks) Close() error {
	info, err := b.t.f.Stat()
	if err == nil && b.t.reserved > info.Size() {
		err = b.t.f.Truncate(info.Size())
	}
	return err
}
