package direct

import (
	"os"

	"golang.org/x/sys/unix"
)

const directFlag = unix.O_DIRECT

// writev writes the buffers with one system call, or as many as it takes.
func writev(f *os.File, bufs [][]byte) error {
	for len(bufs) > 0 {
		n, err := unix.Writev(int(f.Fd()), bufs)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return os.NewSyscallError("writev", err)
		}
		for n > 0 {
			k := min(n, len(bufs[0]))
			n -= k
			if bufs[0] = bufs[0][k:]; len(bufs[0]) == 0 {
				bufs = bufs[1:]
			}
		}
	}
	return nil
}
