package file

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/rollway/rollway/internal/direct"
	"github.com/rollway/rollway/internal/logfile"
)

// A target is an open descriptor and what may be done with it.
type target struct {
	f       *os.File
	real    string // the path of a regular file without symbolic links
	regular bool   // a file on a disk: it can be cut and fsynced
	blind   bool   // its permissions do not allow to read it
	std     bool   // os.Stdout or os.Stderr: never closed
	made    bool   // by this open

	tracked  bool             // it is written where its Tail says, and locked alone
	tail     *direct.Tail     // nil if it was lost: the next call makes a new one
	end      int64            // of what was written, where tail is nil
	failed   bool             // the latest write of tail: something may stand behind the end
	uncached *direct.Appender // with Mode Uncached, else nil
}

// openTarget opens path for appending, or with alone for a Tail.
func openTarget(path string, perm fs.FileMode, alone bool) (target, error) {
	// Opening these names fails where the descriptor is a socket, and where it
	// is a file gives it a second offset; the descriptor itself is meant.
	switch path {
	case "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1":
		return target{f: os.Stdout, std: true}, nil
	case "/dev/stderr", "/dev/fd/2", "/proc/self/fd/2":
		return target{f: os.Stderr, std: true}, nil
	}
	if path == "" {
		return target{}, errors.New("the path is empty")
	}
	if strings.HasSuffix(path, "/") || strings.HasSuffix(path, string(os.PathSeparator)) {
		return target{}, fmt.Errorf("%s names a folder: give the path of a file in it", path)
	}
	mode := os.O_WRONLY
	info, err := os.Stat(path)
	made := err != nil
	switch {
	case errors.Is(err, fs.ErrNotExist):
		dir := filepath.Dir(path)
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			return target{}, fmt.Errorf("folder %s does not exist: create it first: %w", dir, err)
		}
	case err != nil:
		return target{}, err // names path
	case info.IsDir():
		return target{}, fmt.Errorf("%s is a folder: give the path of a file in it", path)
	}
	if err != nil || info.Mode().IsRegular() {
		mode = os.O_RDWR // the end has to be read
	} else if alone {
		return target{}, fmt.Errorf("%s: %w", path, errNotDirect)
	}
	f, err := openFile(path, mode|appending(alone)|os.O_CREATE, perm)
	blind := mode == os.O_RDWR && !alone && errors.Is(err, fs.ErrPermission)
	if blind {
		f, err = openFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, perm)
	}
	if err != nil {
		return target{}, err
	}
	if info, err = f.Stat(); err != nil {
		f.Close()
		return target{}, err
	}
	t := target{f: f, real: path, regular: info.Mode().IsRegular(), blind: blind, made: made}
	if t.regular {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			t.real = real
		}
	}
	return t, nil
}

// appending is the flag of a file that is not for a Tail, which says itself
// where it writes.
func appending(alone bool) int {
	if alone {
		return 0
	}
	return os.O_APPEND
}

// size returns the size of a regular file, else 0.
func (t target) size() int64 {
	if !t.regular {
		return 0
	}
	info, err := t.f.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}

// modTime returns when a regular file was last written to, else the zero time.
func (t target) modTime() time.Time {
	if !t.regular {
		return time.Time{}
	}
	info, err := t.f.Stat()
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

func (t target) close() error {
	if t.std {
		t.f.SetWriteDeadline(time.Time{}) // which Shutdown may have set
		return nil
	}
	return errors.Join(t.free(), t.f.Close())
}

// free gives up the Tail, if there is one.
func (t target) free() error {
	if t.tail == nil {
		return nil
	}
	return t.tail.Free()
}

// cutTail cuts off an unterminated last line. It returns how many bytes that
// were and the beginning of them. The file is locked alone: somebody else may be
// within a line.
func (t target) cutTail() (cut int64, head []byte, err error) {
	info, err := t.f.Stat()
	if err != nil {
		return 0, nil, err
	}
	size := info.Size()
	end, err := logfile.LastLineEnd(t.f, size, 0)
	if err != nil {
		return 0, nil, err
	}
	if cut = size - end; cut == 0 {
		return 0, nil, nil
	}
	head = make([]byte, min(cut, 64))
	if _, err := t.f.ReadAt(head, end); err != nil {
		return 0, nil, err
	}
	if err := t.truncate(end); err != nil {
		return 0, nil, fmt.Errorf("cut the unterminated last line of %d bytes: %w", cut, err)
	}
	return cut, head, nil
}

// takeBack cuts the n bytes of a torn line off the end of the file, which are
// the last that this descriptor wrote. It reports false if it must not, as
// something else is behind them or this is not a file, or if it cannot. What a
// Tail has written is taken back by inspect.
func (t target) takeBack(n int64) bool {
	if !t.regular || t.tracked {
		return false
	}
	end, err := t.f.Seek(0, io.SeekCurrent) // an append leaves it behind its last byte
	if err != nil {
		return false
	}
	info, err := t.f.Stat()
	return err == nil && info.Size() == end && end >= n && t.truncate(end-n) == nil
}

func (t target) truncate(size int64) error {
	err := t.f.Truncate(size)
	if err == nil || runtime.GOOS != "windows" {
		return err
	}
	// A Windows handle for appending cannot cut; one by the name can, if the
	// name still means this file.
	here, err1 := t.f.Stat()
	there, err2 := os.Stat(t.f.Name())
	if err1 == nil && err2 == nil && os.SameFile(here, there) {
		return os.Truncate(t.f.Name(), size)
	}
	return err
}
