package segment

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/rollway/rollway/internal/logfile"
)

// Reopen opens the path anew, if it does not name the file in use, and then
// closes the old file. If it cannot be opened the old file stays in use. From
// the failover it goes back to the first folder.
func (l *Log) Reopen() error {
	path := l.path[0]
	if l.cur != nil && l.bad == nil && l.place == 0 && logfile.StillNames(l.cur.path, l.cur.f) {
		return nil
	}
	s, err := l.open(path)
	if err != nil {
		return fmt.Errorf("reopen, the file in use stays: %w", err)
	}
	old := l.cur
	l.place = 0
	l.use(s)
	l.count(func(st *Stats) { st.Reopens++ })
	if old == nil {
		return nil
	}
	if err := l.retire(old, true); err != nil {
		return fmt.Errorf("the new file is in use, the old one was not closed cleanly: %w", err)
	}
	return nil
}

// rotate gives the file in use a name of its own and opens a new one. If it
// fails the file stays in use.
func (l *Log) rotate(now time.Time) error {
	old := l.cur
	if !logfile.StillNames(old.path, old.f) {
		if err := l.Reopen(); err != nil { // it was moved already
			l.putOff(now, err)
		}
		return nil
	}
	name, err := l.moveAway(old, l.following(now))
	if err != nil {
		l.putOff(now, err)
		return nil
	}
	next, err := l.open(l.path[l.place])
	if err != nil {
		if back := logfile.RenameNew(name, old.path); back != nil {
			err = errors.Join(err, fmt.Errorf("the file is %s now: %w", name, back))
		}
		l.putOff(now, err)
		return nil
	}
	l.use(next)
	l.count(func(st *Stats) { st.Rotations++ })
	if err := l.retire(old, true); err != nil {
		l.notice("close %s: %w", name, err)
	}
	l.behind.prune(old.path)
	return nil
}

// putOff tells that a rotation has failed, which is tried again in a second.
func (l *Log) putOff(now time.Time, err error) {
	l.nextTry = now.Add(time.Second)
	l.notice("rotate, the file in use is written on: %w", err)
}

// following returns the moment for the name of a file that is done now: after the
// one before, also where the clock was set back. By their names the oldest go first.
func (l *Log) following(now time.Time) time.Time {
	now = now.Round(0) // what the clock says, not what has passed
	if back := l.last.Sub(now); 0 <= back && back < clockBack {
		now = l.last.Add(1)
	}
	l.last = now
	return now
}

// moveAway renames a file to a name of its own.
func (l *Log) moveAway(s *segment, now time.Time) (name string, err error) {
	_, inode, err := logfile.Identity(s.f)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return "", err
	}
	for range 100 {
		name = rotatedName(s.path, now, inode)
		if err = logfile.RenameNew(s.path, name); !errors.Is(err, fs.ErrExist) {
			break
		}
		now = now.Add(1)
	}
	return name, err
}

// retire closes a file: its end at once, the rest in the background, after an
// fsync if sync is set. With Each it had that already.
func (l *Log) retire(s *segment, sync bool) error {
	l.padded(s)
	err := s.end()
	l.behind.retire(s, sync && l.opt.Sync != Each)
	return err
}

// end gives back what the Tail has, and leaves the file as long as it should
// be. One that somebody has cut meanwhile is not made longer again.
func (s *segment) end() error {
	info, err := s.f.Stat()
	size := s.store.Size()
	switch {
	case err == nil && s.batches != nil && info.Size() >= size:
		return s.store.Close()
	case err != nil || info.Size() != size && !(s.failed && info.Size() > size):
		return errors.Join(err, s.store.Free())
	}
	if info.Size() > size {
		err = s.text.Cut(size)
	}
	return errors.Join(err, s.store.Close())
}

// padded counts the white space that s got.
func (l *Log) padded(s *segment) {
	l.count(func(st *Stats) { st.Padded += s.store.Padded() })
}

// moveOn leaves the file in use, which has failed, and opens another one: in
// the same folder if the old one took anything, else in the other.
func (l *Log) moveOn(now time.Time) error {
	if errors.Is(l.bad, errMode) {
		l.bad = nil
		return l.renewTail()
	}
	tries := []int{l.place}
	if l.path[1] != "" {
		tries = append(tries, 1-l.place)
	}
	if s := l.cur; s != nil {
		why := l.bad
		l.leave(s, now)
		if !s.wrote && len(tries) == 2 {
			tries[0], tries[1] = tries[1], tries[0]
		}
		l.count(func(st *Stats) { st.Sealed++ })
		l.notice("%s is left for a new file: %w", s.path, why)
	}
	var errs []error
	for _, place := range tries {
		s, err := l.open(l.path[place])
		if err != nil {
			errs = append(errs, err)
			continue
		}
		l.settle(place, now)
		l.use(s)
		return nil
	}
	return errors.Join(errs...)
}

// leave closes a file that has failed, and moves it out of the way if it can be
// moved: its lines under a name of its own, an empty one for good. What it took
// before is still owed to the next Sync, if it was not an fsync that failed.
func (l *Log) leave(s *segment, now time.Time) {
	if logfile.StillNames(s.path, s.f) {
		var err error
		if s.store.Size() <= l.empty() {
			err = os.Remove(s.path)
		} else if _, err = l.moveAway(s, l.following(now)); err == nil {
			l.behind.prune(s.path)
		}
		if err != nil {
			l.notice("%s has failed and stays where it is: %w", s.path, err)
		}
	}
	l.cur = nil
	switch err := l.retire(s, true); {
	case err == nil:
	case s.batches != nil: // what is there of the last batch has no end written over it
		l.notice("batches that may be on the disk in %s are written again elsewhere: %w", s.path, err)
	case !errors.Is(err, syscall.EIO):
		l.notice("close %s: %w", s.path, err)
	}
}

// settle notes which folder is used from now on.
func (l *Log) settle(place int, now time.Time) {
	if place == 1 {
		l.away = now
	}
	if place == 1 && l.place == 0 {
		l.count(func(st *Stats) { st.Failovers++ })
		l.notice("the lines go to the failover %s", l.path[1])
	}
	l.place = place
}

// goHome tries the first folder again.
func (l *Log) goHome(now time.Time) {
	l.away = now
	s, err := l.open(l.path[0])
	if err != nil {
		return
	}
	old := l.cur
	l.place = 0
	l.use(s)
	l.notice("the lines go to %s again", l.path[0])
	if err := l.retire(old, true); err != nil {
		l.notice("close %s: %w", old.path, err)
	}
}
