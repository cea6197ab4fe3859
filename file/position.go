package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/rollway/rollway/internal/logfile"
)

// pinned is how long Rotate and Reopen wait for the Write that Prepare has
// announced.
const pinned = time.Second

// Prepare says where the Write of n bytes that follows will begin: in which
// file, by the numbers that the operating system knows it by, and at which
// offset. It does now what that Write would have done first, such as a rotation.
// Rotate and Reopen wait for the Write, but no longer than a second. The answer
// is wrong if another goroutine or program writes to the file in between. For
// what is not a regular file the error is errors.ErrUnsupported.
func (f *File) Prepare(n int) (volume, inode uint64, offset int64, err error) {
	if !f.enter(0) {
		return 0, 0, 0, f.fail("prepare", os.ErrClosed)
	}
	defer f.leave(0, 0)
	err = f.lock(context.Background())
	if err == nil {
		volume, inode, offset, err = f.prepare(n)
		f.unlock()
	}
	if err != nil {
		err = f.fail("prepare", err)
		f.countError(err)
	}
	return volume, inode, offset, err
}

func (f *File) prepare(n int) (volume, inode uint64, offset int64, err error) {
	if !f.io.regular || f.io.std {
		return 0, 0, 0, errors.ErrUnsupported
	}
	if err := f.mend(); err != nil {
		return 0, 0, 0, err
	}
	f.ready(n)
	if volume, inode, err = logfile.Identity(f.io.f); err != nil {
		return 0, 0, 0, err
	}
	info, err := f.io.f.Stat()
	if err != nil {
		return 0, 0, 0, err
	}
	if f.io.pin == nil {
		f.io.pin = make(chan struct{})
	}
	f.io.size = info.Size()
	return volume, inode, f.io.size, nil
}

// unpin lets go on who waits for the Write that Prepare has announced.
func (f *File) unpin() {
	if f.io.pin != nil {
		close(f.io.pin)
		f.io.pin = nil
	}
}

// lockUnpinned takes the turn when no Write is announced.
func (f *File) lockUnpinned(ctx context.Context) error {
	var patience <-chan time.Time
	for {
		if err := f.lock(ctx); err != nil {
			return err
		}
		pin := f.io.pin
		if pin == nil {
			return nil
		}
		f.unlock()
		if patience == nil {
			t := time.NewTimer(pinned)
			defer t.Stop()
			patience = t.C
		}
		select {
		case <-pin:
		case <-patience:
			return f.lock(ctx)
		case <-f.quit:
			return os.ErrClosed
		}
	}
}

// Holds returns how many of the first bytes of p stand at the offset of the
// file with these numbers, which Prepare gave, perhaps to a process before this
// one: the current file, a rotated one, also if another program has rotated it
// within its folder, or what a rotated one was before this package packed it,
// where the offset counts unpacked bytes. It ends at the first difference or at
// the end of the file, and goes back from there to a line end: numbers are used
// again, and two lines that begin alike are not the same. It is 0 if there is
// no such file. With an error n is what was found before it.
func (f *File) Holds(volume, inode uint64, offset int64, p []byte) (n int, err error) {
	if !f.enter(0) {
		return 0, f.fail("look for lines", os.ErrClosed)
	}
	defer f.leave(0, 0)
	f.mu.Lock()
	s, real := f.names, f.real
	f.mu.Unlock()
	for range 10 {
		n, err = s.holds(real, f.opt.Compress, volume, inode, offset, p)
		if !errors.Is(err, fs.ErrNotExist) {
			break // else it was packed or rotated under our eyes
		}
	}
	if err != nil {
		err = f.fail("look for lines", err)
		f.countError(err)
	}
	return n, err
}

func (s series) holds(real string, c Compressor, volume, inode uint64, offset int64, p []byte) (n int, err error) {
	folders := []string{s.folder}
	if dir := filepath.Dir(real); dir != s.folder {
		folders = append(folders, dir)
	}
	var errs []error
	for _, folder := range folders {
		entries, err := os.ReadDir(folder)
		if err != nil {
			return n, err
		}
		for _, e := range entries {
			if !e.Type().IsRegular() {
				continue
			}
			info, err := e.Info()
			if errors.Is(err, fs.ErrNotExist) {
				return n, err // and look again
			}
			if err != nil {
				return n, err
			}
			path := filepath.Join(folder, e.Name())
			m, _ := s.parse(e.Name())
			switch {
			case m.partial:
				continue
			case m.packed != "" && (m.inode != inode || !onVolume(path, info, volume)):
				continue // its own numbers are not those of what was packed
			case m.packed == "" && !sameNumbers(path, info, volume, inode):
				continue
			}
			found, err := compare(path, m.packed, c, offset, p)
			n = max(n, found)
			if errors.Is(err, fs.ErrNotExist) {
				return n, err
			}
			if err != nil {
				errs = append(errs, err)
			}
		}
	}
	if n == len(p) {
		return n, nil
	}
	return n, errors.Join(errs...)
}

// compare returns how many bytes of the whole lines that p begins with stand at
// the offset of the file at path, which is packed if ext is not empty.
func compare(path, ext string, c Compressor, offset int64, p []byte) (n int, err error) {
	defer recovered(&err)
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	var r io.Reader = io.NewSectionReader(file, offset, int64(len(p)))
	if ext != "" {
		unpacked, err := unpack(file, ext, c)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", path, err)
		}
		defer unpacked.Close()
		r = unpacked
		switch _, err := io.CopyN(io.Discard, r, offset); {
		case err == io.EOF:
			return 0, nil // it ended before
		case err != nil:
			return 0, fmt.Errorf("unpack %s: %w", path, err)
		}
	}
	n, err = common(r, p)
	if n < len(p) {
		n = bytes.LastIndexByte(p[:n], '\n') + 1
	}
	if err != nil {
		err = fmt.Errorf("read %s: %w", path, err)
	}
	return n, err
}

// common returns how many first bytes r and p have in common.
func common(r io.Reader, p []byte) (n int, err error) {
	buf := make([]byte, 32<<10)
	for n < len(p) {
		got, err := r.Read(buf[:min(len(buf), len(p)-n)])
		for i := range got {
			if buf[i] != p[n+i] {
				return n + i, nil
			}
		}
		n += got
		switch {
		case err == io.EOF:
			return n, nil
		case err != nil:
			return n, err
		}
	}
	return n, nil
}
