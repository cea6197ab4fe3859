package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/recordlog"
)

// EachFrame calls f with the sound frames of the journal in dir, in the order of
// offsets, from the segment on that holds the offset from. A Frame is valid
// during the call. Like Verify it changes nothing and may run beside a process
// that writes; what is damaged, what that process is about to complete, and what
// its retention deletes meanwhile, it leaves out.
func EachFrame(dir string, from uint64, f func(Frame) error) error {
	return eachFrame(disk.Real{}, dir, from, f)
}

func eachFrame(fsys disk.FS, dir string, from uint64, f func(Frame) error) error {
	files, err := new(Report).list(fsys, dir)
	if err != nil {
		return fmt.Errorf("read journal: %w", err)
	}
	for i, c := range files {
		if i < len(files)-1 && files[i+1].first <= from {
			continue
		}
		err := eachInFile(fsys, dir, c, f)
		if errors.Is(err, fs.ErrNotExist) && i < len(files)-1 && deletedSince(fsys, dir, files[i+1].first) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read journal: %s: %w", c.name(), err)
		}
	}
	return nil
}

func eachInFile(fsys disk.FS, dir string, c candidate, f func(Frame) error) error {
	file, path, err := c.open(fsys, dir)
	if err != nil {
		return err
	}
	defer file.Close() // only read from
	return eachIn(file, path, recordlog.JournalSegment, c.first, f)
}

// EachFrameOf is EachFrame for one segment file, of a journal or of a spool.
func EachFrameOf(path string, kind recordlog.Kind, f func(Frame) error) error {
	file, err := disk.Real{}.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer file.Close() // only read from
	return eachIn(file, path, kind, 0, f)
}

// eachIn calls f with the sound frames in file that have offsets from next on.
func eachIn(file disk.File, path string, kind recordlog.Kind, next uint64, f func(Frame) error) error {
	end, err := framesEnd(file, path)
	if err != nil {
		return err
	}
	var w walker
	w.Open(file, path, end)
	if _, err := w.FileHeader(kind); err != nil && !recordlog.IsDamage(err) {
		return err
	}
	for {
		h, err := w.Header()
		var lines []byte
		if err == nil && h.First >= next {
			if lines, err = w.lines(&h); recordlog.IsDamage(err) {
				continue // behind it by its length
			}
		} else if err == nil {
			err = recordlog.ErrDamaged
		}
		switch {
		case err == nil:
			next = h.End()
			if err := f(Frame{First: h.First, Records: h.Records, Lines: lines}); err != nil {
				return err
			}
		case errors.Is(err, io.EOF):
			return nil
		case recordlog.IsDamage(err):
			if err := w.resync(next); err != nil {
				return err
			}
		default:
			return err
		}
	}
}
