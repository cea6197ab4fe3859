package slabfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
)

// Open opens path, or with a Geometry creates it, and takes its lock. The error
// wraps ErrLocked, ErrForeign, ErrDamaged, errors.ErrUnsupported (a newer
// version, a network's file system, an operating system that cannot do it), or
// is of the operating system: a disk without room is one, and shows here and
// not as a signal later.
func Open(path string, o Options) (*File, error) {
	f := &File{path: path, options: o}
	if err := f.open(); err != nil {
		if f.file != nil {
			f.release()
			f.file.Close()
		}
		var pe *fs.PathError
		if errors.As(err, &pe) && pe.Path == path {
			return nil, fmt.Errorf("slab file: %w", err)
		}
		return nil, fmt.Errorf("slab file %s: %w", path, err)
	}
	return f, nil
}

func (f *File) open() error {
	o := &f.options
	if o.Owner == "" {
		o.Owner = filepath.Base(os.Args[0])
	}
	owning := o.Geometry != Geometry{} && !o.ReadOnly
	if owning {
		if err := o.Geometry.check(); err != nil {
			return err
		}
		o.Geometry = o.Geometry.normal()
	}
	if !supported {
		return fmt.Errorf("slabs in a mapped file: %w", errors.ErrUnsupported)
	}
	f.heap = o.Memory == Heap || o.Memory == Default && raceEnabled

	created, err := f.openFile(owning)
	if err != nil {
		return err
	}
	info, err := f.file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("it is no regular file: %w", ErrForeign)
	}
	if err := f.lock(); err != nil {
		return err
	}
	if err := checkFileSystem(f.file); err != nil {
		return err
	}
	if owning {
		if err := checkAccess(info); err != nil {
			return err
		}
	}
	if info, err = f.file.Stat(); err != nil { // as it is under the lock
		return err
	}
	ready := false
	if info.Size() > 0 {
		if f.geometry, ready, err = f.readHeader(info.Size()); err != nil {
			return err
		}
	}
	if !ready {
		last := uint64(0)
		if info.Size() > 0 {
			last, err = f.readWord(offDelivered)
		}
		f.geometry = Geometry{}
		if err == nil && owning {
			err = f.build(o.Geometry, last)
		}
		if err != nil && created {
			os.Remove(f.path) // still locked, and nobody's yet
		}
		return err
	}
	return f.take(info.Size(), owning)
}

// openFile opens or, if wanted, creates the file.
func (f *File) openFile(create bool) (created bool, err error) {
	flag := os.O_RDWR
	if f.options.ReadOnly {
		flag = os.O_RDONLY
	}
	f.file, err = openNoFollow(f.path, flag, 0)
	if create && errors.Is(err, fs.ErrNotExist) {
		f.file, err = openNoFollow(f.path, flag|os.O_CREATE|os.O_EXCL, 0o600)
		created = err == nil
		if errors.Is(err, fs.ErrExist) { // since a moment ago
			f.file, err = openNoFollow(f.path, flag, 0)
		}
	}
	return created, err
}

// lock takes the lock or names its holder.
func (f *File) lock() error {
	err := flock(f.file)
	if !errors.Is(err, ErrLocked) {
		if err != nil {
			return fmt.Errorf("lock: %w", err)
		}
		return nil
	}
	p := make([]byte, headerSize)
	if n, _ := f.file.ReadAt(p, 0); n == headerSize {
		if _, _, bad := parseHeader(p); bad == nil {
			if pid := native.Uint64(p[offHolder:]); pid != 0 {
				return fmt.Errorf("%w by process %d", ErrLocked, pid)
			}
		}
	}
	return fmt.Errorf("%w by another process", ErrLocked)
}

func (f *File) readHeader(size int64) (Geometry, bool, error) {
	p := make([]byte, min(size, headerSize))
	if _, err := f.file.ReadAt(p, 0); err != nil {
		return Geometry{}, false, fmt.Errorf("read the header: %w", err)
	}
	g, ready, err := parseHeader(p)
	switch {
	case err != nil:
	case ready && size < g.mapped():
		err = fmt.Errorf("it was cut to %d of %d bytes: %w", size, g.mapped(), ErrDamaged)
	case !ready && size >= g.mapped():
		err = f.checkUnused(g)
	}
	return g, ready, err
}

// checkUnused wants no slab in use in a file that says it is being built.
func (f *File) checkUnused(g Geometry) error {
	table := make([]byte, descriptorSize*g.SlabCount)
	if _, err := f.file.ReadAt(table, headerSize); err != nil {
		return fmt.Errorf("read the descriptors: %w", err)
	}
	for d := table; len(d) > 0; d = d[descriptorSize:] {
		if native.Uint64(d[dSeq:]) != 0 {
			return fmt.Errorf("the header's state is %d, but slabs are in use: %w", stateBuilding, ErrDamaged)
		}
	}
	return nil
}

func (f *File) readWord(offset int64) (uint64, error) {
	var b [8]byte
	_, err := f.file.ReadAt(b[:], offset)
	return native.Uint64(b[:]), err
}

// take uses the file as it is.
func (f *File) take(size int64, owning bool) error {
	if !f.options.ReadOnly {
		// A copy of the file may have holes: give them blocks.
		if err := allocate(f.file, f.geometry.mapped()); err != nil {
			return fmt.Errorf("allocate: %w", err)
		}
	}
	if err := f.fetch(); err != nil {
		return err
	}
	f.owner = parseOwner(f.mem[offOwner:])
	if f.options.ReadOnly {
		return nil
	}
	atomic.StoreUint64(f.word(offHolder), uint64(os.Getpid()))
	for i := range f.geometry.SlabCount {
		if f.load(i, dSeq) != 0 && f.load(i, dFlags)&flagLine != 0 {
			f.lines++
		}
	}
	if !owning {
		return f.flush(0, headerSize)
	}
	pending := f.settle()
	if pending == 0 && f.geometry != f.options.Geometry {
		return f.rebuild(f.options.Geometry)
	}
	if f.lines == 0 && size > f.geometry.mapped() {
		if err := f.file.Truncate(f.geometry.mapped()); err != nil {
			return err
		}
	}
	f.own()
	return f.flush(0, f.geometry.slabsAt())
}

// fetch makes the content of the file f.mem.
func (f *File) fetch() (err error) {
	n := int(f.geometry.mapped())
	if f.heap {
		f.mem = alignedBytes(n)
		if _, err := f.file.ReadAt(f.mem, 0); err != nil {
			return fmt.Errorf("read: %w", err)
		}
		return nil
	}
	if f.mem, err = mapShared(f.file, n, !f.options.ReadOnly); err != nil {
		f.mem = nil
		return fmt.Errorf("map %d bytes: %w", n, err)
	}
	return nil
}

// settle clears the descriptors that hold nothing to deliver and returns how
// many do.
func (f *File) settle() (pending int) {
	for i := range f.geometry.SlabCount {
		switch committed := f.load(i, dCommitted); {
		case f.load(i, dSeq) == 0:
			f.clear(i)
		case committed == f.load(i, dDelivered):
			f.Free(i)
		default:
			pending++
		}
	}
	return pending
}
