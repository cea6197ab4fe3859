//go:build !unix

package main

import "os"

// inode returns 0. Without inode numbers, send recognizes a replaced file by its size
// and its first bytes only.
func inode(os.FileInfo) uint64 { return 0 }
