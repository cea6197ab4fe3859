package slabfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// ErrLocked is what the error of Open wraps when another holder, in this
// process or another, has the file open.
var ErrLocked = errors.New("in use")

// Memory says where slabs are while a File is open.
type Memory int

const (
	// Default is Mapped, or Heap in a program built with -race.
	Default Memory = iota
	// Mapped: in pages that the file shares. They survive the process.
	Mapped
	// Heap: in this process, written to the file by Close, Rebuild, Done and
	// Recover. They do not survive a kill.
	Heap
)

// Options says how a File is opened.
type Options struct {
	// Geometry is what the file shall have. A file of another one is rebuilt if
	// nothing is pending in it; otherwise it stays as it is, see File.Geometry.
	// The zero value takes an existing file as it is, does not create one, and
	// leaves the owner's name in it: for recovery.
	Geometry Geometry
	// Memory is where slabs are. Default: shared with the file, on the heap
	// under -race.
	Memory Memory
	// Owner is the name that the file remembers beside the process id, cut
	// after 232 bytes. Default: the name of this program.
	Owner string
	// ReadOnly changes nothing in the file and needs no Geometry. Only Pending
	// and what asks may be called then. Default: false.
	ReadOnly bool
}

// A File is an open file of slabs. Until the first Begin it is used by one
// goroutine, which deals with what is pending. After that:
//
//   - Slab, Begin and BeginLine are called, and the committed length is stored,
//     by one goroutine at a time: whoever holds the lock of those who fill.
//   - Mark, Unmark, Delivered and Free are called by the one goroutine that
//     owns the destination, for slabs that are filled no more. Free, then Begin
//     of the same slab happen one after the other.
//   - Close is called when nobody fills and nothing is being written any more.
type File struct {
	path     string
	file     *os.File
	options  Options
	geometry Geometry // zero: nothing is in the file
	mem      []byte   // header, descriptors and slabs; nil with a zero geometry
	heap     bool     // mem is on the heap
	owner    Owner    // as found at Open

	mu    sync.Mutex
	lines int // line rooms in use, guarded by mu
}

// Owner names the process that filled the slabs of a file.
type Owner struct {
	PID    int // 0: unknown
	Name   string
	Opened time.Time
}

func (o Owner) String() string {
	if o.PID == 0 {
		return "an unknown process"
	}
	return fmt.Sprintf("%s (process %d, started to use it at %s)", o.Name, o.PID, o.Opened.UTC().Format(time.RFC3339))
}

// build gives the file the geometry g; nothing in it counts. Whenever it is
// interrupted, the file says that it is being built.
func (f *File) build(g Geometry, lastDelivered uint64) error {
	head := make([]byte, headerSize)
	appendHeader(head[:0], g, newID())
	native.PutUint64(head[offDelivered:], lastDelivered)
	native.PutUint64(head[offHolder:], uint64(os.Getpid()))
	if _, err := f.file.WriteAt(head, 0); err != nil { // one page: all or nothing
		return fmt.Errorf("write the header: %w", err)
	}
	if err := f.file.Truncate(headerSize); err != nil {
		return fmt.Errorf("cut: %w", err)
	}
	if err := allocate(f.file, g.mapped()); err != nil {
		return fmt.Errorf("allocate %d bytes: %w", g.mapped(), err)
	}
	f.geometry, f.lines = g, 0
	if err := f.fetch(); err != nil {
		return err
	}
	f.own()
	atomic.StoreUint64(f.word(offState), stateReady)
	return f.flush(0, headerSize)
}

// Rebuild gives the file the geometry g once nothing is pending in it; without
// one, nothing is left of the file but its header. Slabs got before may not be
// used any more.
func (f *File) Rebuild(g Geometry) error {
	if f.options.ReadOnly {
		return fmt.Errorf("slab file %s: rebuild: %w", f.path, fs.ErrPermission)
	}
	if f.geometry != (Geometry{}) {
		if n := f.settle(); n > 0 {
			return fmt.Errorf("slab file %s: rebuild: %d slabs are not delivered", f.path, n)
		}
	}
	if g != (Geometry{}) {
		if err := g.check(); err != nil {
			return fmt.Errorf("slab file %s: rebuild: %w", f.path, err)
		}
		g = g.normal()
	}
	if err := f.rebuild(g); err != nil {
		return fmt.Errorf("slab file %s: rebuild: %w", f.path, err)
	}
	return nil
}

func (f *File) rebuild(g Geometry) error {
	last := f.LastDelivered()
	if f.mem != nil {
		atomic.StoreUint64(f.word(offState), stateBuilding)
		// The table first: a file that is being built has no slab in use.
		if err := errors.Join(f.flush(headerSize, f.geometry.slabsAt()), f.flush(0, headerSize)); err != nil {
			return err
		}
	}
	err := f.unload()
	f.mem, f.geometry, f.lines = nil, Geometry{}, 0
	if err != nil {
		return err
	}
	if g != (Geometry{}) {
		return f.build(g, last)
	}
	if info, err := f.file.Stat(); err != nil || info.Size() <= headerSize {
		return err
	}
	return f.file.Truncate(headerSize)
}

// unload takes the mapping away from the file; the addresses stay valid.
func (f *File) unload() error {
	if f.mem == nil || f.heap {
		return nil
	}
	return detach(f.mem)
}

// flush brings mem[lo:hi] to the file, where the two are not the same anyway.
func (f *File) flush(lo, hi int64) error {
	if !f.heap || f.mem == nil {
		return nil
	}
	if _, err := f.file.WriteAt(f.mem[lo:hi], lo); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// release undoes all of Open but the lock, which the file's descriptor and, if
// there is one, the mapping hold: it goes with the latter of them.
func (f *File) release() error {
	if f.mem != nil && !f.options.ReadOnly {
		atomic.StoreUint64(f.word(offHolder), 0)
		f.flush(0, headerSize) // nothing depends on it
	}
	return f.unload()
}

// Close lets go of the file and its lock. What was begun and not freed is for
// the next process.
//
// It is called by whoever touches the slabs last: once the lock is gone the
// next owner may use them. For the same reason the file is mapped no more
// afterwards, but the addresses stay taken for the life of the process, with
// private zeros behind them: a Write of a stuck destination that still reads a
// slab sends zeros, and does not fault. That costs address space, not memory.
func (f *File) Close() error {
	if f.file == nil {
		return os.ErrClosed
	}
	var err error
	if f.heap && f.mem != nil && !f.options.ReadOnly {
		err = f.flush(0, f.geometry.mapped())
	}
	err = errors.Join(err, f.release(), f.file.Close())
	f.file = nil
	if err != nil {
		return fmt.Errorf("slab file %s: close: %w", f.path, err)
	}
	return nil
}

// own names this process as the owner.
func (f *File) own() {
	name := f.options.Owner
	if len(name) > maxOwnerName {
		name = name[:maxOwnerName]
	}
	putOwner(f.mem[offOwner:offOwner+ownerHead+maxOwnerName], os.Getpid(), time.Now().UnixNano(), name)
}

// Path is what was given to Open.
func (f *File) Path() string { return f.path }

// Geometry is what the file has room for; it may differ from Options.Geometry
// while something is pending, and is zero if nothing is in the file.
func (f *File) Geometry() Geometry { return f.geometry }

// Owner is who filled the slabs before this Open.
func (f *File) Owner() Owner { return f.owner }

// InMemory reports whether the file system keeps the file in memory. If not,
// the kernel writes the pages to a disk now and then, and whoever stores into
// one at that moment waits for it: milliseconds at times.
func (f *File) InMemory() bool { return inMemory(f.file) }
