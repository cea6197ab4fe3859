package file

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/rollway/rollway/internal/logfile"
)

// What happens when a file or a folder fails. The caller has the turn.

// homeAfter is how long the lines go to Options.Failover before the first
// folder is tried again.
const homeAfter = time.Minute

func isBroken(err error) bool {
	return slices.ContainsFunc(broken, func(e error) bool { return errors.Is(err, e) })
}

// isFull reports whether the file in use is sound, and there was no room for more.
func (f *File) isFull() bool { return isFull(f.io.bad) && f.io.fsyncs.failure() == nil }

// openFirst opens the file, in Options.Failover where the first folder has
// failed already.
func (f *File) openFirst() error {
	if dir := f.opt.Failover; dir != "" {
		if info, err := os.Stat(dir); err != nil {
			return fmt.Errorf("Options.Failover: %w", err)
		} else if here, err := os.Stat(filepath.Dir(f.path)); !info.IsDir() || err == nil && os.SameFile(info, here) {
			return fmt.Errorf("bad Options.Failover %s: give a folder other than that of the file", dir)
		}
	}
	err := f.open(0)
	if err == nil || len(f.places) == 1 || !isBroken(err) && !isFull(err) {
		return err
	}
	if awayErr := f.open(1); awayErr != nil {
		return errors.Join(err, awayErr)
	}
	f.notice(note, "%s cannot be opened: %w", f.path, err)
	f.settle(0, time.Now())
	return nil
}

// judge decides after a failed write whether it is worth another try at once: in
// another file, or in this one if there is room now.
func (f *File) judge(err error, now time.Time) (again bool) {
	switch {
	case !f.io.regular:
		return false
	case isBroken(err):
		f.io.bad = err
	case !isFull(err):
	case f.opt.keeps() && f.maintenance.pruneNow():
		return true
	case len(f.places) > 1 && (f.io.at == 0 || !now.Before(f.io.nextHome)):
		f.io.bad = err
	}
	return f.io.bad != nil
}

// moveOn leaves the file in use, which has failed, and opens another one: in the
// same folder if lines have stayed in the old one, else in the other folder.
func (f *File) moveOn(now time.Time) error {
	f.abandonFile(now)
	to := []int{f.io.at, 1 - f.io.at}[:len(f.places)]
	stays := f.io.keeps && (f.io.fsyncs.failure() == nil || f.io.fsyncs.worked.Load())
	if f.isFull() || !stays {
		slices.Reverse(to)
	}
	var errs []error
	for _, at := range to {
		err := f.moveTo(at, now)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// moveTo opens the file at a place and retires the one in use.
func (f *File) moveTo(at int, now time.Time) error {
	old, from := f.io.target, f.io.at
	if err := f.open(at); err != nil {
		return err
	}
	f.settle(from, now)
	if err := f.maintenance.retired(old); err != nil {
		f.tell(closing, f.fail("close", err))
	}
	return nil
}

// abandonFile moves a file that has failed out of the way, if it can be moved:
// under a name of its own, or for good if it is empty.
func (f *File) abandonFile(now time.Time) {
	if f.io.left {
		return
	}
	f.io.left = true
	why := f.io.bad
	f.io.bad = nil
	err := f.mend()
	f.io.bad = why
	if f.io.torn > 0 {
		f.notice(tearing, "%s keeps %d bytes of a line at its end, which is written again elsewhere: %w", f.io.real, f.io.torn, err)
	}
	_ = f.io.endTail()
	f.io.tail, f.io.failed = nil, true
	unlock(f.io.f) // nothing comes after what is in it
	f.count(func(s *Stats) { s.Abandoned++ })
	f.tell(leaving, f.fail("write", fmt.Errorf("%s is left for another file: %w", f.io.real, why)))
	here, err := f.io.f.Stat()
	switch {
	case f.isFull() || err == nil && !logfile.StillNames(f.io.real, f.io.f):
		return
	case err == nil && here.Size() == 0:
		err = removeAlone(f.io.real, true, nil)
	case err == nil:
		f.io.aside, err = f.retire(here, now)
	}
	if err != nil {
		f.notice(staying, "%s has failed and stays where it is: %w", f.io.real, err)
	}
}

// settle counts that the lines come from one place to the one that is now in use.
func (f *File) settle(from int, now time.Time) {
	if f.io.at > 0 {
		f.io.nextHome = now.Add(homeAfter)
	}
	if f.io.at != from && f.io.at > 0 {
		f.count(func(s *Stats) { s.Failovers++ })
	}
}

// sayWhere tells where the lines go that were just written, if that is news. A
// place that takes none is never told.
func (f *File) sayWhere() {
	again := [...]string{" again", ""}[f.io.at]
	if f.io.at != f.io.said && f.notice(note, "the lines go to %s%s", f.places[f.io.at].Text, again) {
		f.io.said = f.io.at
	}
}
