package slabfile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/rollway/rollway/internal/logfile"
)

// ErrLocked is what the error of Open wraps when the file is open elsewhere, in this
// process or another.
var ErrLocked = errors.New("in use")

// Options says how a File is opened.
type Options struct {
	// Geometry is the wanted one. A file with another one is rebuilt if nothing is
	// pending in it; otherwise it stays as it is, see File.Geometry. A damaged file is
	// copied, see File.Damage, and used. The zero value is for recovery: it takes an
	// existing file as it is, refuses a damaged one, and keeps the owner's name in it.
	Geometry Geometry
	// ReadOnly changes nothing in the file and needs no Geometry. Only Pending and the
	// methods that return something may be called.
	ReadOnly bool
}

// A File is an open file of slabs. One goroutine at a time may call its methods, except
// that Check may run concurrently with all but Renew and Close.
type File struct {
	path     string // as given to Open
	absolute string
	file     *os.File
	options  Options
	geometry Geometry // zero: nothing is in the file
	owner    Owner    // as found at Open
	kept     string   // see Damage
	damage   error

	head  []byte // the constant part of the header
	free  []byte // the descriptors when all slabs are free
	table []byte // the descriptors now; see descriptor
	lines int    // line rooms in use

	memory bool         // the file system keeps the file in memory
	mem    []byte       // header, descriptors and slabs in mapped memory, or nil
	end    atomic.Int64 // of what is in the file
}

// errorf returns an error that names the file.
func (f *File) errorf(format string, args ...any) error {
	return fmt.Errorf("slab file %s: %w", f.path, fmt.Errorf(format, args...))
}

// build gives the file the geometry g, with all slabs free; without one it leaves only a
// header. Until it is done, the file says that it is being built.
func (f *File) build(g Geometry) error {
	if err := f.unmap(); err != nil {
		return err
	}
	head := cmp.Or(g, f.geometry, f.options.Geometry).header()
	f.geometry, f.lines = Geometry{}, 0
	native.PutUint64(head[offState:], stateVoid)
	native.PutUint64(head[offHolder:], uint64(os.Getpid()))
	if _, err := f.file.WriteAt(head, 0); err != nil { // one page: all or nothing
		return fmt.Errorf("write the header: %w", err)
	}
	if err := f.file.Truncate(headerSize); err != nil {
		return fmt.Errorf("cut: %w", err)
	}
	if g == (Geometry{}) {
		return nil
	}
	f.adopt(g, head)
	copy(f.table, f.free)
	if err := f.mapAll(); err != nil {
		return err
	}
	if _, err := f.file.WriteAt(f.table, headerSize); err != nil {
		return fmt.Errorf("write the descriptors: %w", err)
	}
	return f.own()
}

// adopt makes g the geometry of the file, which begins with head.
func (f *File) adopt(g Geometry, head []byte) {
	f.geometry, f.head, f.free = g, bytes.Clone(head[:constantSize]), g.table(head)
	f.table = make([]byte, len(f.free))
}

// mapAll allocates and maps all but the line rooms.
func (f *File) mapAll() (err error) {
	n := f.geometry.mapped()
	if err = allocate(f.file, n); err != nil {
		return fmt.Errorf("allocate %d bytes: %w: make room, or make the slabs fewer or smaller", n, err)
	}
	if f.mem, err = mapShared(f.file, int(n)); err != nil {
		return fmt.Errorf("map %d bytes: %w", n, err)
	}
	if !populate(f.mem) {
		f.touch()
	}
	f.end.Store(n)
	return nil
}

// touch stores into each page what is there. A page of a tmpfs counts as a hole before
// its first store.
func (f *File) touch() {
	f.guard(func() {
		for at := 0; at < len(f.mem); at += alignment {
			atomic.AddUint32((*uint32)(unsafe.Pointer(&f.mem[at])), 0)
		}
	})
}

// own names this process as the owner of the file, which is ready.
func (f *File) own() error {
	owner := Owner{PID: os.Getpid(), Name: filepath.Base(os.Args[0]), Opened: time.Now()}
	_, err := f.file.WriteAt(owner.bytes(), offOwner)
	if err == nil {
		_, err = f.file.WriteAt(native.AppendUint64(nil, stateReady), offState)
	}
	if err != nil {
		return fmt.Errorf("write the owner: %w", err)
	}
	return nil
}

// Empty reduces the file to its header if nothing is pending.
func (f *File) Empty() error {
	if f.options.ReadOnly {
		return f.errorf("empty: %w", fs.ErrPermission)
	}
	if n := f.settle(); n > 0 {
		return f.errorf("empty: %d slabs are not delivered", n)
	}
	if err := f.build(Geometry{}); err != nil {
		return f.errorf("empty: %w", err)
	}
	return nil
}

// Check returns an error if another program has changed the file or its name so that it
// is of no use any more. The error is certain only while no other method runs.
func (f *File) Check() error {
	end := f.end.Load()
	info, err := f.file.Stat()
	named, gone := os.Lstat(f.absolute)
	head := make([]byte, constantSize)
	switch {
	case err != nil:
	case errors.Is(gone, fs.ErrNotExist):
		err = errors.New("it was deleted or renamed")
	case gone != nil:
		err = gone
	case !os.SameFile(info, named):
		err = errors.New("it was replaced by another file")
	case info.Size() < end:
		err = fmt.Errorf("it was cut to %d of %d bytes", info.Size(), end)
	default:
		if _, err = f.file.ReadAt(head, 0); err == nil && !bytes.Equal(head, f.head) {
			err = errors.New("its header was written over")
		} else if at := firstHole(f.file); f.memory && at >= 0 && at < f.geometry.mapped() {
			err = fmt.Errorf("it has a hole at byte %d", at)
		}
	}
	if err != nil {
		return f.errorf("%w", err)
	}
	return nil
}

// Void says that nothing in the file counts any more: this process continues without it.
// The file stays open for Renew.
func (f *File) Void() {
	f.guard(func() { atomic.StoreUint64((*uint64)(unsafe.Pointer(&f.mem[offState])), stateVoid) })
}

// Renew returns a file at the same path with all slabs free: f, if it is still there, or
// a new one, and closes f. After an error f is as Void has left it.
func (f *File) Renew() (*File, error) {
	if logfile.StillNames(f.absolute, f.file) {
		if err := f.build(f.options.Geometry); err != nil {
			return f, f.errorf("%w", err)
		}
		return f, nil
	}
	n, err := Open(f.absolute, f.options)
	if err != nil {
		return f, err
	}
	if n.settle() > 0 {
		return f, errors.Join(n.errorf("it has lines of %v", n.owner), n.Close())
	}
	_ = f.Close()
	return n, nil
}

func (f *File) unmap() error {
	mem := f.mem
	if f.mem = nil; mem == nil {
		return nil
	}
	return unmap(mem)
}

// Close closes the file and releases its lock. What was begun and not freed is for the
// next process. The memory of slabs is invalid afterwards.
func (f *File) Close() error {
	if f.file == nil {
		return os.ErrClosed
	}
	err := errors.Join(f.unmap(), f.file.Close())
	f.file = nil
	if err != nil {
		return f.errorf("close: %w", err)
	}
	return nil
}

// Path returns the path given to Open.
func (f *File) Path() string { return f.path }

// Geometry returns what the file has room for. It differs from Options.Geometry while
// something is pending, and is zero if nothing is in the file.
func (f *File) Geometry() Geometry { return f.geometry }

// Owner returns the process that filled the slabs before this Open.
func (f *File) Owner() Owner { return f.owner }

// Damage returns the damage that Open has found, if any, and where a copy of the file is
// kept. Options.Geometry is used in place of a header that is lost.
func (f *File) Damage() (kept string, err error) { return f.kept, f.damage }

// InMemory reports whether the file system keeps the file in memory. If not, the kernel
// writes pages to a disk now and then, and a store into one of them may wait for
// milliseconds.
func (f *File) InMemory() bool { return f.memory }
