//go:build !linux

package logfile

import "os"

// A Path is checked repeatedly. It is not safe for concurrent use.
type Path struct{ Text string }

func NewPath(text string) *Path { return &Path{text} }

// Look returns the size of f, below 0 if that fails, and whether the path, links followed,
// leads to it. The error wraps fs.ErrNotExist if the path names nothing.
func (p *Path) Look(f *os.File) (size int64, same bool, err error) {
	info, err := f.Stat()
	if err != nil {
		return -1, false, err
	}
	same, err = leads(p.Text, f, os.Stat)
	return info.Size(), same, err
}
