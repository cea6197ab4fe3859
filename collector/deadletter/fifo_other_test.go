//go:build !unix

package deadletter

import "os"

func makeFIFO(path string) error { return os.Mkdir(path, 0o700) }
