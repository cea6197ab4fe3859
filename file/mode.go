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

// A Mode is how bytes get to the disk. In any mode a Write that has returned is
// with the operating system, and the file is lines and nothing else.
type Mode int

const (
	// Buffered leaves it to the system. It is the default, and right for most.
	Buffered Mode = iota
	// Direct bypasses the page cache: O_DIRECT on Linux, F_NOCACHE on darwin. It
	// is for whole batches, as from a slab.Writer: each Write is one to the disk,
	// and one of less than a block through the page cache. Such a File has to
	// know where its file ends, so it has the path for itself: the second to open
	// it gets an error. On Linux a reader can see for a moment, until it reads
	// again, bytes 0 behind what was the last line before. A tool that cuts the
	// file, as logrotate's copytruncate does, is noticed by the next Write, told
	// to OnNotice and not supported: a Write in that very moment leaves a hole.
	// It takes 400 KiB of memory, which Close gives back.
	Direct
	// Uncached goes through the page cache and leaves nothing there:
	// RWF_DONTCACHE of Linux 6.14. All else is as with Buffered.
	Uncached
)

// String returns the name of the constant.
func (m Mode) String() string {
	switch m {
	case Buffered:
		return "Buffered"
	case Direct:
		return "Direct"
	case Uncached:
		return "Uncached"
	}
	return fmt.Sprintf("Mode(%d)", int(m))
}

// inside returns the Mode of package direct.
func (m Mode) inside() direct.Mode {
	switch m {
	case Direct:
		return direct.Direct
	case Uncached:
		return direct.Uncached
	}
	return direct.Buffered
}

// alone reports whether a File has its path for itself.
func (o Options) alone() bool { return o.Mode == Direct }

var errNotDirect = errors.New("it is not a regular file: such are written with Options.Mode Buffered only")

// With Direct the lock of the current file is held alone, and by several Files of
// other modes together.
var (
	errHeld  = fmt.Errorf("somebody else writes to it, and Options.Mode Direct shares a file with nobody: use Options.Mode Buffered or Uncached in all that do, or a path for each: %w", disk.ErrLocked)
	errOwned = fmt.Errorf("somebody has it for himself, as a File with Options.Mode Direct: use Options.Mode Buffered or Uncached in all that write to it, or a path for each: %w", disk.ErrLocked)
)

// lock waits a moment for the lock: others take it alone to look at the end.
func (t target) lock(alone bool) bool {
	for range 1000 {
		if alone && lockAlone(t.f) || !alone && lockNow(t.f) {
			return true
		}
		time.Sleep(time.Millisecond)
	}
	return false
}

// equip gives t what its mode needs.
func (f *File) equip(t *target) (err error) {
	switch {
	case f.opt.Mode == Direct:
		t.tracked = true
		t.tail, err = f.newTail(*t)
	case f.mode() == Uncached:
		t.uncached, err = direct.NewAppender(t.f, direct.Uncached)
	}
	return err
}

// newTail falls back to Buffered where the file system refuses Direct.
func (f *File) newTail(t target) (*direct.Tail, error) {
	// Each Write cuts the file to its size, and would cut off what is reserved.
	o := direct.Options{Mode: f.mode().inside(), Reserve: -1}
	tail, err := direct.New(t.f, o)
	if o.Mode == direct.Direct && errors.Is(err, errors.ErrUnsupported) {
		f.fallBack(t, err)
		o.Mode = direct.Buffered
		tail, err = direct.New(t.f, o)
	}
	return tail, err
}

// mode returns how bytes get to the disk now.
func (f *File) mode() Mode {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stats.Mode
}

// fallBack makes this file and later ones Buffered.
func (f *File) fallBack(t target, why error) {
	f.count(func(s *Stats) { s.Mode = Buffered })
	f.notice("%s is written %v, not %v: %v", t.real, Buffered, f.opt.Mode, why)
}

// put appends p to the file in use. It returns how many bytes of it are there.
func (f *File) put(p []byte) (n int, err error) {
	t := &f.io.target
	if t.tracked {
		return f.putTracked(t, p)
	}
	if t.uncached == nil {
		n, err = t.f.Write(p)
	} else if n, err = t.uncached.Write(p); t.uncached.Mode() == direct.Buffered {
		f.fallBack(*t, errors.ErrUnsupported)
		t.uncached = nil
	}
	f.io.size += int64(n)
	return n, err
}

func (f *File) putTracked(t *target, p []byte) (n int, err error) {
	n, err = t.tail.Write(p)
	end := t.tail.Size()
	if t.tail.Mode() == direct.Direct && errors.Is(err, syscall.EINVAL) {
		// The file system took the flag, and then refused the write.
		f.fallBack(*t, err)
		if err = f.retake(t, end); err == nil {
			var m int
			m, err = t.tail.Write(p[n:])
			n += m
			end = t.tail.Size()
		}
	}
	t.failed = err != nil
	f.io.size = end
	if n == len(p) && err != nil {
		f.tell(f.fail("write", err)) // all of p is there: what failed came after it
		err = nil
	}
	return n, err
}

// inspect sees whether a tracked file is as long as it was left, and takes back
// what a failed Write has left. A Tail knows where it writes: it would leave a
// hole where another has cut the file, and write over what another appended.
func (f *File) inspect() error {
	t := &f.io.target
	if !t.tracked {
		return nil
	}
	is, err := t.f.Seek(0, io.SeekEnd) // Stat would allocate
	if err != nil {
		return err
	}
	was := t.end
	if t.tail != nil {
		was = t.tail.Size()
	}
	was -= f.io.torn
	switch {
	case is == was && !t.failed:
		return nil
	case is >= was && t.failed && t.tail != nil:
		if err := t.tail.Cut(was); err != nil {
			err = fmt.Errorf("take back what a failed write left: %w", err)
			return errors.Join(err, f.release(t, was)) // the Tail is of no use any more
		}
		t.failed, f.io.torn = false, 0
		f.io.size = was
		return nil
	case is >= was && t.failed:
		if err := t.f.Truncate(was); err != nil {
			return err
		}
	case is < was:
		f.count(func(s *Stats) { s.Truncations++ })
		f.notice("%s was truncated from %d bytes to %d by someone else, as by copytruncate, which may lose lines with Options.Mode %v: let it be renamed instead", f.path, was, is, f.opt.Mode)
		was = is
	default:
		f.notice("%s has grown from %d bytes to %d: someone else writes to it, which Options.Mode %v does not allow", f.path, was, is, f.opt.Mode)
		was = is
	}
	return f.retake(t, was)
}

// release gives up the Tail of t. The file ends at end; what is behind that is
// of a write that failed.
func (f *File) release(t *target, end int64) error {
	old := t.tail
	t.tail, t.end, t.failed = nil, end, true
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

// inPlace reports whether the path leads to the file in use.
func (f *File) inPlace() bool {
	here, err1 := f.io.f.Stat()
	there, err2 := os.Stat(f.path)
	return err1 == nil && err2 == nil && os.SameFile(here, there)
}

// renew is reopen where the path still names the file, of which this File must
// not give up the lock.
func (f *File) renew() error {
	if err := f.mend(); err != nil {
		return err
	}
	f.io.syncErr = nil
	f.keeper.forget(f.io.f)
	f.count(func(s *Stats) { s.Reopens++ })
	if err := f.link(); err != nil {
		f.tell(f.fail("link", err))
	}
	return nil
}
