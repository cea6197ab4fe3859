//go:build !linux

package direct

import "os"

const directFlag = 0

// writev writes the buffers one by one: the page cache has them here.
func writev(f *os.File, bufs [][]byte) error {
	for _, b := range bufs {
		if _, err := f.Write(b); err != nil {
			return err
		}
	}
	return nil
}
