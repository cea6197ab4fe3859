package direct

import (
	"errors"
	"io"
	"os"
	"syscall"

	"github.com/rollway/rollway/internal/direct"
)

// readback reads a file past the page cache where the file system allows: what
// was just written past it is not there, and reading must not push out what is.
type readback struct {
	f      *os.File
	memory *direct.Memory
	rest   []byte // read, but not yet asked for
	offset int64
	end    bool
}

// readbackSize is what is read at a time: the Reader of framed files asks for 1 MiB
// anywhere, which may begin and end within a block.
const readbackSize = 1<<20 + 2*alignment

func openReadback(path string) (*readback, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|directFlag, 0)
	if errors.Is(err, syscall.EINVAL) {
		f, err = os.Open(path)
	}
	if err != nil {
		return nil, err
	}
	memory, err := direct.NewMemory(readbackSize)
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
		n, err := r.f.ReadAt(r.memory.Bytes(), r.offset)
		if err != nil && err != io.EOF {
			return 0, err
		}
		r.end = err == io.EOF
		r.offset += int64(n)
		r.rest = r.memory.Bytes()[:n]
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// ReadAt is that of io.ReaderAt, by whole blocks of the file. It is not safe for
// concurrent use and does not go together with Read.
func (r *readback) ReadAt(p []byte, offset int64) (n int, err error) {
	for n < len(p) {
		at := offset + int64(n)
		begin := at &^ (alignment - 1)
		skip := int(at - begin)
		want := min(readbackSize, blocks(skip+len(p)-n))
		got, err := r.f.ReadAt(r.memory.Bytes()[:want], begin)
		if err != nil && err != io.EOF {
			return n, err
		}
		if got <= skip {
			return n, io.EOF
		}
		n += copy(p[n:], r.memory.Bytes()[skip:got])
		if err == io.EOF && n < len(p) {
			return n, io.EOF
		}
	}
	return n, nil
}

func (r *readback) Close() error { return errors.Join(r.f.Close(), r.memory.Free()) }

// readFile audits one file.
func (a *Audit) readFile(path string) error {
	r, err := openReadback(path)
	if err != nil {
		return err
	}
	defer r.Close()
	return a.Read(r)
}

// readFramed audits one framed file.
func (a *Audit) readFramed(path string) error {
	r, err := openReadback(path)
	if err != nil {
		return err
	}
	defer r.Close()
	info, err := r.f.Stat()
	if err != nil {
		return err
	}
	return a.ReadFramed(r, info.Size())
}
