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
func flock(*os.File) error                                    { return errors.ErrUnsupported }
func checkFileSystem(*os.File) error                          { return nil }
func inMemory(*os.File) bool                                  { return false }
func allocate(*os.File, int64) error                          { return errors.ErrUnsupported }
func mapShared(*os.File, int, bool) ([]byte, error)           { return nil, errors.ErrUnsupported }
func detach([]byte) error                                     { return nil }
