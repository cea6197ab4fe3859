package segment

import (
	"bytes"
	"errors"
	"syscall"
	"time"

	"github.com/rollway/rollway/internal/direct"
	"github.com/rollway/rollway/internal/framed"
)

// Write appends p, which is whole lines; see WriteBuffers. It does not change p.
func (l *Log) Write(p []byte) (n int, err error) {
	if l.opt.Framed {
		return l.writeText(p)
	}
	if err := l.ready(int64(len(p))); err != nil {
		return 0, err
	}
	m, err := l.append([][]byte{p}, func([][]byte) (int64, error) {
		n, err := l.cur.text.Write(p)
		return int64(n), err
	})
	return int(m), err
}

// WriteBuffers appends the buffers, each of which is whole lines, and returns
// how many of their bytes are in the file: all of them, or up to a line end and
// an error. The caller gives the rest again. It may change what is behind a
// buffer's end, and changes nothing else for good. With Each they are on the
// disk.
func (l *Log) WriteBuffers(bufs [][]byte) (n int64, err error) {
	for len(bufs) > 0 && err == nil {
		if len(bufs[0]) == 0 {
			bufs = bufs[1:]
			continue
		}
		if err = l.ready(int64(len(bufs[0]))); err != nil {
			break
		}
		part := l.fitting(bufs)
		bufs = bufs[len(part):]
		var m int64
		m, err = l.append(part, l.cur.text.WriteBuffers)
		n += m
	}
	return n, err
}

// append has bufs written by write to the file in use. It returns how many bytes
// of them are there to stay: whole lines.
func (l *Log) append(bufs [][]byte, write func([][]byte) (int64, error)) (n int64, err error) {
	s := l.cur
	from := s.store.Size()
	n, err = write(bufs)
	n = l.wrote(bufs, n, err)
	if l.opt.Sync == Each && n > 0 {
		if syncErr := l.syncCurrent(); syncErr != nil {
			n, err = 0, errors.Join(err, syncErr)
			restore(bufs)
			if cutErr := s.text.Cut(from); cutErr != nil {
				l.notice("lines that may be on the disk in %s are written again elsewhere: %w", s.path, cutErr)
			}
		}
	}
	s.wrote = s.wrote || n > 0
	return n, err
}

// fitting returns the buffers at the front of bufs that go to the file in use:
// at least one.
func (l *Log) fitting(bufs [][]byte) [][]byte {
	if l.opt.MaxSize == 0 {
		return bufs
	}
	size := l.cur.store.Size()
	for i, b := range bufs {
		if size += whole(len(b)); i > 0 && size > l.opt.MaxSize {
			return bufs[:i]
		}
	}
	return bufs
}

// empty is the size of a file that holds nothing.
func (l *Log) empty() int64 {
	if l.opt.Framed {
		return framed.SegmentHeaderSize
	}
	return 0
}

// whole is what a buffer of n bytes takes in the file at most.
func whole(n int) int64 { return int64(n) + 2*direct.Align }

// wrote books that n bytes of bufs were written with err. It returns how many
// of them stay: whole lines.
func (l *Log) wrote(bufs [][]byte, n int64, err error) int64 {
	s := l.cur
	s.failed = err != nil
	l.behind.dirty(s)
	if l.mode == direct.Uncached && s.store.Mode() != l.mode {
		l.fallBack(s.path, errors.ErrUnsupported)
	}
	if err == nil {
		return n
	}
	if torn := tornBytes(bufs, n); torn > 0 {
		if cutErr := s.text.Cut(s.store.Size() - torn); cutErr != nil {
			l.bad = errors.Join(err, cutErr)
			l.notice("%s keeps %d bytes of a line at its end, which is written again elsewhere: %w", s.path, torn, cutErr)
		}
		n -= torn
	}
	l.judge(err)
	return n
}

// tornBytes returns how many of the first n bytes of bufs are behind their last
// line end. One that was written where it is has its own behind its end now.
func tornBytes(bufs [][]byte, n int64) (torn int64) {
	for _, b := range bufs {
		part := b[:min(int64(len(b)), n)]
		n -= int64(len(part))
		i := bytes.LastIndexByte(part, '\n')
		switch {
		case len(part) == 0: // nothing of it was written, or nothing is in it
		case len(part) == len(b):
			torn = 0
		case i >= 0:
			torn = int64(len(part) - i - 1)
		default:
			torn += int64(len(part))
		}
	}
	return torn
}

// restore gives buffers their line ends back, in place of which spaces were
// written: they are given again.
func restore(bufs [][]byte) {
	for _, b := range bufs {
		if last := len(b) - 1; last >= 0 && b[last] == ' ' {
			b[last] = '\n'
		}
	}
}

// judge decides whether a file whose write has failed is written to again. It
// is when there may be room later, and where nobody knows.
func (l *Log) judge(err error) {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, errQuota):
	case l.mode != direct.Buffered && errors.Is(err, syscall.EINVAL):
		l.fallBack(l.cur.path, err) // the file system takes the flag, and then refuses the write
		if l.bad = errMode; l.opt.Framed {
			l.bad = err
		}
	case isAny(err, broken):
		l.bad = err
	}
}

// errMode means that the file is good, and its Tail is not.
var errMode = errors.New("the file is opened again in another mode")

func isAny(err error, list []error) bool {
	for _, e := range list {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// ready sees to it that n more bytes go to the file in use.
func (l *Log) ready(n int64) error {
	now := time.Now()
	if l.bad == nil {
		if l.bad = l.behind.verdict(l.cur); l.bad != nil {
			l.cur.syncFailed()
		}
	}
	if l.cur == nil || l.bad != nil {
		if err := l.moveOn(now); err != nil {
			return err
		}
	}
	if l.place == 1 && now.Sub(l.away) >= l.opt.HomeAfter {
		l.goHome(now)
	}
	if err := l.inspect(); err != nil {
		return err
	}
	if l.opt.CheckEvery >= 0 && !now.Before(l.nextCheck) {
		l.follow(now)
	}
	if size := l.cur.store.Size(); l.opt.MaxSize > 0 && size > l.empty() && size+whole(int(n)) > l.opt.MaxSize && !now.Before(l.nextTry) {
		return l.rotate(now)
	}
	return nil
}
