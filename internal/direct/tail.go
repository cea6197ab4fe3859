package direct

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// Mode is how bytes get to the disk.
type Mode int

const (
	// Direct bypasses the page cache (O_DIRECT).
	Direct Mode = iota
	// Uncached goes through the page cache and leaves nothing there
	// (RWF_DONTCACHE, Linux 6.14).
	Uncached
	// Buffered leaves it to the system.
	Buffered
)

// String returns the name of the constant.
func (m Mode) String() string {
	switch m {
	case Direct:
		return "Direct"
	case Uncached:
		return "Uncached"
	case Buffered:
		return "Buffered"
	}
	return fmt.Sprintf("Mode(%d)", int(m))
}

// Options configures a Tail.
type Options struct {
	Mode Mode
	// Chunk is the most bytes of one system call: Align to 1 GiB, default
	// 8 MiB, a multiple of Align.
	Chunk int
	// Reserve is how many bytes are allocated at a time ahead of the end, so
	// that writes do not have to: 0 for none, default 64 MiB for Direct, else 0.
	Reserve int64
	// InPlace is from what size on an aligned buffer is written where it is:
	// default 1 MiB, and more where blocks are larger than 512 bytes, so that
	// white space is no more than a thousandth. It must have Align bytes of
	// capacity behind its end, and its last byte must be a line end.
	InPlace int
}

const (
	defaultChunk   = 8 << 20
	defaultReserve = 64 << 20
	defaultInPlace = 1 << 20
	stagingSize    = 384 << 10

	// blocksInPlace is the least buffer in blocks for which one block before it
	// and one behind are no more than a thousandth.
	blocksInPlace = 2048
)

// A Tail appends to one file. It is not safe for concurrent use, and while it
// is in use nobody else writes to the file.
type Tail struct {
	f     *os.File
	opt   Options
	block int      // bytes; lengths and offsets are multiples of it. 1: any
	stage *Memory  // whole blocks that are to be written, the partial one first
	todo  [][]byte // what is left of a WriteBuffers
	iov   [][]byte // of one system call

	size     int64 // of the file: the end of its last line
	carry    int   // bytes of the file in its last, partly filled block; they begin the stage
	reserved int64 // up to where blocks are allocated
	padded   int64 // bytes that Tail put into the file to fill blocks

	sys system
}

// New takes over f, which was opened for reading and writing, without O_APPEND,
// and is a regular file. With Mode Direct it switches the file to direct I/O; a
// file system that refuses is an error that wraps errors.ErrUnsupported, and f
// is as it was. f stays the caller's.
func New(f *os.File, o Options) (*Tail, error) {
	t := &Tail{f: f, block: 1}
	err := t.open(o)
	if err != nil {
		return nil, err
	}
	if o.InPlace == 0 {
		t.opt.InPlace = max(defaultInPlace, blocksInPlace*t.block)
	}
	if t.stage, err = NewMemory(stagingSize); err != nil {
		return nil, err
	}
	if err := t.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("direct: read the last block of %s: %w", f.Name(), err), t.stage.Free())
	}
	return t, nil
}

// open checks the options and switches the file to its mode.
func (t *Tail) open(o Options) error {
	if o.Chunk == 0 {
		o.Chunk = defaultChunk
	}
	if o.Reserve == 0 && o.Mode == Direct {
		o.Reserve = defaultReserve
	}
	if o.Chunk < Align || o.Chunk%Align != 0 || o.Chunk > 1<<30 {
		return fmt.Errorf("direct: Chunk is %d, allowed is a multiple of %d up to 1 GiB", o.Chunk, Align)
	}
	t.opt = o
	info, err := t.f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("direct: %s is no regular file: %w", t.f.Name(), errors.ErrUnsupported)
	}
	t.size = info.Size()
	if err := t.sys.open(t.f, o.Mode); err != nil {
		return fmt.Errorf("direct: %s: %w", t.f.Name(), err)
	}
	if o.Mode == Direct {
		t.block = t.sys.block
	}
	return nil
}

// load reads the last, partly filled block.
func (t *Tail) load() error {
	t.carry = int(t.size % int64(t.block))
	if t.carry == 0 {
		return nil
	}
	block := t.stage.Bytes()[:t.block]
	n, err := t.f.ReadAt(block, t.size-int64(t.carry))
	if n < t.carry {
		if err == nil || errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	return nil
}

// Cut makes the file size bytes long, which is no more than it has, and takes
// away what may stand behind that. After an error only Close may be called.
func (t *Tail) Cut(size int64) error {
	old := t.size
	t.size = size
	if err := t.truncate(); err != nil {
		t.size = old
		return err
	}
	if err := t.load(); err != nil {
		return fmt.Errorf("read the last block of %s: %w", t.f.Name(), err)
	}
	return nil
}

// Memory returns how many bytes the Tail has allocated.
func (t *Tail) Memory() int { return t.stage.Footprint() }

// Size returns the size of the file in bytes.
func (t *Tail) Size() int64 { return t.size }

// Padded returns how many bytes that nobody gave are in the file, because
// large buffers were written in place.
func (t *Tail) Padded() int64 { return t.padded }

// Mode returns how bytes really get to the disk: Buffered where the system
// turned out not to know Uncached.
func (t *Tail) Mode() Mode {
	if t.opt.Mode == Uncached && t.sys.refuses {
		return Buffered
	}
	return t.opt.Mode
}

// Write appends p as WriteBuffers does, but never in place: it does not change
// p.
func (t *Tail) Write(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var m int64
		if t.block == 1 {
			m, err = t.writeInPlace([][]byte{p[n:]})
		} else {
			m, err = t.writeStaged([][]byte{p[n:]})
		}
		n += int(m)
	}
	return n, err
}

// WriteBuffers appends the buffers, each of which ends in a line end, and
// returns how many of their bytes are in the file: all of them, or less and an
// error. The caller gives the rest again. It may change the last byte of a
// buffer that is written in place, and what is behind its end.
func (t *Tail) WriteBuffers(bufs [][]byte) (n int64, err error) {
	t.todo = append(t.todo[:0], bufs...)
	for todo := t.todo; len(todo) > 0 && err == nil; {
		if len(todo[0]) == 0 {
			todo = todo[1:]
			continue
		}
		var m int64
		if t.fitsInPlace(todo[0]) {
			m, err = t.writeInPlace(todo)
		} else {
			m, err = t.writeStaged(todo)
		}
		n += m
		for m > 0 {
			k := min(int64(len(todo[0])), m)
			todo[0] = todo[0][k:]
			if m -= k; len(todo[0]) == 0 {
				todo = todo[1:]
			}
		}
	}
	return n, err
}

// fitsInPlace reports whether b is written where it is.
func (t *Tail) fitsInPlace(b []byte) bool {
	if t.block == 1 {
		return true
	}
	return len(b) >= t.opt.InPlace && aligned(b, t.block) && cap(b)-len(b) >= t.block && b[len(b)-1] == '\n'
}
