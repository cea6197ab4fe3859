//go:build !linux

package direct

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

type system struct{ mode Mode }

func Supported(m Mode) error {
	if m == Uncached || m == Direct && runtime.GOOS != "darwin" {
		return fmt.Errorf("%v writes on %s: %w", m, runtime.GOOS, errors.ErrUnsupported)
	}
	return nil
}

func (s *system) open(f *os.File, m Mode) (block int, err error) {
	s.mode = m
	if err = Supported(m); err == nil && m == Direct {
		err = Bypass(f, true)
	}
	return 1, err
}

func Alignment(*os.File) (memory, offset int, told bool) { return 0, 0, false }

func (s *system) write(f *os.File, bufs [][]byte, offset int64) (n int, err error) {
	for _, b := range bufs {
		var m int
		if offset == atEnd {
			m, err = f.Write(b)
		} else {
			m, err = f.WriteAt(b, offset+int64(n))
		}
		n += m
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

func Allocate(*os.File, int64, int64) error { return errors.ErrUnsupported }
