//go:build !race

package direct

import "golang.org/x/sys/unix"

// largePages asks for pages of 2 MiB. The system looks up and pins each page
// that it writes from: of 4 KiB those are 2048 in 8 MiB, and other threads wait
// for that processor meanwhile. Where there are none, small ones do.
func largePages(b []byte) { _ = unix.Madvise(b, unix.MADV_HUGEPAGE) }
