package file

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/logfile"
)

// kept is one rotated file with all that exists of it.
type kept struct {
	time       time.Time // of its rotation
	plain      string    // paths, "" if there is none
	compressed string
	partials   []string
	size       int64 // bytes of plain and compressed
}

// gone reports whether nothing is left but what is not finished.
func (x *kept) gone() bool { return x.plain == "" && x.compressed == "" }

// list returns the series from old to new. Files with a time in the future are
// from before the clock was set back, and so the oldest.
func (s series) list() ([]*kept, error) {
	entries, err := os.ReadDir(s.folder)
	if err != nil {
		return nil, err
	}
	all := map[string]*kept{} // by the name of the plain file
	for _, e := range entries {
		m, ok := s.parse(e.Name())
		if !ok || !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		plain := s.name(member{time: m.time, inode: m.inode})
		x := all[plain]
		if x == nil {
			x = &kept{time: m.time}
			all[plain] = x
		}
		path := filepath.Join(s.folder, e.Name())
		switch {
		case m.partial:
			x.partials = append(x.partials, path)
			continue
		case m.compressed != "":
			x.compressed = path
		default:
			x.plain = path
		}
		x.size += info.Size()
	}
	now := time.Now()
	era := func(x *kept) int {
		if x.time.Sub(now) > clockBack {
			return -1
		}
		return 0
	}
	return slices.SortedFunc(maps.Values(all), func(a, b *kept) int {
		return cmp.Or(era(a)-era(b), a.time.Compare(b.time), strings.Compare(a.plain+a.compressed, b.plain+b.compressed))
	}), nil
}

// never is when the next pass is due if nothing is.
const never = 24 * time.Hour

// pass brings the series to the state that Options ask for. It returns after what
// time to look again at the latest, and false if something is to be tried again
// soon.
func (m *maintenance) pass() (again time.Duration, ok bool) {
	m.syncOwed(false)
	m.tidying.Lock()
	defer m.tidying.Unlock()
	s := m.f.where()
	list, err := s.list()
	if err != nil {
		m.f.tell(tidying, m.f.fail("list rotated files of", err))
		return never, false
	}
	ok = true
	changed := false
	try := func(of topic, did bool, err error) {
		changed = changed || did
		ok = ok && err == nil
		if err != nil && !errors.Is(err, errBusy) && m.ctx.Err() == nil {
			m.f.tell(of, m.f.fail("tidy", err))
		}
	}
	for _, x := range list {
		if m.ctx.Err() != nil {
			return never, false
		}
		did, err := m.repair(x)
		try(tidying, did, err)
		if !m.looked {
			did, err = m.cutTorn(x)
			try(tidying, did, err)
		}
	}
	m.looked = true
	list = slices.DeleteFunc(list, (*kept).gone)
	prune := func() {
		left, did, err := m.prune(list, m.release)
		list = left
		try(removing, did, err)
	}
	if m.f.opt.OnRotated == nil {
		prune() // what goes need not be compressed
	}
	m.tellNews()
	for _, x := range list[:max(0, len(list)-m.f.opt.KeepPlain)] {
		if m.ctx.Err() != nil {
			return never, false
		}
		if m.f.opt.Compress != nil && x.plain != "" && x.compressed == "" {
			try(compressing, true, m.compress(x))
		}
	}
	if m.f.opt.OnRotated != nil {
		prune()
	}
	if changed {
		if err := syncFolders(s.folder); err != nil {
			try(syncing, false, fmt.Errorf("fsync folder %s: %w", s.folder, err))
		}
	}
	again = never
	if age := m.f.opt.KeepAge; age > 0 && len(list) > 0 {
		again = max(age-time.Since(list[0].time), time.Second)
	}
	return min(again, never), ok
}

// cutTorn cuts the part of a line that a power cut has left at the end of a
// rotated file, where the next line would be glued to it. A file of nothing else
// is removed.
func (m *maintenance) cutTorn(x *kept) (did bool, err error) {
	if x.plain == "" || x.compressed != "" || x.size == 0 {
		return false, nil
	}
	f, err := take(x.plain)
	if errors.Is(err, errBusy) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	cut, err := m.f.cutTorn(target{f: f, real: x.plain, regular: true})
	f.Close()
	x.size -= cut
	if err == nil && x.size == 0 {
		return m.removeEmpty(x)
	}
	return cut > 0, err
}

// tellNews tells OnRotated of files that are not compressed.
func (m *maintenance) tellNews() {
	m.mu.Lock()
	news := m.news
	m.news = nil
	m.mu.Unlock()
	for _, path := range news {
		m.tellRotated(path)
	}
}

func (m *maintenance) tellRotated(path string) {
	if m.f.opt.OnRotated == nil {
		return
	}
	defer func() {
		if v := recover(); v != nil {
			m.f.countError(fmt.Errorf("file: Options.OnRotated panicked: %v", v))
		}
	}()
	m.f.opt.OnRotated(path)
}

// prune removes the oldest files beyond what Options keep. It returns the rest
// of list.
func (m *maintenance) prune(list []*kept, release func(*os.File)) (left []*kept, did bool, err error) {
	o := m.f.opt
	var total int64
	for _, x := range list {
		total += x.size
	}
	if o.KeepSize > 0 {
		current := o.MaxSize
		if info, err := os.Stat(m.f.where().path); err == nil {
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
		n-- // also if it cannot be removed, or newer ones would go in its place
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

// remove removes all files of x, unless someone writes to them.
func (x *kept) remove(release func(*os.File)) error {
	for _, path := range append([]string{x.plain, x.compressed}, x.partials...) {
		if path == "" {
			continue
		}
		if err := removeAlone(path, false, release); err != nil {
			return err
		}
	}
	return nil
}

// errBusy is about a file that someone still writes to.
var errBusy = errors.New("another process has it open")

// take opens a rotated file, for writing if its permissions allow that, and locks
// it.
func take(path string) (*os.File, error) {
	f, err := openFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrPermission) {
		f, err = openFile(path, os.O_RDONLY, 0)
	}
	if err != nil {
		return nil, err
	}
	if !within(childWait, lockAlone, f) {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, errBusy)
	}
	return f, nil
}

// takeNamed is take. The error is errBusy if another process has compressed or
// removed the file.
func takeNamed(path string) (*os.File, error) {
	f, err := take(path)
	if err == nil && !logfile.StillNames(path, f) {
		f.Close()
		err = errBusy
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = errBusy
	}
	return f, err
}

// removeAlone removes a file that nobody writes to, or only an empty one. A
// missing file is not an error. What it held is released by release, if that is
// not nil.
func removeAlone(path string, empty bool, release func(*os.File)) error {
	f, err := take(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, fs.ErrPermission) && !empty:
		return os.Remove(path) // it may not be read, but perhaps be removed
	case err != nil:
		return fmt.Errorf("remove: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || empty && info.Size() > 0 {
		return errors.Join(err, errBusy) // it was written to meanwhile
	}
	err = remove(path)
	if err == nil && release != nil {
		release(f)
	}
	return err
}

// remove removes a file, if it exists.
func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

const (
	// releasePiece is how many bytes of a removed file are freed at a time.
	releasePiece = 4 << 20
	// releasePause follows each piece: 4 MiB in 5 ms is faster than a log is
	// written.
	releasePause = 5 * time.Millisecond
)

// release frees the blocks of a removed file piece by piece, unless another
// process has it open or it has another name. Where the file system is mounted
// with discard, removing a file at once tells the disk of all its blocks, and
// writes wait for that: 140 ms were measured for 512 MiB.
func (m *maintenance) release(f *os.File) {
	info, err := f.Stat()
	if err != nil || info.Size() <= releasePiece {
		return
	}
	if unused, _ := disk.Unused(f); !unused {
		return
	}
	for size := info.Size() - releasePiece; size > 0; size -= releasePiece {
		if m.truncate(f, size) != nil {
			return
		}
		select {
		case <-time.After(releasePause):
		case <-m.stop:
			return // Close frees the rest at once
		}
	}
}

// pruneNow makes room for a Write that found the disk full, and reports whether
// it did. It does not wait long for a pass that is under way.
func (m *maintenance) pruneNow() bool {
	for end := time.Now().Add(patience); !m.tidying.TryLock(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	defer m.tidying.Unlock()
	s := m.f.where()
	list, err := s.list()
	if err != nil {
		return false
	}
	_, did, _ := m.prune(list, nil)
	return did
}
