package segment

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/rollway/rollway/internal/direct"
	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/framed"
	"github.com/rollway/rollway/internal/logfile"
)

// A Log is the series of files at one path. Its methods are not safe for
// concurrent use, but for Stats and Path.
type Log struct {
	opt   Options
	path  [2]string        // of the first folder, and of the failover or ""
	names [2]*logfile.Path // of the same, to look at
	place int              // index in path of the file in use
	away  time.Time        // when the failover came into use

	cur       *segment  // nil: none is open
	bad       error     // why cur is not written to any more
	nextCheck time.Time // whether the path still names cur
	missing   time.Time // since when the path names nothing
	nextTry   time.Time // of a rotation that failed
	last      time.Time // in the name of the latest file that was done
	behind    *behind
	syncData  func(*os.File) error // disk.SyncData, but in tests

	numbers    *framed.Numbers // of batches
	generation uint64          // of the latest framed file

	mu    sync.Mutex
	mode  direct.Mode // guarded by mu
	stats Stats       // guarded by mu
}

// Stats counts from Open on.
type Stats struct {
	Path        string      // of the file in use
	Mode        direct.Mode // how bytes get to the disk
	Padded      int64       // bytes of white space that fill blocks
	Rotations   uint64      // files that were done and given a name of their own
	Sealed      uint64      // files that were left because they failed
	Reopens     uint64      // times the path was opened anew, because it was asked for or the file was moved
	Failovers   uint64      // moves to the failover folder
	Truncations uint64      // times the file was found shorter than it was left
	Syncs       uint64      // calls of fsync
	SyncErrors  uint64      // of these, failed ones
	Removed     uint64      // old files removed
	Recycled    uint64      // old files written over
}

// Open opens path for appending and creates it if need be, but not its folder.
// A torn last line is cut. Where the disk has failed it opens the file in the
// failover. The error wraps disk.ErrLocked if somebody else writes to the file.
func Open(path string, o Options) (*Log, error) {
	if path == "" {
		return nil, errors.New("the path is empty")
	}
	if os.IsPathSeparator(path[len(path)-1]) {
		return nil, fmt.Errorf("%s names a folder: give the path of a file in it", path)
	}
	if err := direct.Supported(o.Mode); err != nil {
		return nil, err
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	l := &Log{opt: o, mode: o.Mode, path: [2]string{path}, numbers: framed.NewNumbers(), syncData: disk.SyncData}
	if o.Failover != "" {
		dir, err := filepath.Abs(o.Failover)
		if err != nil {
			return nil, err
		}
		if dir == filepath.Dir(path) {
			return nil, fmt.Errorf("failover %s is the folder of the file itself", o.Failover)
		}
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("failover %s is not a folder (%w)", o.Failover, err)
		}
		l.path[1] = filepath.Join(dir, filepath.Base(path))
	}
	for i, path := range l.path {
		l.names[i] = logfile.NewPath(path)
	}
	l.behind = startBehind(l)
	s, err := l.openFirst()
	if err != nil {
		return nil, errors.Join(err, l.behind.stop())
	}
	l.use(s)
	return l, nil
}

// openFirst opens the file in the failover where the first folder's disk has
// failed already.
func (l *Log) openFirst() (*segment, error) {
	s, err := l.open(l.path[0])
	if !isAny(err, broken) || l.path[1] == "" {
		return s, err
	}
	s, awayErr := l.open(l.path[1])
	if awayErr != nil {
		return nil, errors.Join(err, awayErr)
	}
	l.notice("%s cannot be opened: %w", l.path[0], err)
	l.settle(1, time.Now())
	return s, nil
}

// use makes s the file in use.
func (l *Log) use(s *segment) {
	l.cur, l.bad = s, nil
	l.missing = time.Time{}
	l.nextCheck = time.Now().Add(max(l.opt.CheckEvery, 0))
	l.behind.watch(s)
	l.mu.Lock()
	l.stats.Path = s.path
	l.mu.Unlock()
}

// Path returns the path of the file in use.
func (l *Log) Path() string { return l.Stats().Path }

// Stats returns the counters.
func (l *Log) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.stats
	s.Mode = l.mode
	return s
}

func (l *Log) count(change func(*Stats)) {
	l.mu.Lock()
	change(&l.stats)
	l.mu.Unlock()
}

// Memory returns how many bytes a Log has allocated.
func (l *Log) Memory() int { return l.cur.store.Memory() }

func (l *Log) notice(format string, args ...any) {
	if l.opt.Notice != nil {
		l.opt.Notice(fmt.Errorf(format, args...))
	}
}

// Sync forces everything to the disk: files that are done, the one in use and
// their names. A file whose fsync has failed is left; the next write goes to a
// new one.
func (l *Log) Sync() error {
	err := l.behind.wait()
	if l.cur == nil || l.bad != nil {
		return errors.Join(err, l.bad)
	}
	return errors.Join(err, l.syncCurrent())
}

// syncCurrent calls fsync on the file in use and leaves it if that fails.
func (l *Log) syncCurrent() error {
	err := l.syncSegment(l.cur)
	if err != nil {
		l.bad = err
		l.cur.syncFailed()
	}
	return err
}

// Close closes the file in use, which holds no white space at its end that was
// not given.
func (l *Log) Close() error {
	var err error
	if l.cur != nil && l.bad == nil {
		err = l.inspect()
	}
	if l.cur != nil {
		err = errors.Join(err, l.retire(l.cur, l.opt.Sync != Never))
		l.cur = nil
	}
	return errors.Join(err, l.behind.stop())
}
