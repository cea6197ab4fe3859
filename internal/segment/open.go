package segment

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/rollway/rollway/internal/direct"
	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/logfile"
)

// segment is one open file.
type segment struct {
	f        *os.File
	store    store
	text     *direct.Tail // store, if it is lines
	batches  *batches     // store, if it is framed records
	recycled bool         // it held another segment
	path     string       // without symbolic links
	wrote    bool         // something that stays, since it was opened
	failed   bool         // the latest write; what it left behind the end is taken away

	folder    disk.Folder // that it is in
	folderErr error       // why that is not open
	synced    atomic.Bool // once, since it was opened

	syncing chan struct{} // has a token while there is an fsync: of two at once, one alone is told what failed
	syncErr error         // guarded by syncing; of an fsync: another one would say nothing
}

// store is what knows the end of a file.
type store interface {
	Size() int64       // bytes that were written to stay
	Padded() int64     // of these, what fills blocks
	Mode() direct.Mode // how bytes really get to the disk
	Memory() int       // bytes allocated
	Close() error      // ends the use of the file, and leaves it as long as it should be
	Free() error       // ends it, and leaves the file alone
}

// syncFailed notes that an fsync has failed. Where none did ever succeed, what
// was written counts for nothing.
func (s *segment) syncFailed() { s.wrote = s.wrote && s.synced.Load() }

// close closes what s has open.
func (s *segment) close() error { return errors.Join(s.f.Close(), s.folder.Close()) }

// open opens path, locks it and cuts its torn last line.
func (l *Log) open(path string) (*segment, error) {
	recycled := false
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		recycled = l.recycle(path)
	}
	for range 100 {
		s, err := l.openOnce(path, recycled)
		if !errors.Is(err, errOvertaken) {
			return s, err
		}
	}
	return nil, fmt.Errorf("%s is renamed all the time", path)
}

// errOvertaken means that the file was renamed before it was locked.
var errOvertaken = errors.New("overtaken")

func (l *Log) openOnce(path string, recycled bool) (s *segment, err error) {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return nil, fmt.Errorf("%s is a folder: give the path of a file in it", path)
	case err == nil && !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file: %w", path, errors.ErrUnsupported)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	f, err := disk.OpenFile(path, os.O_RDWR|os.O_CREATE, l.opt.Perm)
	if err != nil {
		return nil, err
	}
	s = &segment{f: f, path: path, recycled: recycled, syncing: make(chan struct{}, 1)}
	opened := s
	defer func() {
		if err != nil {
			_ = opened.close()
		}
	}()
	if err := disk.LockFile(f); errors.Is(err, disk.ErrLocked) {
		return nil, fmt.Errorf("%s is written by another Writer or process: %w", path, err)
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		s.path = real
	}
	if !logfile.StillNames(s.path, f) {
		return nil, errOvertaken
	}
	s.folder, s.folderErr = disk.OpenFolder(filepath.Dir(s.path))
	if info, err := f.Stat(); err == nil {
		_ = f.Truncate(info.Size()) // gives back what a crash has left allocated behind the end
	}
	if ok, err := l.takeOver(s); err != nil {
		return nil, err
	} else if !ok {
		return nil, errOvertaken
	}
	if err := l.start(s); err != nil {
		return nil, err
	}
	return s, nil
}

// start begins to write to s.
func (l *Log) start(s *segment) (err error) {
	if l.opt.Framed {
		if s.batches, err = l.newBatches(s.f); err == nil {
			s.store = s.batches
		}
		return err
	}
	if err := l.cutTorn(s.f); err != nil {
		return fmt.Errorf("%s: %w", s.path, err)
	}
	if s.text, err = l.newTail(s.f); err == nil {
		s.store = s.text
	}
	return err
}

// cutTorn cuts an unterminated last line off, as a crash leaves it.
func (l *Log) cutTorn(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	end, err := logfile.LastLineEnd(f, info.Size(), l.opt.Longest)
	cut := info.Size() - end
	if err != nil || cut == 0 {
		return err
	}
	head := make([]byte, min(cut, 64))
	if _, err := f.ReadAt(head, end); err != nil {
		return err
	}
	if err := f.Truncate(end); err != nil {
		return fmt.Errorf("cut the unterminated last line of %d bytes: %w", cut, err)
	}
	l.notice("%s ended within a line, as after a crash: %d bytes cut, beginning with %q", f.Name(), cut, head)
	return nil
}

// newTail falls back to Buffered where the file system refuses Mode.
func (l *Log) newTail(f *os.File) (*direct.Tail, error) {
	o := direct.Options{Mode: l.mode, Chunk: l.opt.Chunk, InPlace: l.opt.InPlace}
	t, err := direct.New(f, o)
	if l.mode == direct.Buffered || !errors.Is(err, errors.ErrUnsupported) {
		return t, err
	}
	l.fallBack(f.Name(), err)
	o.Mode = l.mode
	return direct.New(f, o)
}

// fallBack makes this file and later ones Buffered.
func (l *Log) fallBack(path string, why error) {
	was := l.mode
	l.mu.Lock()
	l.mode = direct.Buffered
	l.mu.Unlock()
	l.notice("%s is written %v, not %v: %w", path, l.mode, was, why)
}
