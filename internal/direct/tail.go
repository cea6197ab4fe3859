package direct

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

type Options struct {
	Mode Mode
	// Reserve is how many bytes are allocated at a time ahead of the end: below 0 for
	// none; default 64 MiB for Direct, otherwise none.
	Reserve int64

	chunk   int // see Tail; other values are for tests
	inPlace int // likewise
}

const (
	// InPlace is the smallest buffer, in bytes, that is written without a copy; more where
	// blocks are larger than 512 bytes.
	InPlace = 1 << 20

	// blocksInPlace is the smallest such buffer in blocks: one block before it and one
	// after it add at most a thousandth.
	blocksInPlace = 2048

	defaultChunk   = 8 << 20
	defaultReserve = 64 << 20
	stagingSize    = 384 << 10
)

// A Tail appends to one file that no one else writes to. It is not safe for concurrent use.
type Tail struct {
	f       *os.File
	sys     system
	block   int        // bytes; lengths and offsets are multiples of it. 1: any
	chunk   int        // the most bytes in one system call, in whole blocks
	reserve int64      // see Options; less when the disk is nearly full
	inPlace int        // the smallest aligned buffer that is written without a copy
	stage   *MemorySet // one buffer: the blocks to be written, the partial one first
	todo    [][]byte   // the rest of a WriteBuffers
	iov     [][]byte   // of one system call

	size     int64 // of the file: the end of its last line
	carry    int   // bytes in the last, partly filled block of the file; they begin the stage
	reserved int64 // the end of the allocated blocks
	padded   int64 // bytes added to the file to fill blocks
}

// New takes over f, a regular file opened for reading and writing without O_APPEND. With
// Mode Direct it switches f to direct I/O; if the file system refuses, the error wraps
// errors.ErrUnsupported and f is unchanged. The caller still owns f.
func New(f *os.File, o Options) (*Tail, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("direct: %s is no regular file: %w", f.Name(), errors.ErrUnsupported)
	}
	t := &Tail{f: f, chunk: cmp.Or(o.chunk, defaultChunk), reserve: o.Reserve, size: info.Size()}
	if t.reserve == 0 && o.Mode == Direct {
		t.reserve = defaultReserve
	}
	if t.block, err = t.sys.open(f, o.Mode); err != nil {
		return nil, fmt.Errorf("direct: %s: %w", f.Name(), err)
	}
	t.inPlace = cmp.Or(o.inPlace, max(InPlace, blocksInPlace*t.block))
	if t.stage, err = NewMemorySet(1, stagingSize); err != nil {
		return nil, err
	}
	if err := t.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("direct: %w", err), t.Free())
	}
	return t, nil
}

func (t *Tail) load() error {
	t.carry = int(t.size % int64(t.block))
	if t.carry == 0 {
		return nil
	}
	n, err := t.f.ReadAt(t.stage.Bytes(0)[:t.block], t.size-int64(t.carry))
	if n >= t.carry {
		return nil
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("read the last block of %s: %w", t.f.Name(), err)
}

// Cut shortens the file to size bytes and frees blocks after that. After an error only
// Close may be called.
func (t *Tail) Cut(size int64) error {
	if err := t.truncate(size); err != nil {
		return err
	}
	return t.load()
}

func (t *Tail) truncate(size int64) error {
	t.reserved = 0
	if err := t.f.Truncate(size); err != nil {
		return fmt.Errorf("cut the file to its %d bytes: %w", size, err)
	}
	t.size = size
	return nil
}

func (t *Tail) Size() int64 { return t.size }

// Padded returns how many bytes were added to the file to write large buffers in place.
func (t *Tail) Padded() int64 { return t.padded }

// Mode returns the mode in use: Buffered where Uncached is not supported.
func (t *Tail) Mode() Mode { return t.sys.mode }

// Write appends p as WriteBuffers does, but never in place: it does not change p.
func (t *Tail) Write(p []byte) (int, error) {
	n, err := t.WriteBuffers([][]byte{slices.Clip(p)})
	return int(n), err
}

// WriteBuffers appends the buffers, which end with a newline each, and returns how many
// of their bytes are in the file: all of them, or fewer and an error. The caller writes the
// rest again.
//
// With Direct, a buffer of InPlace bytes or more is written without a copy if it is
// aligned, has Align bytes of capacity after its end and ends with a newline. The bytes
// after the end may be changed.
func (t *Tail) WriteBuffers(bufs [][]byte) (n int64, err error) {
	t.todo = append(t.todo[:0], bufs...)
	for todo := Skip(t.todo, 0); len(todo) > 0 && err == nil; {
		var m int
		if t.fitsInPlace(todo[0]) {
			m, err = t.writeInPlace(todo)
		} else {
			m, err = t.writeStaged(todo)
		}
		n += int64(m)
		todo = Skip(todo, int64(m))
	}
	return n, err
}

func (t *Tail) fitsInPlace(b []byte) bool {
	if len(b) == 0 || t.block == 1 {
		return len(b) > 0
	}
	return len(b) >= t.inPlace && aligned(b, t.block) && cap(b)-len(b) >= t.block && b[len(b)-1] == '\n'
}
