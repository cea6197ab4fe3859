//go:build race

package direct

import "golang.org/x/sys/unix"

// vectors is empty with -race: unix.Pwritev2 tells the detector what is read.
type vectors struct{}

func (*vectors) writev(fd int, bufs [][]byte) (int, error) { return unix.Writev(fd, bufs) }

func (*vectors) pwritev2(fd int, bufs [][]byte, offset int64, flags int) (int, error) {
	return unix.Pwritev2(fd, bufs, offset, flags)
}
