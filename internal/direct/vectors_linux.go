//go:build !race

package direct

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// vectors is the buffers for a system call. unix.Pwritev2 allocates for more than eight.
type vectors struct{ list []unix.Iovec }

func (v *vectors) pwritev2(fd int, bufs [][]byte, offset int64, flags int) (int, error) {
	const high = 8*unix.SizeofLong - 1 // where a long has 32 bits, the offset is two of them
	return v.write(unix.SYS_PWRITEV2, fd, bufs, uintptr(offset), uintptr(uint64(offset)>>high>>1), uintptr(flags))
}

// writev is unix.Writev, also for kernels before 4.6.
func (v *vectors) writev(fd int, bufs [][]byte) (int, error) {
	return v.write(unix.SYS_WRITEV, fd, bufs, 0, 0, 0)
}

func (v *vectors) write(call uintptr, fd int, bufs [][]byte, a, b, c uintptr) (int, error) {
	v.list = v.list[:0]
	for _, b := range bufs {
		v.list = append(v.list, unix.Iovec{Base: unsafe.SliceData(b)})
		v.list[len(v.list)-1].SetLen(len(b))
	}
	n, _, errno := unix.Syscall6(call, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(v.list))), uintptr(len(v.list)), a, b, c)
	clear(v.list)
	if errno != 0 {
		return -1, errno
	}
	return int(n), nil
}
