//go:build unix && !race && !aix && !solaris

package direct

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// largePage is the size of the system's large pages.
const largePage = 2 << 20

// allocate maps n bytes. What would fill large pages begins where one can: what
// is mapped before and behind used is never touched.
func allocate(n int) (mapped, used []byte, err error) {
	room := n
	if n >= largePage {
		room += largePage
	}
	mapped, err = unix.Mmap(-1, 0, room, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, nil, fmt.Errorf("map %d bytes of memory: %w", n, err)
	}
	used = mapped[:n]
	if room > n {
		skip := -address(mapped) & (largePage - 1)
		used = mapped[skip:][:n:n]
	}
	if runtime.GOOS == "linux" {
		// The system looks up and pins each page that it writes from: of 4 KiB
		// those are 2048 in 8 MiB, and other threads wait for that processor
		// meanwhile. Where there are no large ones, small ones do.
		const hugePages = 14 // unix.MADV_HUGEPAGE, which only Linux has
		_ = unix.Madvise(used, hugePages)
	}
	for i := 0; i < n; i += Align {
		used[i] = 0 // have the page now
	}
	return mapped, used, nil
}

func release(b []byte) error {
	if len(b) == 0 {
		return nil // twice
	}
	if err := unix.Munmap(b); err != nil {
		return fmt.Errorf("unmap %d bytes of memory: %w", len(b), err)
	}
	return nil
}
