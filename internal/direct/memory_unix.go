//go:build unix && !race && !aix && !solaris

package direct

import (
	"fmt"

	"golang.org/x/sys/unix"
)

func allocate(n int) ([]byte, error) {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes of memory: %w", n, err)
	}
	largePages(b)
	for i := 0; i < n; i += Align {
		b[i] = 0 // have the page now
	}
	return b, nil
}

func release(b []byte) error {
	if err := unix.Munmap(b); err != nil {
		return fmt.Errorf("unmap %d bytes of memory: %w", len(b), err)
	}
	return nil
}
