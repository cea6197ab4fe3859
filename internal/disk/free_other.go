//go:build !linux

package disk

// alone is not known here.
func (f *realFile) alone() (alone, known bool) { return false, false }
