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
	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/logfile"
)

type target struct {
	f         *os.File
	real      string    // the path of a regular file without symbolic links
	regular   bool      // a file on a disk: it can be truncated and fsynced
	writeOnly bool      // its permissions do not allow reading
	std       bool      // os.Stdout or os.Stderr: never closed
	created   bool      // by this open
	written   time.Time // the last time before this open
	fsyncs    *fsyncs

	size      int64  // bytes of a regular file, as far as is known
	torn      int64  // bytes of a torn line at the end; the next Write deals with them
	keeps     bool   // lines that stay were written to it
	bad       error  // why it is not written any more: the next Write opens another file
	abandoned bool   // abandonFile has handled a bad file
	aside     string // its name as a rotated file, "" for none

	appender *direct.Appender // of a regular file that is not tracked
	tracked  bool             // it is written at the offsets of its Tail, and locked exclusively
	tail     *direct.Tail     // nil after a failure: the next call makes a new one
	failed   bool             // the latest write of tail failed: bytes may be left after the end
}

// standard returns the standard stream that path means, or nil. Opening the path would fail
// for a socket, and give a file a second offset.
func standard(path string) *os.File {
	switch path {
	case "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1":
		return os.Stdout
	case "/dev/stderr", "/dev/fd/2", "/proc/self/fd/2":
		return os.Stderr
	}
	return nil
}

// openTarget opens path for appending, or with exclusive for a Tail.
func openTarget(path string, perm fs.FileMode, exclusive bool) (target, error) {
	if f := standard(path); f != nil {
		return target{f: f, std: true}, nil
	}
	if path == "" {
		return target{}, errors.New("the path is empty")
	}
	if strings.HasSuffix(path, "/") || strings.HasSuffix(path, string(os.PathSeparator)) {
		return target{}, fmt.Errorf("%s names a folder: give the path of a file in it", path)
	}
	info, err := os.Stat(path)
	created := err != nil
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
	case info.Mode()&fs.ModeSocket != 0:
		return target{}, fmt.Errorf("%s is a socket: package remote writes to sockets", path)
	}
	flag := os.O_WRONLY | nonblock
	if created || info.Mode().IsRegular() {
		flag = os.O_RDWR // the end has to be read
	}
	f, err := openFile(path, flag|appending(exclusive)|os.O_CREATE, perm)
	writeOnly := flag == os.O_RDWR && !exclusive && errors.Is(err, fs.ErrPermission)
	if writeOnly {
		f, err = openFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, perm)
	}
	if isUnread(err) && !created && info.Mode()&fs.ModeNamedPipe != 0 {
		return target{}, fmt.Errorf("%s is a named pipe that nobody reads: start its reader first: %w", path, err)
	}
	if err != nil {
		return target{}, err
	}
	if info, err = f.Stat(); err != nil {
		f.Close()
		return target{}, err
	}
	t := target{f: f, real: path, regular: info.Mode().IsRegular(), writeOnly: writeOnly, created: created, written: info.ModTime()}
	if real, err := filepath.EvalSymlinks(path); err == nil && t.regular {
		t.real = real
	}
	return t, nil
}

// openFile opens path so that it can be renamed while it is open.
func openFile(path string, flag int, perm fs.FileMode) (*os.File, error) {
	if runtime.GOOS == "windows" {
		if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
			return os.OpenFile(path, flag, perm) // a pipe, the console, a link: an os.Root refuses them
		}
	}
	return disk.OpenFile(path, flag, perm)
}

func appending(exclusive bool) int {
	if exclusive {
		return 0
	}
	return os.O_APPEND
}

func (t target) measure() int64 {
	if info, err := t.f.Stat(); err == nil && t.regular {
		return info.Size()
	}
	return 0
}

func (t target) close() error {
	if t.std {
		t.f.SetWriteDeadline(time.Time{}) // which Shutdown may have set
		return nil
	}
	return errors.Join(t.endTail(), t.f.Close())
}

// endTail frees the Tail, if there is one, and cuts the file to its length, with no blocks
// after the end. It leaves a file alone that another program has changed.
func (t target) endTail() error {
	if t.tail == nil {
		return nil
	}
	size := t.tail.Size()
	info, err := t.f.Stat()
	switch {
	case err == nil && info.Size() == size:
		return t.tail.Close()
	case err == nil && info.Size() > size && t.failed:
		return errors.Join(t.tail.Cut(size), t.tail.Close())
	}
	return errors.Join(err, t.tail.Free())
}

// cutTorn removes and reports an unterminated last line, and returns its length. The file
// is locked exclusively: another writer may be within a line.
func (f *File) cutTorn(t target) (cut int64, err error) {
	info, err := t.f.Stat()
	if err != nil {
		return 0, err
	}
	size := info.Size()
	end, err := logfile.LastLineEnd(t.f, size)
	if err != nil {
		return 0, err
	}
	if cut = size - end; cut == 0 {
		return 0, nil
	}
	head := make([]byte, min(cut, 64))
	if _, err := t.f.ReadAt(head, end); err != nil {
		return 0, err
	}
	if err := t.truncate(end); err != nil {
		return 0, fmt.Errorf("cut the unterminated last line of %d bytes: %w", cut, err)
	}
	f.count(func(s *Stats) { s.CutBytes += uint64(cut) })
	f.notice(note, "%s ended within a line, as after a crash: %d bytes cut, beginning with %q", t.real, cut, head)
	return cut, nil
}

// truncateLast removes the last n bytes of the file, which this descriptor wrote. It
// reports false if it cannot, or if something else comes after them. For a Tail, inspect
// does it.
func (t target) truncateLast(n int64) bool {
	if !t.regular || t.tracked {
		return false
	}
	end, err := t.f.Seek(0, io.SeekCurrent) // an append leaves it after its last byte
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
	// A Windows handle for appending cannot cut; one by the name can, if that is still its
	// name.
	if _, same, _ := logfile.NewPath(t.f.Name()).Look(t.f); same {
		return os.Truncate(t.f.Name(), size)
	}
	return err
}
