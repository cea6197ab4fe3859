package direct

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// An Appender appends to a file that was opened with O_APPEND, and to which
// others may append too: the system knows the end. It is not safe for
// concurrent use.
type Appender struct {
	f    *os.File
	mode Mode
	sys  system
	rest [1][]byte // of one Write
}

// NewAppender appends to f Uncached, or Buffered. The error wraps
// errors.ErrUnsupported where no file of this system can be written that way.
func NewAppender(f *os.File, m Mode) (*Appender, error) {
	a := &Appender{f: f, mode: m}
	if m == Direct {
		return nil, errors.New("direct: O_DIRECT needs a Tail: it has to know the end of the file")
	}
	return a, a.sys.open(f, m)
}

// Write appends p. It returns how many of its bytes are in the file: all of
// them, or less and an error.
func (a *Appender) Write(p []byte) (n int, err error) {
	if a.mode == Buffered {
		return a.f.Write(p)
	}
	for n < len(p) {
		a.rest[0] = p[n:]
		wrote, err := a.sys.write(a.f, a.rest[:], atEnd)
		n += wrote
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return n, err
		case wrote <= 0:
			return n, io.ErrShortWrite
		}
	}
	return n, nil
}

// Mode returns how bytes really get to the disk: Buffered where the system
// turned out not to know Uncached.
func (a *Appender) Mode() Mode {
	if a.sys.refuses {
		return Buffered
	}
	return a.mode
}

// atEnd is the offset that means where the descriptor stands: with O_APPEND, the
// end of the file.
const atEnd = -1
