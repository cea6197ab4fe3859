//go:build !linux

package direct

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

// system is what a Tail asks of other systems: one buffer at a time.
type system struct {
	block   int
	refuses bool
}

func (s *system) open(f *os.File, m Mode) error {
	switch m {
	case Direct:
		s.block = 1
		return noCache(f)
	case Uncached:
		return fmt.Errorf("uncached writes: %w", errors.ErrUnsupported)
	}
	return nil
}

// Supported returns an error if no file of this system can be written that way.
func Supported(m Mode) error {
	if m == Uncached || m == Direct && runtime.GOOS != "darwin" {
		return fmt.Errorf("%v writes on %s: %w", m, runtime.GOOS, errors.ErrUnsupported)
	}
	return nil
}

// bypass is for blocks that are not whole, of which there are none.
func (s *system) bypass(*os.File, bool) error { return nil }

func (s *system) restore(*os.File) error { return nil }

func (s *system) write(f *os.File, bufs [][]byte, offset int64) (n int, err error) {
	for _, b := range bufs {
		m, err := f.WriteAt(b, offset+int64(n))
		n += m
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

func (s *system) allocate(*os.File, int64, int64) error { return errors.ErrUnsupported }
