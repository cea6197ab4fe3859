package direct

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

type Mode int

const (
	Buffered Mode = iota
	Direct
	// Uncached leaves nothing in the page cache (RWF_DONTCACHE, Linux 6.14).
	Uncached
)

// String returns the name of the constant.
func (m Mode) String() string {
	if names := [...]string{"Buffered", "Direct", "Uncached"}; 0 <= m && int(m) < len(names) {
		return names[m]
	}
	return fmt.Sprintf("Mode(%d)", int(m))
}

// An Appender appends to a file opened with O_APPEND, which may have other writers. It is
// not safe for concurrent use.
type Appender struct {
	f    *os.File
	sys  system
	rest [][]byte // of one WriteBuffers
}

// NewAppender appends to f Uncached, or Buffered. The error wraps errors.ErrUnsupported for
// a mode that the system does not support.
func NewAppender(f *os.File, m Mode) (*Appender, error) {
	a := &Appender{f: f}
	if m == Direct {
		return nil, errors.New("direct: O_DIRECT needs a Tail: it has to know the end of the file")
	}
	_, err := a.sys.open(f, m)
	return a, err
}

// WriteBuffers appends the buffers, in one system call unless there are too many, and
// returns how many of their bytes are in the file: all of them, or fewer and an error.
func (a *Appender) WriteBuffers(bufs [][]byte) (n int64, err error) {
	a.rest = append(a.rest[:0], bufs...)
	defer clear(a.rest)
	wrote, err := a.sys.writeAll(a.f, a.rest, atEnd, 1)
	return int64(wrote), err
}

// Mode returns the mode in use: Buffered where the system does not support Uncached.
func (a *Appender) Mode() Mode { return a.sys.mode }

// WriteAt writes b at offset of f, which is prepared for that mode, see Bypass. The error
// wraps errors.ErrUnsupported if the mode is not supported.
func WriteAt(f *os.File, b []byte, offset int64, m Mode) error {
	if err := Supported(m); err != nil {
		return err
	}
	s := system{mode: m}
	_, err := s.writeAll(f, [][]byte{b}, offset, 1)
	if err == nil && s.mode != m {
		err = fmt.Errorf("%v writes: %w", m, errors.ErrUnsupported)
	}
	return err
}

const (
	// atEnd is the offset that means the descriptor's position: with O_APPEND, the end.
	atEnd = -1

	// maxVectors bounds the buffers in one system call (IOV_MAX of Linux).
	maxVectors = 1024
)

// writeAll writes bufs, which it changes, at offset, and returns how many bytes were
// written, in whole blocks, and an error if not all were.
func (s *system) writeAll(f *os.File, bufs [][]byte, offset int64, block int) (wrote int, err error) {
	for bufs = Skip(bufs, 0); len(bufs) > 0; {
		at := offset
		if at != atEnd {
			at += int64(wrote)
		}
		n, err := s.write(f, bufs[:min(len(bufs), maxVectors)], at)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		n -= n % block // a partial block is written again
		wrote += n
		bufs = Skip(bufs, int64(n))
		if err == nil && n == 0 {
			err = io.ErrShortWrite
		}
		if err != nil {
			return wrote, err
		}
	}
	return wrote, nil
}

// Skip removes n bytes and empty buffers from the front of bufs, which it changes.
func Skip(bufs [][]byte, n int64) [][]byte {
	for len(bufs) > 0 && (n > 0 || len(bufs[0]) == 0) {
		k := min(int64(len(bufs[0])), n)
		n -= k
		if bufs[0] = bufs[0][k:]; len(bufs[0]) == 0 {
			bufs = bufs[1:]
		}
	}
	return bufs
}
