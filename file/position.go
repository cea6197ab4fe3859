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
	"slices"
	"time"

	"github.com/rollway/rollway/internal/logfile"
)

// pinned bounds the wait of Rotate and Reopen for the Write that Prepare announced.
const pinned = time.Second

// Prepare returns where the next Write, of n bytes, will begin: the file, by the numbers
// that identify it to the operating system, and the offset. It first does what that Write
// would do, such as a rotation. Rotate and Reopen wait for the Write, for a second at most.
// The result is wrong if another goroutine or program writes to the file in between. For a
// file that is not regular the error is errors.ErrUnsupported.
func (f *File) Prepare(n int) (volume, inode uint64, offset int64, err error) {
	err = f.call("prepare", f.lock, func() error {
		if !f.io.regular {
			return errors.ErrUnsupported
		}
		if err := f.ready(time.Now(), int64(n)); err != nil {
			return err
		}
		info, err := f.io.f.Stat()
		if err != nil {
			return err
		}
		if volume, inode, err = logfile.Identity(f.io.f); err != nil {
			return err
		}
		if f.io.pin == nil {
			f.io.pin = make(chan struct{})
		}
		offset = info.Size()
		f.io.size = offset
		return nil
	})
	return volume, inode, offset, err
}

func (f *File) unpin() {
	if f.io.pin != nil {
		close(f.io.pin)
		f.io.pin = nil
	}
}

func (f *File) lockUnpinned(ctx context.Context) error {
	timeout := time.After(pinned)
	for {
		if err := f.lock(ctx); err != nil {
			return err
		}
		pin := f.io.pin
		if pin == nil {
			return nil
		}
		f.unlock()
		select {
		case <-pin:
		case <-timeout:
			return f.lock(ctx)
		case <-f.quit:
			return os.ErrClosed
		}
	}
}

// Holds returns how many of the first bytes of p are at the offset of the file with these
// numbers, which Prepare returned, perhaps to an earlier process. The file may be the
// current one, a rotated one, even if another program rotated it within its folder, or a
// compressed one; then the offset counts uncompressed bytes. Holds compares up to the first
// difference or the end of the file, and then goes back to a line end, because numbers are
// reused and different lines may begin alike. It returns 0 if there is no such file. With
// an error, n is the result up to it.
func (f *File) Holds(volume, inode uint64, offset int64, p []byte) (n int, err error) {
	if !f.enter(0) {
		return 0, f.fail("look for lines", os.ErrClosed)
	}
	defer f.leave(0, 0)
	for at, place := range f.locations {
		s, _ := f.current()
		if path, evalErr := filepath.EvalSymlinks(place.Text); evalErr == nil && path != s.path {
			s = f.seriesAt(at, path)
		}
		var found int
		var holdsErr error
		for range 10 {
			found, holdsErr = s.holds(f.opt.Compress, volume, inode, offset, p)
			if !errors.Is(holdsErr, fs.ErrNotExist) {
				break
			}
		}
		n, err = max(n, found), errors.Join(err, holdsErr)
	}
	if n == len(p) {
		err = nil
	}
	return n, f.failed("look for lines", err)
}

// holds searches the folders of the series once. With fs.ErrNotExist, a file was compressed
// or rotated meanwhile.
func (s series) holds(c Compressor, volume, inode uint64, offset int64, p []byte) (n int, err error) {
	var errs []error
	for _, folder := range slices.Compact([]string{s.folder, filepath.Dir(s.path)}) {
		entries, err := os.ReadDir(folder)
		if err != nil {
			return n, err
		}
		for _, e := range entries {
			if !e.Type().IsRegular() {
				continue
			}
			info, err := e.Info()
			if err != nil {
				return n, err
			}
			path := filepath.Join(folder, e.Name())
			v, i, err := logfile.IdentityAt(path, info)
			m, _ := s.parse(e.Name())
			if m.compressed != "" {
				i = m.inode // its own is not that of what was compressed
			}
			if err != nil || m.partial || v != volume || i != inode {
				continue
			}
			found, err := compare(path, m.compressed, c, offset, p)
			n = max(n, found)
			if errors.Is(err, fs.ErrNotExist) {
				return n, err
			}
			errs = append(errs, err)
		}
	}
	return n, errors.Join(errs...)
}

// compare returns how many bytes of the whole lines that p begins with are at the offset of
// the file at path, which is compressed if ext is not empty.
func compare(path, ext string, c Compressor, offset int64, p []byte) (n int, err error) {
	defer recovered(&err)
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	var r io.Reader = io.NewSectionReader(file, offset, int64(len(p)))
	if ext != "" {
		unpacked, err := uncompress(file, ext, c)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", path, err)
		}
		defer unpacked.Close()
		r = unpacked
		switch _, err := io.CopyN(io.Discard, r, offset); {
		case err == io.EOF:
			return 0, nil // it ended before
		case err != nil:
			return 0, fmt.Errorf("uncompress %s: %w", path, err)
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
	for n < len(p) && err == nil {
		var got int
		got, err = r.Read(buf[:min(len(buf), len(p)-n)])
		for i := range got {
			if buf[i] != p[n+i] {
				return n + i, nil
			}
		}
		n += got
	}
	if err == io.EOF {
		err = nil
	}
	return n, err
}
