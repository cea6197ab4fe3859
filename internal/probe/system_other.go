//go:build !linux

package probe

import "io/fs"

func spaceOf(string) *Space { return nil }
func mountOf(string) Mount  { return Mount{} }
func fileLimit() int64      { return 0 }

func owners(fs.FileInfo) (owner, user string) { return "", "" }
