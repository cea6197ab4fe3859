package file

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/logfile"
)

// retryHomeAfter is how long the lines go to Options.Failover before the first folder is
// tried again.
const retryHomeAfter = time.Minute

func isBroken(err error) bool {
	return slices.ContainsFunc(broken, func(e error) bool { return errors.Is(err, e) })
}

// isFull reports whether the file in use failed only because the disk is full.
func (f *File) isFull() bool { return disk.IsFull(f.io.bad) && f.io.fsyncs.failure() == nil }

// openFirst opens the file, in Options.Failover if the first folder fails.
func (f *File) openFirst() error {
	if dir := f.opt.Failover; dir != "" {
		if info, err := os.Stat(dir); err != nil {
			return fmt.Errorf("Options.Failover: %w", err)
		} else if here, err := os.Stat(filepath.Dir(f.path)); !info.IsDir() || err == nil && os.SameFile(info, here) {
			return fmt.Errorf("bad Options.Failover %s: give a folder other than that of the file", dir)
		}
	}
	err := f.open(0)
	if err == nil || len(f.locations) == 1 || !isBroken(err) && !disk.IsFull(err) {
		return err
	}
	if awayErr := f.open(1); awayErr != nil {
		return errors.Join(err, awayErr)
	}
	f.notice(note, "%s cannot be opened: %w", f.path, err)
	f.countMove(0, time.Now())
	return nil
}

// worthRetry reports whether to retry a failed write at once, in another file or in this
// one.
func (f *File) worthRetry(err error, now time.Time) (again bool) {
	switch {
	case !f.io.regular:
		return false
	case isBroken(err):
		f.io.bad = err
	case !disk.IsFull(err):
	case f.opt.keeps() && f.maintenance.pruneNow():
		return true
	case len(f.locations) > 1 && (f.io.at == 0 || !now.Before(f.io.nextRetryHome)):
		f.io.bad = err
	}
	return f.io.bad != nil
}

// moveOn abandons the file in use, which has failed, and opens another one: in the same
// folder if the old one has lines that stay, otherwise in the other folder. The caller has
// the turn.
func (f *File) moveOn(now time.Time) error {
	f.abandonFile(now)
	to := []int{f.io.at, 1 - f.io.at}[:len(f.locations)]
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

func (f *File) moveTo(at int, now time.Time) error {
	old, from := f.io.target, f.io.at
	if err := f.open(at); err != nil {
		return err
	}
	f.countMove(from, now)
	if err := f.maintenance.finishOld(old); err != nil {
		f.tell(closing, f.fail("close", err))
	}
	return nil
}

// abandonFile renames a file that has failed, or removes it if it is empty.
func (f *File) abandonFile(now time.Time) {
	if f.io.abandoned {
		return
	}
	f.io.abandoned = true
	why := f.io.bad
	f.io.bad = nil
	err := f.repairTail()
	f.io.bad = why
	if f.io.torn > 0 {
		f.notice(tearing, "%s keeps %d bytes of a line at its end, which is written again elsewhere: %w", f.io.real, f.io.torn, err)
	}
	_ = f.io.endTail()
	f.io.tail, f.io.failed = nil, true
	disk.Unlock(f.io.f) // nothing comes after what is in it
	f.count(func(s *Stats) { s.Abandoned++ })
	f.tell(leaving, f.fail("write", fmt.Errorf("%s is left for another file: %w", f.io.real, why)))
	here, err := f.io.f.Stat()
	switch {
	case f.isFull() || err == nil && !logfile.StillNames(f.io.real, f.io.f):
		return
	case err == nil && here.Size() == 0:
		err = removeUnused(f.io.real, true, nil)
	case err == nil:
		f.io.aside, err = f.renameAside(here, now)
	}
	if err != nil {
		f.notice(staying, "%s has failed and stays where it is: %w", f.io.real, err)
	}
}

func (f *File) countMove(from int, now time.Time) {
	if f.io.at > 0 {
		f.io.nextRetryHome = now.Add(retryHomeAfter)
	}
	if f.io.at != from && f.io.at > 0 {
		f.count(func(s *Stats) { s.Failovers++ })
	}
}

// reportLocation tells OnError where the latest lines went, if that has changed.
func (f *File) reportLocation() {
	again := [...]string{" again", ""}[f.io.at]
	if f.io.at != f.io.reported && f.notice(note, "the lines go to %s%s", f.locations[f.io.at].Text, again) {
		f.io.reported = f.io.at
	}
}
