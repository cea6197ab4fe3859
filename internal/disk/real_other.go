//go:build !windows && !unix

package disk

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// IsFull reports whether err means that the disk has no room, for now.
func IsFull(err error) bool { return errors.Is(err, syscall.ENOSPC) }

var openFile = os.OpenFile

const (
	nonBlock = 0
	noFollow = 0
)

func nameless(*os.File) bool { return false }

func refuseOwner(string, fs.FileInfo, bool) error { return nil } // files have no owners here

func setBlocking(*os.File) error { return nil }
