package file

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"syscall"
	"time"

	"github.com/rollway/rollway/internal/direct"
	"github.com/rollway/rollway/internal/disk"
)

// A Mode is how bytes get to the disk. In every mode, bytes of a Write that has returned
// are with the operating system, and the file holds only lines.
type Mode int

const (
	// Buffered leaves it to the operating system, which suits most programs.
	Buffered Mode = iota

	// Direct bypasses the page cache: O_DIRECT on Linux, F_NOCACHE on darwin. It is for
	// large batches, as from a slab.Writer. The last bytes of a Write, less than a block,
	// go through the page cache. A File must know where its file ends, so it owns the path:
	// a second Open fails. A reader on Linux may see NUL bytes after the last line until it
	// reads again. Tools that truncate the file, as logrotate's copytruncate, are not
	// supported: the next Write notices and tells OnError, and a Write at the same moment
	// leaves a hole. Direct takes 400 KiB of memory and allocates up to 64 MiB of disk
	// ahead of the end of the file.
	Direct

	// Uncached leaves nothing in the page cache: RWF_DONTCACHE of Linux 6.14. Otherwise it
	// is like Buffered.
	Uncached
)

// String returns the name of the constant.
func (m Mode) String() string { return direct.Mode(m).String() }

// exclusive reports whether a File owns its path.
func (o Options) exclusive() bool { return o.Mode == Direct }

var (
	errNotRegular = errors.New("it is not a regular file: only regular files are rotated")
	errNotDirect  = errors.New("it is not a regular file: use Options.Mode Buffered")

	// With Direct the lock of the current file is exclusive; Files of other modes
	// share it.
	errHeld  = fmt.Errorf("another writer has it open, and Options.Mode Direct needs the file for itself: use Options.Mode Buffered or Uncached in all of them, or a path for each: %w", disk.ErrLocked)
	errOwned = fmt.Errorf("another writer owns it, as a File with Options.Mode Direct: use Options.Mode Buffered or Uncached in all of them, or a path for each: %w", disk.ErrLocked)
)

const (
	ownerWait = time.Second           // for a lock that others take to read the end of the file
	childWait = 20 * time.Millisecond // for a process being started that has inherited the descriptor
)

// A File has a lock on its current file: shared, or exclusive with Direct. Maintenance has
// an exclusive one while it compresses or removes a rotated file. So no process, this one
// included, loses what another still writes. On Windows, where a lock keeps others from
// reading, only one process may have a path open.

// lockShared takes the lock of a writer. It returns false if an exclusive one is in the
// way, and true where locks do not work, as on some network file systems.
func lockShared(f *os.File) bool { return tryLock(f, false) }

// lockExclusive returns false if another process writes to f; see lockShared.
func lockExclusive(f *os.File) bool { return tryLock(f, true) }

func tryLock(f *os.File, exclusive bool) bool {
	return runtime.GOOS == "windows" || !errors.Is(disk.TryLock(f, exclusive), disk.ErrLocked)
}

// tryFor tries to lock f until long has passed.
func tryFor(long time.Duration, lock func(*os.File) bool, f *os.File) bool {
	for ; !lock(f); time.Sleep(time.Millisecond) {
		if long -= time.Millisecond; long <= 0 {
			return false
		}
	}
	return true
}

func (f *File) prepareMode(t *target) (err error) {
	if f.opt.exclusive() {
		t.tracked = true
		t.tail, err = f.newTail(*t)
	} else {
		t.appender, err = direct.NewAppender(t.f, direct.Mode(f.Stats().Mode))
	}
	return err
}

// newTail uses Buffered where the file system refuses Direct.
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

func (f *File) fallBack(t target, why error) {
	f.count(func(s *Stats) { s.Mode = Buffered })
	f.notice(note, "%s is written %v, not %v: %w", t.real, Buffered, f.opt.Mode, why)
}

// put appends bufs to the file in use, in place if asked and possible, and returns how many
// of their bytes are there.
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

// inspect checks that a tracked file has its expected length, and removes the rest of a
// failed Write. A Tail writes at its own offsets: it would leave a hole in a file that was
// truncated, and overwrite what others appended.
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
		return f.replaceTail(t, was)
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
	return f.replaceTail(t, is-cut)
}

// release frees the Tail of t. The file ends at end; what follows is of a failed write.
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

func (f *File) replaceTail(t *target, end int64) error {
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

// renew is reopen if the path still names the file, whose lock is kept.
func (f *File) renew() error {
	if err := f.repairTail(); err != nil {
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
