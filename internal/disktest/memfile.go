package disktest

import (
	"bytes"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/rollway/rollway/internal/disk"
)

// memFile is an open file of a Mem.
type memFile struct {
	m        *Mem
	n        *inode
	name     string
	writable bool
	closed   bool // guarded by m.mu
	locked   bool // guarded by m.mu
}

func (f *memFile) fail(op string, err error) error {
	return &fs.PathError{Op: op, Path: f.name, Err: err}
}

// do calls an operation with mu held, unless the file is closed.
func (f *memFile) do(op string, call func() error) error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.closed {
		return f.fail(op, os.ErrClosed)
	}
	return call()
}

func (f *memFile) ReadAt(p []byte, off int64) (n int, err error) {
	err = f.do("read", func() error {
		n, err = bytes.NewReader(f.n.data).ReadAt(p, off)
		return err
	})
	return n, err
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
	return f.do("truncate", func() error {
		if !f.writable {
			return f.fail("truncate", syscall.EINVAL)
		}
		f.m.resize(f.n, size)
		return nil
	})
}

func (f *memFile) Sync() error {
	return f.do("sync", func() error {
		f.n.synced = bytes.Clone(f.n.data)
		return nil
	})
}

func (f *memFile) Size() (size int64, err error) {
	err = f.do("stat", func() error {
		size = int64(len(f.n.data))
		return nil
	})
	return size, err
}

func (f *memFile) Close() error {
	return f.do("close", func() error {
		f.closed = true
		if f.locked {
			delete(f.m.locks, f.n)
		}
		f.m.unlink(f.n)
		return nil
	})
}

func (f *memFile) TryLock() error {
	return f.do("lock", func() error {
		if f.m.locks[f.n] && !f.locked {
			return disk.ErrLocked
		}
		f.m.locks[f.n], f.locked = true, true
		return nil
	})
}

func (f *memFile) Same() (bool, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	return f.m.names[f.name] == f.n, nil
}
