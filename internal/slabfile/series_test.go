//go:build linux || darwin

package slabfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
)

// A series is a destination that can tell positions: a rotating file in a
// folder, as small as it can be. Now and then its Write is torn in two, so that
// a kill can come between, or short by some lines.
type series struct {
	mu     sync.Mutex
	dir    string
	limit  int64 // a file is renamed before it grows beyond
	file   *os.File
	size   int64
	number int // of the next renamed file
	rng    *rand.Rand
}

const current = "log"

// openSeries opens the series in dir and cuts a torn last line.
func openSeries(dir string, limit int64, rng *rand.Rand) (*series, error) {
	s := &series{dir: dir, limit: limit, rng: rng}
	old, err := filepath.Glob(filepath.Join(dir, current+".*"))
	if err != nil {
		return nil, err
	}
	s.number = len(old) + 1
	return s, s.open()
}

func (s *series) open() error {
	path := filepath.Join(s.dir, current)
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if s.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600); err != nil {
		return err
	}
	s.size = int64(bytes.LastIndexByte(text, '\n') + 1)
	return s.file.Truncate(s.size)
}

func (s *series) Prepare(n int) (volume, inode uint64, offset int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.size > 0 && s.size+int64(n) > s.limit {
		if err := s.file.Close(); err != nil {
			return 0, 0, 0, err
		}
		path := filepath.Join(s.dir, current)
		if err := os.Rename(path, fmt.Sprintf("%s.%04d", path, s.number)); err != nil {
			return 0, 0, 0, err
		}
		s.number++
		if err := s.open(); err != nil {
			return 0, 0, 0, err
		}
	}
	info, err := s.file.Stat()
	if err != nil {
		return 0, 0, 0, err
	}
	volume, inode = place(info)
	return volume, inode, s.size, nil
}

func place(info fs.FileInfo) (volume, inode uint64) {
	st := info.Sys().(*syscall.Stat_t)
	return uint64(st.Dev), st.Ino
}

func (s *series) Holds(volume, inode uint64, offset int64, p []byte) (int, error) {
	files, err := filepath.Glob(filepath.Join(s.dir, current+"*"))
	if err != nil {
		return 0, err
	}
	for _, path := range files {
		info, err := os.Stat(path)
		if err != nil {
			return 0, err
		}
		if v, i := place(info); v != volume || i != inode {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return 0, err
		}
		text = text[min(offset, int64(len(text))):]
		n := 0
		for n < len(p) && n < len(text) && p[n] == text[n] {
			n++
		}
		return n, nil
	}
	return 0, nil
}

func (s *series) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at := 0; at < len(p); {
		end := len(p)
		if s.rng != nil && s.rng.IntN(3) == 0 {
			end = at + 1 + s.rng.IntN(len(p)-at)
			if whole := bytes.LastIndexByte(p[at:end], '\n') + 1; whole > 0 && s.rng.IntN(2) == 0 {
				end = at + whole
			}
		}
		n, err := s.file.Write(p[at:end])
		s.size += int64(n)
		at += n
		if err != nil {
			return at, err
		}
		if at < len(p) && p[at-1] == '\n' {
			return at, io.ErrShortWrite
		}
	}
	return len(p), nil
}

// sync takes no time and so leaves a kill little: what it stands for is a call
// between all writes and the freeing of the slabs.
func (s *series) sync() error { return nil }

func (s *series) Close() error { return s.file.Close() }

// lines returns all lines of the series in order.
func (s *series) lines() ([]string, error) {
	files, err := filepath.Glob(filepath.Join(s.dir, current+".*"))
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	var all []string
	for _, path := range append(files, filepath.Join(s.dir, current)) {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		all = append(all, splitLines(text)...)
	}
	return all, nil
}

// splitLines cuts text after each line end. A torn last line is a line.
func splitLines(text []byte) (lines []string) {
	for line := range bytes.Lines(text) {
		lines = append(lines, string(line))
	}
	return lines
}

// plain is s as a destination that cannot tell positions.
type plain struct{ io.Writer }
