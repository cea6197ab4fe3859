//go:build unix && !race && !aix && !solaris

package direct

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

const largePage = 2 << 20

// allocate maps n bytes. A set that fills large pages begins at the start of one; the rest
// of the mapping is never touched.
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
		// The system looks up and pins each page that it writes from: 2048 pages of 4 KiB
		// for 8 MiB, while other threads wait for that processor.
		const hugePages = 14 // unix.MADV_HUGEPAGE, which only Linux has
		_ = unix.Madvise(used, hugePages)
	}
	for i := 0; i < n; i += Align {
		used[i] = 0 // allocates the page
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
