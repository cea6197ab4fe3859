//go:build !windows && !unix

package disk

import "os"

var openFile = os.OpenFile

const noFollow = 0

func setBlocking(*os.File) error { return nil }
