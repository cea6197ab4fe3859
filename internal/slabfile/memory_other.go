//go:build !linux && !darwin

package slabfile

import (
	"errors"
	"io/fs"
	"os"
)

const supported = false

func openNoFollow(string, int, fs.FileMode) (*os.File, error) { return nil, errors.ErrUnsupported }
func checkAccess(fs.FileInfo) error                           { return nil }
func fileSystem(*os.File) (remote, memory bool)               { return false, false }
func allocate(*os.File, int64) error                          { return errors.ErrUnsupported }
func firstHole(*os.File) int64                                { return -1 }
func mapShared(*os.File, int) ([]byte, error)                 { return nil, errors.ErrUnsupported }
func populate([]byte) bool                                    { return false }
func unmap([]byte) error                                      { return nil }
