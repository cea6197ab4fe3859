package file

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/logfile"
)

// grace is how long a path may name nothing before the file is created again: programs that
// move a log away create the new one right after, and logrotate would move away a file that
// it finds there.
const grace = time.Second

// ready prepares a file for n more bytes: it replaces one that has failed, follows one that
// was moved, and rotates one that is full or due. If following or rotating fails, the Write
// goes to the file in use. The caller has the turn.
func (f *File) ready(now time.Time, n int64) error {
	if !f.io.regular {
		return f.repairTail()
	}
	f.io.bad = cmp.Or(f.io.bad, f.io.fsyncs.failure())
	if f.io.bad != nil {
		if err := f.moveOn(now); err != nil {
			return err
		}
	}
	if err := f.repairTail(); err != nil || f.io.pin != nil {
		return err
	}
	if f.io.at > 0 && !now.Before(f.io.nextRetryHome) {
		f.io.nextRetryHome = now.Add(retryHomeAfter)
		_ = f.moveTo(0, now) // an error is no news
	}
	if !f.opt.NoFollow && !now.Before(f.io.nextCheck) {
		f.check(now)
	}
	if f.opt.rotates() {
		f.rotateIfDue(now, n)
	}
	return nil
}

func (f *File) rotateIfDue(now time.Time, n int64) {
	rotate, anew := f.opt.overdue(f.io.due, now)
	if anew || f.io.size == 0 {
		f.io.due = f.opt.due(now)
	}
	rotate = rotate || f.opt.MaxSize > 0 && f.io.size+n > f.opt.MaxSize
	if !rotate || f.io.size == 0 || now.Before(f.io.nextTry) {
		return
	}
	if err := f.rotate(now); err != nil {
		f.io.backoff = min(max(2*f.io.backoff, time.Second), time.Minute)
		f.io.nextTry = now.Add(f.io.backoff)
		f.tell(rotating, f.fail("rotate", fmt.Errorf("the file in use is written on, the next attempt is in %v: %w", f.io.backoff, err)))
		return
	}
	f.io.backoff, f.io.nextTry = 0, time.Time{}
}

// check checks that the path still names the open file.
func (f *File) check(now time.Time) {
	f.io.nextCheck = now.Add(f.every)
	size, same, err := f.locations[f.io.at].Look(f.io.f)
	if size < 0 {
		return
	}
	if !f.io.tracked { // else inspect has seen it
		if size < f.io.size {
			f.count(func(s *Stats) { s.Truncations++ })
			f.notice(truncated, "%s was truncated from %d bytes to %d by someone else", f.io.real, f.io.size, size)
		}
		f.io.size = size
	}
	news := "%s was moved away or removed: it was created again"
	switch {
	case same:
		f.io.missing = time.Time{}
		return
	case err == nil:
		news = "%s is another file now: the lines go there from here on"
	case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR):
		return // it may still be there
	case f.io.missing.IsZero() || now.Sub(f.io.missing) < grace && now.After(f.io.missing):
		f.io.missing = cmp.Or(f.io.missing, now)
		f.io.nextCheck = now.Add(min(grace, f.every))
		return
	}
	f.io.missing = time.Time{}
	old := f.io.f
	err = f.reopen(f.io.at)
	switch {
	case err == nil:
		f.count(func(s *Stats) { s.Followed++ })
		f.notice(note, news, f.locations[f.io.at].Text)
	case f.io.f == old && f.io.at == 0 && len(f.locations) > 1 && f.moveTo(1, now) == nil:
		f.notice(note, "%s cannot be opened: %w", f.path, err)
	default:
		f.tell(reopening, f.fail("reopen", err))
	}
}

// Rotate ends the file now and begins a new one for the next Write. An empty file is left
// as it is. If it fails, the file stays in use.
func (f *File) Rotate() error {
	return f.call("rotate", f.lockUnpinned, f.rotateNow)
}

func (f *File) rotateNow() error {
	if !f.io.regular {
		return errNotRegular
	}
	if err := f.repairTail(); err != nil {
		return err
	}
	if f.io.bad != nil {
		return f.moveOn(time.Now())
	}
	if f.io.size = f.io.measure(); f.io.size == 0 {
		return nil
	}
	return f.rotate(time.Now())
}

// rotate renames the file and opens a new one at the path.
func (f *File) rotate(now time.Time) error {
	err := f.tryRotate(now)
	if errors.Is(err, errOvertaken) {
		return f.reopen(f.io.at)
	}
	return err
}

var errOvertaken = errors.New("another process has rotated")

func (f *File) tryRotate(now time.Time) error {
	here, err := f.io.f.Stat()
	if err != nil {
		return err
	}
	if !logfile.StillNames(f.io.real, f.io.f) {
		return errOvertaken
	}
	name, err := f.renameAside(here, now)
	if disk.IsFull(err) && f.maintenance.pruneNow() {
		name, err = f.renameAside(here, now)
	}
	if err != nil {
		return err
	}
	f.io.aside = name
	next, err := f.successor(here, now)
	if disk.IsFull(err) && f.maintenance.pruneNow() { // one file less may be kept now
		next, err = f.successor(here, now)
	}
	if errors.Is(err, errOvertaken) {
		f.count(func(s *Stats) { s.Rotations++ })
		return err
	}
	if err != nil {
		back := logfile.RenameNew(name, f.io.real)
		if back == nil {
			f.io.aside = ""
		} else if !errors.Is(back, fs.ErrExist) {
			err = fmt.Errorf("%w; the file is %s now: %w", err, name, back)
		}
		return err
	}
	old := f.io.target
	f.use(next, f.io.at)
	f.count(func(s *Stats) { s.Rotations++ })
	if err := f.maintenance.finishOld(old); err != nil {
		f.tell(closing, f.fail("rotate", fmt.Errorf("close %s: %w", name, err)))
	}
	return nil
}

// clockBack is how far the clock may be set back with names still in order.
const clockBack = time.Hour

// renameAside renames the file, which here describes, and returns its new path.
func (f *File) renameAside(here fs.FileInfo, now time.Time) (string, error) {
	_, inode, err := logfile.Identity(f.io.f)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return "", err
	}
	// The order of names is the order of rotation, even after the clock was set back a
	// little.
	now = now.Round(0) // wall clock only
	if f.io.lastRotation.IsZero() {
		if list, err := f.io.series.list(); err == nil && len(list) > 0 {
			f.io.lastRotation = list[len(list)-1].time // an earlier process's
		}
	}
	if last := f.io.lastRotation; !now.After(last) && last.Sub(now) < clockBack {
		now = last.Add(1)
	}
	name, err := f.moveAway(now, inode)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(f.io.series.folder); err == nil {
			return "", errOvertaken
		}
	}
	if err != nil {
		return "", err
	}
	f.io.lastRotation = now
	if there, err := os.Lstat(name); err != nil || os.SameFile(here, there) {
		return name, nil
	}
	return "", cmp.Or(f.renumber(name, now), errOvertaken)
}

// renumber renames a file that another process has just created, and that this one has
// moved to name by mistake: the number in name is another file's. That process may compress
// or remove it at any moment.
func (f *File) renumber(name string, now time.Time) error {
	other, err := openFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil
	}
	defer other.Close()
	_, inode, err := logfile.Identity(other)
	if err != nil || !lockShared(other) || !logfile.StillNames(name, other) {
		return nil // it is being compressed under that name
	}
	own := f.io.series.name(member{time: now.In(f.opt.Location), inode: inode})
	err = logfile.RenameNew(name, filepath.Join(f.io.series.folder, own))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (f *File) moveAway(now time.Time, inode uint64) (name string, err error) {
	s := f.io.series
	for range 100 {
		name = filepath.Join(s.folder, s.name(member{time: now.In(s.loc), inode: inode}))
		if err = logfile.RenameNew(f.io.real, name); !errors.Is(err, fs.ErrExist) {
			return name, err
		}
		now = now.Add(1)
	}
	return "", err
}

// successor opens a new file at the path, with the permissions and the owner of the old
// one.
func (f *File) successor(old fs.FileInfo, now time.Time) (target, error) {
	mode := os.O_RDWR | appending(f.opt.exclusive())
	if f.io.writeOnly {
		mode = os.O_WRONLY | os.O_APPEND
	}
	next, err := openFile(f.io.real, mode|os.O_CREATE|os.O_EXCL, old.Mode().Perm())
	if errors.Is(err, fs.ErrExist) {
		return target{}, errOvertaken
	}
	if err != nil {
		return target{}, err
	}
	f.inherit(next, old)
	t := target{f: next, real: f.io.real, regular: true, writeOnly: f.io.writeOnly, created: true, written: now}
	if err = f.acquireTarget(&t, true); err == nil {
		return t, nil
	}
	t.close()
	if !errors.Is(err, errOvertaken) && !errors.Is(err, disk.ErrLocked) {
		err = errors.Join(err, removeUnused(t.real, true, nil)) // or the file in use could not be renamed back
	}
	return target{}, err
}

// inherit gives a file the owner and permissions of the one that it replaces.
func (f *File) inherit(file *os.File, old fs.FileInfo) {
	// The owner first: a change of it clears setuid bits.
	err := errors.Join(keepOwner(file, old), file.Chmod(old.Mode().Perm()))
	if err != nil && !f.toldOwner.Swap(true) {
		f.notice(note, "%s could not be given the owner and permissions of the file before it, nor perhaps will later ones: %w", file.Name(), err)
	}
}

// link makes Options.Link point at the current file.
func (f *File) link() error {
	if f.opt.Link == "" || !f.io.regular {
		return nil
	}
	path, to := f.opt.Link, f.io.real
	if filepath.Dir(to) == filepath.Dir(path) {
		to = filepath.Base(to) // the folder may be moved
	}
	now, err := os.Readlink(path)
	if err == nil && now == to {
		return nil
	}
	if _, is := os.Lstat(path); err != nil && is == nil {
		return fmt.Errorf("%s is no symbolic link and is left alone", path)
	}
	temp := path + partial + "-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	if err := os.Symlink(to, temp); err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return nil
}
