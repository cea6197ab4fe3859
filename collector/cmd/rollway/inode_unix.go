//go:build unix

package main

import (
	"os"
	"syscall"
)

// inode is the number of the file on its disk.
func inode(info os.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Ino)
	}
	return 0
}
