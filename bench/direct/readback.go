package direct

import (
	"errors"
	"io"
	"os"
	"syscall"

	"github.com/rollway/rollway/bench/internal/lines"
	"github.com/rollway/rollway/internal/direct"
)

// readback reads a file past the page cache where the file system allows: what
// was just written past it is not there, and reading must not push out what is.
type readback struct {
	f      *os.File
	memory *direct.MemorySet
	rest   []byte // read, but not yet asked for
	offset int64
	end    bool
}

// readbackSize is what is read at a time.
const readbackSize = 1 << 20

func openReadback(path string) (*readback, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|directFlag, 0)
	if errors.Is(err, syscall.EINVAL) {
		f, err = os.Open(path)
	}
	if err != nil {
		return nil, err
	}
	memory, err := direct.NewMemorySet(1, readbackSize)
	if err != nil {
		f.Close()
		return nil, err
	}
	return &readback{f: f, memory: memory}, nil
}

func (r *readback) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		if r.end {
			return 0, io.EOF
		}
		n, err := r.f.ReadAt(r.memory.Bytes(0), r.offset)
		if err != nil && err != io.EOF {
			return 0, err
		}
		r.end = err == io.EOF
		r.offset += int64(n)
		r.rest = r.memory.Bytes(0)[:n]
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func (r *readback) Close() error { return errors.Join(r.f.Close(), r.memory.Free()) }

// readFile audits one file.
func readFile(a *lines.Audit, path string) error {
	r, err := openReadback(path)
	if err != nil {
		return err
	}
	defer r.Close()
	return a.Read(r)
}
