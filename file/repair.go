package file

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/rollway/rollway/internal/logfile"
)

// Compression writes NAME.gz.part, calls fsync, renames it to NAME.gz, calls fsync on
// the folder and removes NAME. A crash leaves one of these states, which repair ends:
//
//	NAME, NAME.gz.part       the copy is removed, NAME is compressed again
//	NAME, NAME.gz            NAME is removed if the copy is whole, else the copy;
//	                         a power cut may have taken the end of NAME
//	NAME.gz.part             becomes NAME.gz if it is whole; else it is removed
//	NAME of no bytes         is removed: its rename was never completed

func (m *maintenance) repair(x *rotatedFile) (did bool, err error) {
	both := x.plain != "" && x.compressed != ""
	if len(x.partials) == 0 && !both {
		return m.removeEmpty(x)
	}
	if x.plain != "" {
		src, err := acquireNamed(x.plain)
		if err != nil {
			return false, err
		}
		defer src.Close()
		if both {
			if err := m.keepOne(x, src); err != nil {
				return true, err
			}
		}
	}
	for _, path := range x.partials {
		if err := m.finish(x, path); err != nil {
			return true, err
		}
	}
	x.partials = nil
	return true, nil
}

func (m *maintenance) removeEmpty(x *rotatedFile) (did bool, err error) {
	if x.plain == "" || x.size > 0 {
		return false, nil
	}
	if err := removeUnused(x.plain, true, nil); err != nil {
		return false, err
	}
	x.plain = ""
	return true, nil
}

// keepOne keeps src, which is x.plain, or its compressed copy.
func (m *maintenance) keepOne(x *rotatedFile, src io.Reader) error {
	copied, err := openFile(x.compressed, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return errBusy
	}
	if err != nil {
		return err
	}
	defer copied.Close()
	whole, err := m.covers(src, copied, filepath.Ext(x.compressed))
	switch {
	case unreadable(err):
		return fmt.Errorf("%s and its copy %s both stay: %w", x.plain, x.compressed, err)
	case m.ctx.Err() != nil:
		return m.ctx.Err()
	}
	other := &x.plain
	if !whole {
		m.f.notice(note, "%s is not a whole copy of %s, as after a crash: it is made again", x.compressed, x.plain)
		other = &x.compressed
	}
	if err := m.clear(*other); err != nil {
		return err
	}
	*other = ""
	return nil
}

// finish completes or removes an unfinished copy. The caller has locked x.plain, if it
// exists.
func (m *maintenance) finish(x *rotatedFile, path string) error {
	f, err := acquireNamed(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if x.gone() {
		name := strings.TrimSuffix(path, partial)
		whole, err := m.covers(strings.NewReader(""), f, filepath.Ext(name))
		switch {
		case m.ctx.Err() != nil:
			return m.ctx.Err()
		case unreadable(err):
			return fmt.Errorf("%s stays: %w", path, err)
		case whole:
			if err := logfile.RenameNew(path, name); err != nil {
				return err
			}
			x.compressed = name
			m.f.count(func(s *Stats) { s.Recovered++ })
			return nil
		}
		m.f.notice(note, "%s is the beginning of a compressed file whose original is gone: it is removed", path)
	}
	return m.clear(path)
}

func (m *maintenance) clear(path string) error {
	err := remove(path)
	if err == nil {
		m.f.count(func(s *Stats) { s.Recovered++ })
	}
	return err
}

// unreadable reports whether err leaves the contents of a file unknown: the disk failed, or
// the compression is unknown.
func unreadable(err error) bool {
	_, failed := errors.AsType[*fs.PathError](err)
	return failed || errors.Is(err, errUnknownCompression)
}

// covers reports whether packed, uncompressed, has all bytes of plain. It may have more: a
// power cut may have cut plain, which perhaps was never synced.
func (m *maintenance) covers(plain, packed io.Reader, ext string) (all bool, err error) {
	defer recovered(&err)
	unpacked, err := uncompress(&reader{m.ctx, packed}, ext, m.f.opt.Compress)
	if err != nil {
		return false, err
	}
	defer unpacked.Close()
	plain = &reader{m.ctx, plain}
	want, got := make([]byte, 32<<10), make([]byte, 32<<10)
	for {
		n, plainErr := io.ReadFull(plain, want)
		ended := plainErr == io.EOF || plainErr == io.ErrUnexpectedEOF
		if plainErr != nil && !ended {
			return false, plainErr
		}
		if _, err := io.ReadFull(unpacked, got[:n]); err != nil || !bytes.Equal(want[:n], got[:n]) {
			return false, err
		}
		if ended {
			_, err = io.Copy(io.Discard, unpacked)
			return err == nil, err
		}
	}
}
