package disk

import (
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// memFile is an open file of a Mem.
type memFile struct {
	m        *Mem
	n        *inode
	name     string
	writable bool
	closed   bool // guarded by m.mu
}

func (f *memFile) fail(op string, err error) error {
	return &fs.PathError{Op: op, Path: f.name, Err: err}
}

func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.closed {
		return 0, f.fail("read", os.ErrClosed)
	}
	if off >= int64(len(f.n.data)) {
		return 0, io.EOF
	}
	n := copy(p, f.n.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) WriteAt(p []byte, off int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	switch {
	case f.closed:
		return 0, f.fail("write", os.ErrClosed)
	case !f.writable:
		return 0, f.fail("write", syscall.EBADF)
	}
	var full error
	end := off + int64(len(p))
	if grow := end - int64(len(f.n.data)); grow > 0 && f.m.limit > 0 && f.m.used+grow > f.m.limit {
		full = f.fail("write", syscall.ENOSPC)
		end = min(end, int64(len(f.n.data))+max(0, f.m.limit-f.m.used))
		p = p[:max(0, end-off)]
	}
	if len(p) == 0 {
		return 0, full
	}
	if end > int64(len(f.n.data)) {
		f.m.resize(f.n, end)
	}
	copy(f.n.data[off:], p)
	for s := off / sector; s <= (end-1)/sector; s++ {
		f.n.dirty[s] = true
	}
	f.n.modTime = time.Now()
	return len(p), full
}

func (f *memFile) Truncate(size int64) error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	switch {
	case f.closed:
		return f.fail("truncate", os.ErrClosed)
	case !f.writable:
		return f.fail("truncate", syscall.EINVAL)
	}
	f.m.resize(f.n, size)
	return nil
}

func (f *memFile) Sync() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.closed {
		return f.fail("sync", os.ErrClosed)
	}
	n := f.n
	keep := min(len(n.synced), len(n.data))
	n.synced = append(n.synced[:keep], n.data[keep:]...)
	for s := range n.dirty {
		from := int(s * sector)
		if from < keep {
			copy(n.synced[from:min(from+sector, keep)], n.data[from:])
		}
	}
	clear(n.dirty)
	return nil
}

func (f *memFile) Size() (int64, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.closed {
		return 0, f.fail("stat", os.ErrClosed)
	}
	return int64(len(f.n.data)), nil
}

func (f *memFile) Close() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.closed {
		return f.fail("close", os.ErrClosed)
	}
	f.closed = true
	f.m.unlink(f.n)
	return nil
}
