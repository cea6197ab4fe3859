package file

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/rollway/rollway/internal/logfile"
)

// What a Write does before it writes: follow a file that was moved, rotate one
// that is full or of yesterday. The turn is held.

// grace is how long a path may name nothing before the file is made anew:
// programs that move a log away make the new one right after, and logrotate
// moves away what it finds there then.
const grace = time.Second

// ready prepares the file for n more bytes. Nothing that fails here fails the
// Write: it then goes to the file in use.
func (f *File) ready(n int) {
	if !f.io.regular || f.io.std {
		return
	}
	var now time.Time
	if f.opt.CheckEvery > 0 || f.opt.rotates() {
		now = time.Now()
	}
	if f.opt.CheckEvery > 0 && !now.Before(f.io.nextCheck) {
		f.check(now)
	}
	if !f.opt.rotates() {
		return
	}
	rotate, anew := f.opt.overdue(f.io.due, now)
	if anew || f.io.size == 0 {
		f.io.due = f.opt.due(now)
	}
	if f.io.size == 0 {
		return
	}
	if f.opt.MaxSize > 0 && f.io.size+int64(n) > f.opt.MaxSize {
		rotate = true
	}
	if !rotate || now.Before(f.io.nextTry) {
		return
	}
	if err := f.rotate(now); err != nil {
		f.io.backoff = min(max(2*f.io.backoff, time.Second), time.Minute)
		f.io.nextTry = now.Add(f.io.backoff)
		f.tell(f.fail("rotate", fmt.Errorf("the file in use is written on, the next attempt is in %v: %w", f.io.backoff, err)))
		return
	}
	f.io.backoff, f.io.nextTry = 0, time.Time{}
}

// check sees whether the path still means the open file, and how long that is.
func (f *File) check(now time.Time) {
	f.io.nextCheck = now.Add(f.opt.CheckEvery)
	size, same, err := f.name.Look(f.io.f)
	if size < 0 {
		return
	}
	if size < f.io.size && !f.io.tracked { // else inspect has seen it
		f.count(func(s *Stats) { s.Truncations++ })
		f.notice("%s was truncated from %d bytes to %d by someone else", f.path, f.io.size, size)
	}
	if !f.io.tracked {
		f.io.size = size
	}
	switch {
	case same:
		f.io.missing = time.Time{}
		return
	case err == nil:
		f.notice("%s is another file now: the lines go there from here on", f.path)
	case errors.Is(err, fs.ErrNotExist) && f.io.missing.IsZero():
		f.io.missing = now
		f.io.nextCheck = now.Add(min(grace, f.opt.CheckEvery))
		return
	case errors.Is(err, fs.ErrNotExist) && now.Sub(f.io.missing) < grace && now.After(f.io.missing):
		f.io.nextCheck = now.Add(min(grace, f.opt.CheckEvery))
		return
	case errors.Is(err, fs.ErrNotExist):
		f.notice("%s was moved away or removed: it is made anew", f.path)
	default:
		return // what cannot be looked at is not known to have moved
	}
	f.io.missing = time.Time{}
	if err := f.reopen(); err != nil {
		f.tell(f.fail("reopen", err))
		return
	}
	f.count(func(s *Stats) { s.Followed++ })
}

// Rotate ends the file now and begins a new one, which the next Write goes to.
// An empty file is left as it is. If it fails, the file stays in use.
func (f *File) Rotate() error {
	if !f.enter(0) {
		return f.fail("rotate", os.ErrClosed)
	}
	defer f.leave(0, 0)
	err := f.lockUnpinned(context.Background())
	if err == nil {
		err = f.rotateNow()
		f.unlock()
	}
	if err != nil {
		err = f.fail("rotate", err)
		f.countError(err)
	}
	return err
}

func (f *File) rotateNow() error {
	if !f.io.regular || f.io.std {
		return errNotRegular
	}
	if err := f.mend(); err != nil {
		return err
	}
	if f.io.size = f.io.target.size(); f.io.size == 0 {
		return nil
	}
	return f.rotate(time.Now())
}

// rotate gives the file its own name and opens a new one at the path.
func (f *File) rotate(now time.Time) error {
	here, err := f.io.f.Stat()
	if err != nil {
		return err
	}
	there, err := os.Lstat(f.io.real)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case err != nil || !os.SameFile(here, there):
		return f.reopen() // another process has rotated, or a tool
	}
	name, err := f.retire(here, now)
	if errors.Is(err, syscall.ENOSPC) && f.keeper.pruneNow() {
		name, err = f.retire(here, now)
	}
	if errors.Is(err, errOvertaken) {
		return f.reopen()
	}
	if err != nil {
		return err
	}
	next, err := f.successor(here)
	if errors.Is(err, syscall.ENOSPC) && f.keeper.pruneNow() {
		next, err = f.successor(here)
	}
	if errors.Is(err, errOvertaken) {
		f.count(func(s *Stats) { s.Rotations++ })
		return f.reopen()
	}
	if err != nil {
		if back := logfile.RenameNew(name, f.io.real); back != nil && !errors.Is(back, fs.ErrExist) {
			err = fmt.Errorf("%w; the file is %s now: %w", err, name, back)
		}
		return err
	}
	old, syncErr := f.io.target, f.io.syncErr
	f.use(next, now)
	f.count(func(s *Stats) { s.Rotations++ })
	if err := f.keeper.retired(old, name, syncErr); err != nil {
		f.tell(f.fail("rotate", fmt.Errorf("close %s: %w", name, err)))
	}
	return nil
}

// clockBack is by how much the clock may be set back without names that are out of
// order.
const clockBack = time.Hour

// errOvertaken means that another process has rotated in the same instant.
var errOvertaken = errors.New("another process has rotated")

// retire renames the file, which here describes, and returns its new path.
func (f *File) retire(here fs.FileInfo, now time.Time) (string, error) {
	_, inode, err := logfile.Identity(f.io.f)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return "", err
	}
	// After the one before, also when the clock was set back a little, so that
	// the order of names is the order of rotation.
	now = now.Round(0) // what the clock says, not what has passed
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

// renumber renames a file that the other process has just made, and that was
// moved to name, which holds the number of another. It is a rotated file now,
// as that process sees, so a keeper may pack or remove it at any moment.
func (f *File) renumber(name string, now time.Time) error {
	other, err := os.Open(name)
	if err != nil {
		return nil
	}
	defer other.Close()
	if !lockNow(other) || !logfile.StillNames(name, other) {
		return nil // it is being packed under that name
	}
	_, inode, err := logfile.Identity(other)
	if err != nil {
		return nil
	}
	own := f.io.series.name(member{time: now.In(f.opt.Location), inode: inode})
	err = logfile.RenameNew(name, filepath.Join(f.io.series.folder, own))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// moveAway renames the file at the path to the first name from now on that is
// free.
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

// successor opens a new file at the path, with the permissions and the owner of
// the old one.
func (f *File) successor(old fs.FileInfo) (target, error) {
	mode := os.O_RDWR | appending(f.opt.alone())
	if f.io.blind {
		mode = os.O_WRONLY | os.O_APPEND
	}
	next, err := openFile(f.io.real, mode|os.O_CREATE|os.O_EXCL, old.Mode().Perm())
	if errors.Is(err, fs.ErrExist) { // another process was faster
		next, err = openFile(f.io.real, mode, 0)
		if errors.Is(err, fs.ErrNotExist) { // and has rotated again since
			return target{}, errOvertaken
		}
	}
	if err != nil {
		return target{}, err
	}
	// The owner first: changing it takes setuid bits away.
	err = keepOwner(next, old)
	if err = errors.Join(err, next.Chmod(old.Mode().Perm())); err != nil && !f.io.toldOwner {
		f.io.toldOwner = true
		f.notice("%s: the new file could not be given the owner and permissions of the old one, nor perhaps will later ones: %v", f.path, err)
	}
	t := target{f: next, real: f.io.real, regular: true, blind: f.io.blind, made: true}
	locked := t.lock(f.opt.alone())
	switch {
	case !logfile.StillNames(t.real, next): // renamed before it was locked, it may be packed by now
		err = errOvertaken
	case locked:
		if err = f.equip(&t); err == nil {
			return t, nil
		}
	case f.opt.alone():
		err = errHeld
	default:
		err = errOwned
	}
	t.close()
	if locked && err != errOvertaken {
		err = errors.Join(err, removeAlone(t.real, true)) // or the file in use could not be renamed back
	}
	return target{}, err
}
