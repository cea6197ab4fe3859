//go:build !unix

package disk

import (
	"io/fs"
	"os"
)

const (
	nonBlock = 0
	noFollow = 0
)

func nameless(*os.File) bool { return false }

func refuseOwner(string, fs.FileInfo, bool) error { return nil } // files have no owners here

func setBlocking(*os.File) error { return nil }
