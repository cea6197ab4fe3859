//go:build !windows

package disk

import "os"

var openFile = os.OpenFile
