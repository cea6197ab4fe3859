package disktest

import (
	"bytes"
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
	return bytes.NewReader(f.n.data).ReadAt(p, off)
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
	f.n.synced = bytes.Clone(f.n.data)
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

func (f *memFile) Same() (bool, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	return f.m.names[f.name] == f.n, nil
}
