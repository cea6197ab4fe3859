//go:build !race

package direct

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// vectors is what a call of the system is told of buffers. unix.Pwritev2 takes
// new memory for more than eight.
type vectors struct{ list []unix.Iovec }

// pwritev2 is unix.Pwritev2.
func (v *vectors) pwritev2(fd int, bufs [][]byte, offset int64, flags int) (int, error) {
	v.list = v.list[:0]
	for _, b := range bufs {
		v.list = append(v.list, unix.Iovec{Base: unsafe.SliceData(b)})
		v.list[len(v.list)-1].SetLen(len(b))
	}
	const high = 8*unix.SizeofLong - 1 // where a long has 32 bits, the offset is two of them
	n, _, errno := unix.Syscall6(unix.SYS_PWRITEV2, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(v.list))),
		uintptr(len(v.list)), uintptr(offset), uintptr(uint64(offset)>>high>>1), uintptr(flags))
	clear(v.list)
	if errno != 0 {
		return -1, errno
	}
	return int(n), nil
}
