package journal

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/rollway/rollway/internal/disk"
)

// EachFrame calls f with the sound frames of the journal in dir, in the order of
// offsets, from the segment on that holds the offset from. A Frame is valid
// during the call. Like Verify it changes nothing and may run beside a process
// that writes; what is damaged, and what that process is about to complete, it
// leaves out.
func EachFrame(dir string, from uint64, f func(Frame) error) error {
	return eachFrame(disk.Real{}, dir, from, f)
}

func eachFrame(fsys disk.FS, dir string, from uint64, f func(Frame) error) error {
	entries, err := fsys.List(dir)
	if err != nil {
		return fmt.Errorf("read journal: %w", err)
	}
	var files []candidate
	for _, e := range entries {
		if first, ext, ok := parseName(e.Name); ok && (ext == extOpen || ext == extSealed) {
			files = append(files, candidate{first, ext, e.Size, e.ModTime})
		}
	}
	slices.SortStableFunc(files, func(a, b candidate) int { return cmp.Compare(a.first, b.first) })
	for i, c := range files {
		if i < len(files)-1 && files[i+1].first <= from {
			continue
		}
		if err := eachInFile(fsys, dir, c, f); err != nil {
			return fmt.Errorf("read journal: %s: %w", c.name(), err)
		}
	}
	return nil
}

func eachInFile(fsys disk.FS, dir string, c candidate, f func(Frame) error) error {
	path := filepath.Join(dir, c.name())
	file, err := fsys.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer file.Close() // only read from
	size, err := file.Size()
	if err != nil {
		return err
	}
	var w walker
	w.open(file, path, size)
	if _, err := w.readSegmentHeader(); err != nil && err != errDamaged {
		return err
	}
	for next := c.first; ; {
		h, err := w.header()
		var lines []byte
		if err == nil && h.first >= next {
			if lines, err = w.body(&h); err == errDamaged {
				continue // behind it by its length
			}
		} else if err == nil {
			err = errDamaged
		}
		switch {
		case err == nil:
			next = h.end()
			if err := f(Frame{First: h.first, Records: h.records, Lines: lines}); err != nil {
				return err
			}
		case errors.Is(err, io.EOF):
			return nil
		case err == errDamaged:
			if err := w.resync(next); err != nil {
				return err
			}
		default:
			return err
		}
	}
}
