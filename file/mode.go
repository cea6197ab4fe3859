package file

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/rollway/rollway/internal/direct"
	"github.com/rollway/rollway/internal/disk"
)

// A Mode is how bytes get to the disk. In every mode, bytes of a Write that has
// returned are with the operating system, and the file holds lines and nothing
// else.
type Mode int

const (
	// Buffered leaves it to the operating system. It is the default, and right
	// for most.
	Buffered Mode = iota

	// Direct bypasses the page cache: O_DIRECT on Linux, F_NOCACHE on darwin. It
	// is for whole batches, as from a slab.Writer: each Write goes to the disk
	// by itself, and the last bytes of it, less than a block, through the page
	// cache. Such a File has to know where its file ends, so it has the path to
	// itself: a second Open of it fails. A reader on Linux may see, until it
	// reads again, NUL bytes after what was the last line. A tool that truncates
	// the file, as logrotate's copytruncate does, is not supported: the next
	// Write notices it and tells OnError, and a Write at that very moment leaves
	// a hole. Direct takes 400 KiB of memory, which Close releases, and
	// allocates up to 64 MiB of disk ahead of the end of the file.
	Direct

	// Uncached goes through the page cache and leaves nothing there:
	// RWF_DONTCACHE of Linux 6.14. All else is as with Buffered.
	Uncached
)

// String returns the name of the constant.
func (m Mode) String() string { return direct.Mode(m).String() }

// alone reports whether a File has its path to itself.
func (o Options) alone() bool { return o.Mode == Direct }

var (
	errNotRegular = errors.New("it is not a regular file: only regular files are rotated")
	errNotDirect  = errors.New("it is not a regular file: use Options.Mode Buffered")

	// With Direct the lock of the current file is exclusive; Files of other modes
	// share it.
	errHeld  = fmt.Errorf("somebody else writes to it, and Options.Mode Direct shares a file with nobody: use Options.Mode Buffered or Uncached in all that do, or a path for each: %w", disk.ErrLocked)
	errOwned = fmt.Errorf("somebody has it exclusively, as a File with Options.Mode Direct: use Options.Mode Buffered or Uncached in all that write to it, or a path for each: %w", disk.ErrLocked)
)

const (
	ownerWait = time.Second           // for a lock that others take to look at the end of the file
	childWait = 20 * time.Millisecond // for a process that is being started and has inherited the descriptor
)

// within tries to lock f for so long.
func within(long time.Duration, lock func(*os.File) bool, f *os.File) bool {
	for ; !lock(f); time.Sleep(time.Millisecond) {
		if long -= time.Millisecond; long <= 0 {
			return false
		}
	}
	return true
}

// equip gives a regular file what its mode needs.
func (f *File) equip(t *target) (err error) {
	if f.opt.alone() {
		t.tracked = true
		t.tail, err = f.newTail(*t)
	} else {
		t.appender, err = direct.NewAppender(t.f, direct.Mode(f.Stats().Mode))
	}
	return err
}

// newTail falls back to Buffered where the file system refuses Direct.
func (f *File) newTail(t target) (*direct.Tail, error) {
	o := direct.Options{Mode: direct.Mode(f.Stats().Mode)}
	if size := f.opt.MaxSize; o.Mode == direct.Direct && 0 < size && size < reserve {
		o.Reserve = (size + direct.Align - 1) &^ (direct.Align - 1)
	}
	tail, err := direct.New(t.f, o)
	if o.Mode == direct.Direct && errors.Is(err, errors.ErrUnsupported) {
		f.fallBack(t, err)
		tail, err = direct.New(t.f, direct.Options{})
	}
	return tail, err
}

// reserve is how many bytes package direct allocates ahead of the end.
const reserve = 64 << 20

// fallBack makes this file and later ones Buffered.
func (f *File) fallBack(t target, why error) {
	f.count(func(s *Stats) { s.Mode = Buffered })
	f.notice(note, "%s is written %v, not %v: %w", t.real, Buffered, f.opt.Mode, why)
}

// put appends bufs to the file in use, in place if asked and possible. It
// returns how many of their bytes are there.
func (f *File) put(bufs [][]byte, inPlace bool) (n int64, err error) {
	t := &f.io.target
	switch {
	case t.tracked:
		return f.putTracked(t, bufs, inPlace)
	case t.appender == nil || len(bufs) == 1 && t.appender.Mode() == direct.Buffered:
		n, err = writeEach(t.f, bufs)
	default:
		n, err = t.appender.WriteBuffers(bufs)
		if f.opt.Mode == Uncached && t.appender.Mode() == direct.Buffered && f.Stats().Mode != Buffered {
			f.fallBack(*t, errors.ErrUnsupported)
		}
	}
	f.io.size += n
	return n, err
}

// writeEach writes one buffer after the other.
func writeEach(w io.Writer, bufs [][]byte) (n int64, err error) {
	for _, b := range bufs {
		m, err := w.Write(b)
		n += int64(m)
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// putTracked is put with a Tail.
func (f *File) putTracked(t *target, bufs [][]byte, inPlace bool) (n int64, err error) {
	padded := t.tail.Padded()
	if inPlace {
		n, err = t.tail.WriteBuffers(bufs)
	} else {
		n, err = writeEach(t.tail, bufs)
	}
	if more := t.tail.Padded() - padded; more > 0 {
		f.count(func(s *Stats) { s.PaddedBytes += uint64(more) })
	}
	f.io.size, t.failed = t.tail.Size(), err != nil
	switch {
	case t.tail.Mode() == direct.Direct && errors.Is(err, syscall.EINVAL):
		f.fallBack(*t, err) // the file system took the flag, and then refused the write: inspect makes another Tail
		return n, nil
	case err != nil && n == countBytes(bufs):
		f.tell(writing, f.fail("write", err)) // all of bufs is there: what failed came after it
		return n, nil
	}
	return n, err
}

// inspect checks that a tracked file is as long as it was left, and removes
// what a failed Write has left. A Tail knows where it writes: it would leave a
// hole where another program has truncated the file, and overwrite what another
// appended.
func (f *File) inspect() error {
	t := &f.io.target
	if !t.tracked {
		return nil
	}
	is, err := t.f.Seek(0, io.SeekEnd) // Stat would allocate
	if err != nil {
		return err
	}
	was := f.io.size - f.io.torn
	switch {
	case is == was && !t.failed:
		return nil
	case is >= was && t.failed:
		if err := t.f.Truncate(was); err != nil {
			return fmt.Errorf("remove what a failed write left: %w", err)
		}
		return f.retake(t, was)
	case is < was:
		f.count(func(s *Stats) { s.Truncations++ })
		f.notice(truncated, "%s was truncated from %d bytes to %d by someone else, as by copytruncate, which may lose lines with Options.Mode %v: let it be renamed instead", t.real, was, is, f.opt.Mode)
	default:
		f.notice(grown, "%s has grown from %d bytes to %d: someone else writes to it, which Options.Mode %v does not allow", t.real, was, is, f.opt.Mode)
	}
	if err := f.release(t, is); err != nil {
		return err
	}
	cut, err := f.cutTorn(*t)
	if err != nil {
		return err
	}
	return f.retake(t, is-cut)
}

// release gives up the Tail of t. The file ends at end; what is after that is
// of a write that failed.
func (f *File) release(t *target, end int64) error {
	old := t.tail
	t.tail, t.failed = nil, true
	f.io.torn = 0
	f.io.size = end
	if old == nil {
		return nil
	}
	return errors.Join(old.Restore(), old.Free())
}

// retake makes a new Tail for a file that ends at end.
func (f *File) retake(t *target, end int64) error {
	if err := f.release(t, end); err != nil {
		return err
	}
	tail, err := f.newTail(*t)
	if err != nil {
		return err
	}
	t.tail, t.failed = tail, false
	return nil
}

// renew is reopen where the path still names the file, of which this File must
// not give up the lock.
func (f *File) renew() error {
	if err := f.mend(); err != nil {
		return err
	}
	f.io.bad = nil
	f.io.fsyncs.lost.Store(nil)
	f.count(func(s *Stats) { s.Reopens++ })
	if err := f.link(); err != nil {
		f.tell(linking, f.fail("link", err))
	}
	return nil
}
