package slabfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/recordlog"
)

// Open opens path, or with a Geometry creates it, and locks it without waiting. The error
// says what to do. It wraps ErrLocked, ErrForeign, ErrDamaged, errors.ErrUnsupported (a
// newer version, a network file system, an operating system without support), or is the
// operating system's: a full disk fails here, and not with a signal later.
func Open(path string, o Options) (*File, error) {
	f := &File{path: path, options: o}
	err := f.open()
	if err == nil {
		return f, nil
	}
	if f.file != nil {
		_ = f.Close()
	}
	if pe, ok := errors.AsType[*fs.PathError](err); ok && pe.Path == f.path {
		return nil, fmt.Errorf("slab file: %w", err)
	}
	return nil, f.errorf("%w", err)
}

func (f *File) open() (err error) {
	o := &f.options
	owning := o.Geometry != Geometry{} && !o.ReadOnly
	if owning {
		if err := o.Geometry.check(); err != nil {
			return err
		}
		if o.Geometry.LineLimit <= o.Geometry.SlabSize {
			o.Geometry.LineLimit = 0 // as in the header
		}
	}
	if !supported {
		return fmt.Errorf("slabs in a mapped file: %w", errors.ErrUnsupported)
	}
	if f.absolute, err = filepath.Abs(f.path); err != nil {
		return err
	}
	created, err := f.openFile(owning)
	if err == nil {
		err = f.secure(owning)
	}
	if err == nil {
		err = f.read(owning)
	}
	if err != nil && created {
		os.Remove(f.path) // still locked, and nobody's yet
	}
	return err
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
	switch {
	case errors.Is(err, syscall.EISDIR):
		err = fmt.Errorf("it is a directory: name a file in it: %w", ErrForeign)
	case errors.Is(err, fs.ErrNotExist) && create:
		err = fmt.Errorf("%w: make the folder first", err)
	}
	return created, err
}

// secure checks that the file may be used, and locks it.
func (f *File) secure(owning bool) error {
	info, err := f.file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("it is no regular file (%v): name one, or a path where nothing is yet: %w", info.Mode(), ErrForeign)
	}
	switch err := disk.TryLock(f.file, true); {
	case errors.Is(err, disk.ErrLocked):
		return f.locked()
	case err != nil:
		return fmt.Errorf("lock: %w", err)
	}
	var remote bool
	if remote, f.memory = fileSystem(f.file); remote {
		return fmt.Errorf("it is on a network file system, where another machine may not see its lock and its mapped memory: put it on a tmpfs: %w", errors.ErrUnsupported)
	}
	if owning {
		return checkAccess(info)
	}
	return nil
}

// locked returns an error that names the process with the lock.
func (f *File) locked() error {
	p, holder := make([]byte, headerSize), "another process"
	if n, _ := f.file.ReadAt(p, 0); n == headerSize {
		if _, _, bad := parseHeader(p); bad == nil {
			holder = fmt.Sprintf("process %d", native.Uint64(p[offHolder:]))
		}
	}
	return fmt.Errorf("%w by %s: each needs a file of its own", ErrLocked, holder)
}

// read uses the file as it is, or builds it.
func (f *File) read(owning bool) error {
	info, err := f.file.Stat() // as it is under the lock
	if err != nil {
		return err
	}
	var g Geometry
	head, ready := make([]byte, min(info.Size(), headerSize)), false
	if info.Size() > 0 {
		if _, err := f.file.ReadAt(head, 0); err != nil {
			return fmt.Errorf("read the header: %w", err)
		}
		g, ready, err = parseHeader(head)
		if err == nil && ready && info.Size() < g.mapped() {
			err = fmt.Errorf("it was cut to %d of %d bytes: %w", info.Size(), g.mapped(), ErrDamaged)
		}
		if errors.Is(err, ErrDamaged) && owning {
			if g == (Geometry{}) {
				g = f.options.Geometry
			}
			ready, f.damage = true, err
			head, err = f.restore(g, head, info.Size())
		}
		switch {
		case errors.Is(err, ErrForeign) && owning:
			return fmt.Errorf("%w: remove it, or name another path", err)
		case err != nil:
			return err
		}
	}
	if ready {
		return f.take(g, head, owning)
	}
	if owning {
		return f.build(f.options.Geometry)
	}
	return nil
}

// restore keeps a copy of the file, whose first page is head, and writes a header for the
// geometry g. What is missing becomes zeros.
func (f *File) restore(g Geometry, head []byte, size int64) (restored []byte, err error) {
	if f.kept, err = f.Copy(); err != nil {
		return nil, fmt.Errorf("%w, and no copy of it could be kept: %w: remove it", f.damage, err)
	}
	restored = g.header()
	if len(head) == headerSize {
		copy(restored[offHolder:], head[offHolder:])
	}
	native.PutUint64(restored[offState:], stateReady)
	if _, err := f.file.WriteAt(restored, 0); err != nil {
		return nil, fmt.Errorf("write the header: %w", err)
	}
	return restored, f.file.Truncate(max(size, g.mapped()))
}

// Copy copies the file to the name that it returns: path.bad, path.bad-2 and so on.
func (f *File) Copy() (kept string, err error) {
	create := func(name string) (*os.File, error) {
		return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	}
	kept = f.path + recordlog.ExtBad
	dst, err := create(kept)
	for i := 2; errors.Is(err, fs.ErrExist) && i <= 1000; i++ {
		kept = fmt.Sprintf("%s%s-%d", f.path, recordlog.ExtBad, i)
		dst, err = create(kept)
	}
	if err != nil {
		return "", fmt.Errorf("copy: %w", err)
	}
	_, err = io.Copy(dst, io.NewSectionReader(f.file, 0, 1<<62))
	if err = errors.Join(err, dst.Close()); err != nil {
		return "", fmt.Errorf("copy: %w", errors.Join(err, os.Remove(kept)))
	}
	return kept, nil
}

// take uses the file as it is.
func (f *File) take(g Geometry, head []byte, owning bool) error {
	f.adopt(g, head)
	if _, err := f.file.ReadAt(f.table, headerSize); err != nil {
		return fmt.Errorf("read the descriptors: %w", err)
	}
	f.owner = parseOwner(head[offOwner:])
	if f.options.ReadOnly {
		return nil
	}
	for i := range g.SlabCount {
		if f.load(i, dSeq) != 0 && f.load(i, dDelivered)>>32 == flagLine {
			f.lines++
		}
	}
	if _, err := f.file.WriteAt(native.AppendUint64(nil, uint64(os.Getpid())), offHolder); err != nil {
		return err
	}
	if err := f.mapAll(); err != nil || !owning { // a copy of the file may have holes
		return err
	}
	pending := f.settle()
	if pending == 0 && g != f.options.Geometry {
		return f.build(f.options.Geometry)
	}
	if f.options.Geometry = g; pending == 0 {
		f.cutLines()
	}
	return f.own()
}

// settle clears the descriptors of slabs with nothing to deliver. It returns how many are
// left or damaged.
func (f *File) settle() (pending int) {
	for i := range f.geometry.SlabCount {
		d := f.descriptor(i)
		switch {
		case !f.tagged(i):
			pending++
		case f.load(i, dSeq) == 0:
			if !bytes.Equal(d, f.free[descriptorSize*i:][:descriptorSize]) {
				f.guard(func() { f.clear(i) })
			}
		case uint32(f.load(i, dCommitted)) == uint32(f.load(i, dDelivered)):
			f.Free(i)
		default:
			pending++
		}
	}
	return pending
}
