package direct

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
	"unsafe"

	"github.com/rollway/rollway/internal/direct"
	"github.com/rollway/rollway/internal/promtext"
)

// An Engine is how a set of buffers gets to the file: the four phases of the
// publication.
type Engine int

const (
	// Vectored is phase 4: one writev past the page cache.
	Vectored Engine = iota
	// Buffered is phase 1: a write for each buffer through the page cache, and
	// then fsync.
	Buffered
	// Separate is phase 2: a write past the page cache for each buffer.
	Separate
	// Copied is phase 3: all buffers copied into one, and one write past the
	// page cache.
	Copied
)

func (e Engine) String() string {
	switch e {
	case Vectored:
		return "writev"
	case Buffered:
		return "buffered + fsync"
	case Separate:
		return "a write for each"
	case Copied:
		return "copied batch"
	}
	return fmt.Sprintf("Engine(%d)", int(e))
}

// Output is where the baselines write. One goroutine at a time uses it.
type Output struct {
	f       *os.File
	engine  Engine
	fresh   bool                // Copied: new memory for each set
	flat    *direct.MemorySet   // Copied: all buffers, one after another
	padded  []*direct.MemorySet // else: a copy of each buffer that is no whole number of blocks
	memory  int                 // bytes of these copies
	bufs    [][]byte
	latency *promtext.Histogram
}

// alignment is the publication's.
const alignment = 4096

func openOutput(c Config) (Output, error) {
	const flags = os.O_CREATE | os.O_WRONLY | os.O_APPEND
	o := Output{engine: c.IO, fresh: c.Unpooled, latency: new(promtext.Histogram)}
	var err error
	if o.engine != Buffered {
		o.f, err = os.OpenFile(c.Path, flags|directFlag, 0o644)
	}
	if o.f == nil && (err == nil || errors.Is(err, syscall.EINVAL)) { // or the file system has no direct I/O
		o.f, err = os.OpenFile(c.Path, flags, 0o644)
	}
	return o, err
}

// WriteSet writes the buffers. Where the file takes whole blocks alone, the
// last block of each is filled with NULs, as published.
func (o *Output) WriteSet(bufs [][]byte) error {
	begin := time.Now()
	defer func() { o.latency.Record(time.Since(begin)) }()
	switch o.engine {
	case Buffered:
		if err := o.writeEach(bufs); err != nil {
			return err
		}
		return o.f.Sync()
	case Copied:
		return o.writeCopied(bufs)
	}
	o.bufs = o.bufs[:0]
	for i, b := range bufs {
		whole, err := o.pad(i, b)
		if err != nil {
			return err
		}
		o.bufs = append(o.bufs, whole)
	}
	if o.engine == Separate {
		return o.writeEach(o.bufs)
	}
	return writev(o.f, o.bufs)
}

func (o *Output) writeEach(bufs [][]byte) error {
	for _, b := range bufs {
		if _, err := o.f.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// pad copies b, the i-th buffer, unless it is whole blocks as it is.
func (o *Output) pad(i int, b []byte) ([]byte, error) {
	size := blocks(len(b))
	if size == len(b) {
		return b, nil
	}
	for len(o.padded) <= i {
		o.padded = append(o.padded, nil)
	}
	memory, err := o.grown(o.padded[i], size)
	if err != nil {
		return nil, err
	}
	o.padded[i] = memory
	whole := memory.Bytes(0)[:size]
	clear(whole[copy(whole, b):])
	return whole, nil
}

func (o *Output) writeCopied(bufs [][]byte) error {
	size := 0
	for _, b := range bufs {
		size += len(b)
	}
	size = blocks(size)
	var whole []byte
	if o.fresh {
		whole = aligned(make([]byte, size+alignment), size)
	} else {
		memory, err := o.grown(o.flat, size)
		if err != nil {
			return err
		}
		o.flat, whole = memory, memory.Bytes(0)[:size]
	}
	n := 0
	for _, b := range bufs {
		n += copy(whole[n:], b)
	}
	clear(whole[n:])
	return o.writeEach([][]byte{whole})
}

// grown returns m if it has size bytes, or else a new one instead of it.
func (o *Output) grown(m *direct.MemorySet, size int) (*direct.MemorySet, error) {
	if m != nil {
		if len(m.Bytes(0)) >= size {
			return m, nil
		}
		o.memory -= len(m.Bytes(0))
		if err := m.Free(); err != nil {
			return nil, err
		}
	}
	o.memory += size
	return direct.NewMemorySet(1, size)
}

// aligned returns size bytes of b that begin at a multiple of alignment.
func aligned(b []byte, size int) []byte {
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) & (alignment - 1)
	return b[skip : skip+size]
}

func blocks(n int) int { return (n + alignment - 1) / alignment * alignment }

// Close closes the file and gives the copies back.
func (o *Output) Close() error {
	err := o.f.Close()
	for _, m := range append(o.padded, o.flat) {
		if m == nil {
			continue
		}
		if e := m.Free(); err == nil {
			err = e
		}
	}
	return err
}

// Figures are those of the writes and of the copies.
func (o *Output) Figures() Figures {
	f := figures(o.latency)
	f.Memory = o.memory
	return f
}
