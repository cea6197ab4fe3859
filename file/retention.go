package file

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/rollway/rollway/internal/logfile"
)

// prune removes the oldest files beyond the bounds of Options and returns the rest of list.
func (m *maintenance) prune(list []*rotatedFile, release func(*os.File)) (left []*rotatedFile, did bool, err error) {
	o := m.f.opt
	var total int64
	for _, x := range list {
		total += x.size
	}
	if o.KeepSize > 0 {
		current := o.MaxSize
		s, _ := m.f.current()
		if info, err := os.Stat(s.path); err == nil {
			current = max(current, info.Size())
		}
		total += current
	}
	n := len(list)
	var errs []error
	for _, x := range list {
		if !(o.KeepCount > 0 && n > o.KeepCount || o.KeepSize > 0 && total > o.KeepSize || o.KeepAge > 0 && time.Since(x.time) >= o.KeepAge) {
			left = append(left, x)
			continue
		}
		n-- // also if it cannot be removed, or newer ones would be removed instead
		total -= x.size
		if err := x.remove(release); err != nil {
			errs = append(errs, err)
			left = append(left, x)
			continue
		}
		did = true
		m.f.count(func(s *Stats) { s.Removed++; s.RemovedBytes += uint64(x.size) })
	}
	return left, did, errors.Join(errs...)
}

func (x *rotatedFile) remove(release func(*os.File)) error {
	for _, path := range append([]string{x.plain, x.compressed}, x.partials...) {
		if path == "" {
			continue
		}
		if err := removeUnused(path, false, release); err != nil {
			return err
		}
	}
	return nil
}

// errBusy is the error for a file that is still being written.
var errBusy = errors.New("another process has it open")

// acquire opens a rotated file, for writing if permitted, and locks it.
func acquire(path string) (*os.File, error) {
	f, err := openFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrPermission) {
		f, err = openFile(path, os.O_RDONLY, 0)
	}
	if err != nil {
		return nil, err
	}
	if !tryFor(childWait, lockExclusive, f) {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, errBusy)
	}
	return f, nil
}

// acquireNamed is acquire. The error is errBusy if another process has compressed or
// removed the file.
func acquireNamed(path string) (*os.File, error) {
	f, err := acquire(path)
	if err == nil && !logfile.StillNames(path, f) {
		f.Close()
		err = errBusy
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = errBusy
	}
	return f, err
}

// removeUnused removes a file that no process writes, and with empty only one of no bytes.
// A missing file is not an error. release, if not nil, frees its blocks.
func removeUnused(path string, empty bool, release func(*os.File)) error {
	f, err := acquire(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, fs.ErrPermission) && !empty:
		return os.Remove(path) // it cannot be read, but perhaps removed
	case err != nil:
		return fmt.Errorf("remove: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || empty && info.Size() > 0 {
		return errors.Join(err, errBusy) // it was written meanwhile
	}
	err = remove(path)
	if err == nil && release != nil {
		release(f)
	}
	return err
}

func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

const (
	// releasePiece is how many bytes of a removed file are freed at a time.
	releasePiece = 4 << 20
	// releasePause follows each piece: 4 MiB in 5 ms is faster than a log is written.
	releasePause = 5 * time.Millisecond
)

// release frees the blocks of a removed file piece by piece. On a file system mounted with
// discard, removing a file discards all its blocks at once, and writes wait for that:
// 140 ms for 512 MiB were measured.
func (m *maintenance) release(f *os.File) {
	for {
		if done, err := m.free(f, releasePiece); done || err != nil {
			return
		}
		select {
		case <-time.After(releasePause):
		case <-m.stop:
			return // Close frees the rest at once
		}
	}
}

// pruneNow makes room for a Write that found the disk full, and reports whether it did.
func (m *maintenance) pruneNow() bool {
	for end := time.Now().Add(stopTimeout); !m.maintaining.TryLock(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	defer m.maintaining.Unlock()
	s, _ := m.f.current()
	list, err := s.list()
	if err != nil {
		return false
	}
	_, did, _ := m.prune(list, nil)
	return did
}
