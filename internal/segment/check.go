package segment

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"
)

// grace is how long a path may name nothing before the file is made anew:
// programs that move a log away make the new one right after.
const grace = time.Second

// inspect sees whether the file has the size that it was left with. A Log knows
// where it writes, and would leave a hole, or write over what another appended.
func (l *Log) inspect() error {
	s := l.cur
	is, err := s.f.Seek(0, io.SeekEnd) // Stat would allocate
	if err != nil {
		l.bad = err
		return err
	}
	was := s.store.Size()
	switch {
	case is == was || is > was && s.batches != nil: // it was longer before it was used again
		return nil
	case is > was && s.failed:
		if err := s.text.Cut(was); err != nil {
			l.bad = err
			return err
		}
		return nil
	case s.batches != nil:
		l.count(func(st *Stats) { st.Truncations++ })
		l.bad = fmt.Errorf("%s was cut from %d bytes to %d by someone else", s.path, was, is)
		return l.bad
	case is < was:
		l.count(func(st *Stats) { st.Truncations++ })
		l.notice("%s was cut from %d bytes to %d by someone else, as by copytruncate, which may lose lines: let it be renamed instead", s.path, was, is)
	default:
		l.notice("%s has grown from %d bytes to %d: someone else writes to it", s.path, was, is)
	}
	return l.renewTail()
}

// renewTail opens the file in use again as it is now.
func (l *Log) renewTail() error {
	s := l.cur
	l.padded(s)
	err := errors.Join(s.text.Restore(), s.text.Free()) // batches are never renewed
	if err == nil {
		err = l.start(s)
	}
	if err != nil {
		l.bad = err
		return fmt.Errorf("%s: %w", s.path, err)
	}
	s.failed = false
	return nil
}

// follow sees whether the path still names the file in use, and opens it anew
// if it does not.
func (l *Log) follow(now time.Time) {
	l.nextCheck = now.Add(l.opt.CheckEvery)
	path := l.path[l.place]
	_, same, err := l.names[l.place].Look(l.cur.f)
	switch {
	case same:
		l.missing = time.Time{}
		return
	case err == nil:
		l.notice("%s is another file now: the lines go there from here on", path)
	case !errors.Is(err, fs.ErrNotExist):
		return // what cannot be looked at is not known to have moved
	case l.missing.IsZero():
		l.missing = now
		fallthrough
	case now.Sub(l.missing) < grace:
		l.nextCheck = now.Add(min(grace, l.opt.CheckEvery))
		return
	default:
		l.notice("%s was moved away or removed: it is made anew", path)
	}
	l.missing = time.Time{}
	if err := l.Reopen(); err != nil {
		l.notice("%w", err)
	}
}
