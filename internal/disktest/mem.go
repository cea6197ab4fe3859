// Package disktest is disks for tests: [Mem] is in memory and can be copied as a crash
// would leave it, [Faulty] fails on request. Names in Mem have slashes. Errors are those of
// disk.Real.
package disktest

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/rollway/rollway/internal/disk"
)

// sector is the unit in which a crash keeps or loses bytes.
const sector = 512

// Mem is a disk.FS in memory that knows which bytes and names are durable. It is safe for
// concurrent use and does not check permissions.
type Mem struct {
	mu      sync.Mutex
	names   map[string]*inode // what a process sees
	durable map[string]*inode // what survives a power cut
	pending []nameOp          // what leads from durable to names, in order
	locks   map[any]bool      // by name, or by *inode
	limit   int64             // bytes all files may hold; 0: no limit
	used    int64
}

type inode struct {
	dir     bool
	data    []byte
	synced  []byte // content at the last Sync
	modTime time.Time
	links   int // names plus open files
}

type nameOp struct {
	kind Kind // Open (creation), Remove or Rename
	name string
	to   string // of a Rename
	n    *inode
}

func (op nameOp) apply(names map[string]*inode) {
	switch {
	case op.kind == Open:
		names[op.name] = op.n
	case names[op.name] != op.n:
	case op.kind == Remove:
		delete(names, op.name)
	case op.kind == Rename:
		delete(names, op.name)
		names[op.to] = op.n
	}
}

func NewMem() *Mem {
	m := &Mem{names: map[string]*inode{}, durable: map[string]*inode{}, locks: map[any]bool{}}
	for _, root := range []string{"/", "."} {
		n := &inode{dir: true, links: 1}
		m.names[root], m.durable[root] = n, n
	}
	return m
}

// SetLimit makes writes beyond n bytes in all files fail with ENOSPC, after storing what
// fits; 0: no limit.
func (m *Mem) SetLimit(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.limit = n
}

// KillClone returns the file system after the death of the process: with every finished
// write, and locks free.
func (m *Mem) KillClone() *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	return cloneOf(m.names, func(n *inode) []byte { return n.data })
}

// PowerCutClone returns the file system after a power cut, with locks free. With a nil rng
// only durable bytes and names survive. Otherwise each creation, removal, rename and
// 512-byte sector that is not durable survives by chance; the size of a file is the old
// one, the new one or between, and lost bytes read as zeros or as what was durable before.
func (m *Mem) PowerCutClone(rng *rand.Rand) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	if rng == nil {
		return cloneOf(m.durable, func(n *inode) []byte { return n.synced })
	}
	names := maps.Clone(m.durable)
	for _, op := range m.pending {
		if rng.IntN(2) == 0 {
			op.apply(names)
		}
	}
	content := map[*inode][]byte{}
	for _, name := range slices.Sorted(maps.Keys(names)) { // one seed, one clone
		if n := names[name]; content[n] == nil {
			content[n] = n.afterCut(rng)
		}
	}
	return cloneOf(names, func(n *inode) []byte { return content[n] })
}

func (n *inode) afterCut(rng *rand.Rand) []byte {
	size := len(n.synced)
	if span := len(n.data) - size; span > 0 {
		switch rng.IntN(3) {
		case 0:
			size = len(n.data)
		case 1:
			size += rng.IntN(span + 1)
		}
	} else if span < 0 && rng.IntN(2) == 0 {
		size = len(n.data)
	}
	out := make([]byte, size)
	copy(out, n.synced)
	for from := 0; from < min(size, len(n.data)); from += sector {
		if rng.IntN(2) == 0 {
			copy(out[from:min(from+sector, size)], n.data[from:])
		}
	}
	return out
}

func cloneOf(names map[string]*inode, content func(*inode) []byte) *Mem {
	c := NewMem()
	copies := map[*inode]*inode{}
	for name, n := range names {
		cp := copies[n]
		if cp == nil {
			data := content(n)
			cp = &inode{dir: n.dir, data: bytes.Clone(data), synced: bytes.Clone(data), modTime: n.modTime}
			copies[n] = cp
			c.used += int64(len(data))
		}
		cp.links++
		c.names[name], c.durable[name] = cp, cp
	}
	return c
}

// ReadFile returns a copy of the bytes of name.
func (m *Mem) ReadFile(name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.names[path.Clean(name)]
	if n == nil || n.dir {
		return nil, &fs.PathError{Op: "read", Path: name, Err: syscall.ENOENT}
	}
	return bytes.Clone(n.data), nil
}

// WriteFile replaces or creates name, durably.
func (m *Mem) WriteFile(name string, data []byte) error {
	f, err := m.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o640)
	if err != nil {
		return err
	}
	if _, err = f.WriteAt(data, 0); err == nil {
		err = f.Sync()
	}
	return cmp.Or(err, f.Close(), m.SyncDir(path.Dir(path.Clean(name))))
}

func (m *Mem) OpenFile(name string, flag int, _ fs.FileMode) (disk.File, error) {
	name = path.Clean(name)
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.names[name]
	fail := func(errno syscall.Errno) (disk.File, error) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errno}
	}
	switch {
	case n == nil && flag&os.O_CREATE == 0:
		return fail(syscall.ENOENT)
	case n == nil:
		if parent := m.names[path.Dir(name)]; parent == nil || !parent.dir {
			return fail(syscall.ENOENT)
		}
		n = &inode{modTime: time.Now(), links: 1}
		m.change(nameOp{kind: Open, name: name, n: n})
	case flag&(os.O_CREATE|os.O_EXCL) == os.O_CREATE|os.O_EXCL:
		return fail(syscall.EEXIST)
	case n.dir:
		return nil, &fs.PathError{Op: "open", Path: name, Err: fmt.Errorf("%w but a folder (%w)", disk.ErrNotFile, syscall.EISDIR)}
	}
	if flag&os.O_TRUNC != 0 {
		m.resize(n, 0)
	}
	n.links++
	return &memFile{m: m, n: n, name: name, writable: flag&(os.O_WRONLY|os.O_RDWR) != 0}, nil
}

func (m *Mem) List(dir string) ([]disk.Entry, error) {
	dir = path.Clean(dir)
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := m.names[dir]; n == nil || !n.dir {
		return nil, &fs.PathError{Op: "list", Path: dir, Err: syscall.ENOENT}
	}
	var entries []disk.Entry
	for _, name := range slices.Sorted(maps.Keys(m.names)) {
		if n := m.names[name]; name != dir && path.Dir(name) == dir {
			entries = append(entries, disk.Entry{Name: path.Base(name), Size: int64(len(n.data)), ModTime: n.modTime, Dir: n.dir})
		}
	}
	return entries, nil
}

func (m *Mem) Rename(oldname, newname string) error {
	oldname, newname = path.Clean(oldname), path.Clean(newname)
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.names[oldname]
	if n == nil || m.names[path.Dir(newname)] == nil {
		return &os.LinkError{Op: "rename", Old: oldname, New: newname, Err: syscall.ENOENT}
	}
	if old := m.names[newname]; old != nil && old != n {
		m.unlink(old)
	}
	m.change(nameOp{kind: Rename, name: oldname, to: newname, n: n})
	return nil
}

func (m *Mem) Remove(name string) error {
	name = path.Clean(name)
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.names[name]
	if n == nil {
		return &fs.PathError{Op: "remove", Path: name, Err: syscall.ENOENT}
	}
	m.change(nameOp{kind: Remove, name: name, n: n})
	m.unlink(n)
	return nil
}

func (m *Mem) MkdirAll(dir string, _ fs.FileMode) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for d := path.Clean(dir); ; d = path.Dir(d) {
		if n := m.names[d]; n != nil {
			if !n.dir {
				return &fs.PathError{Op: "mkdir", Path: d, Err: syscall.ENOTDIR}
			}
			return nil
		}
		n := &inode{dir: true, modTime: time.Now(), links: 1}
		m.names[d], m.durable[d] = n, n
	}
}

func (m *Mem) SyncDir(dir string) error {
	dir = path.Clean(dir)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pending = slices.DeleteFunc(m.pending, func(op nameOp) bool {
		if path.Dir(op.name) != dir && (op.to == "" || path.Dir(op.to) != dir) {
			return false
		}
		op.apply(m.durable)
		return true
	})
	return nil
}

func (m *Mem) change(op nameOp) {
	op.apply(m.names)
	m.pending = append(m.pending, op)
}

func (m *Mem) Lock(name string, perm fs.FileMode) (disk.Lock, error) {
	f, err := m.OpenFile(name, os.O_RDWR|os.O_CREATE, perm)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return m.lock(f.(*memFile))
}

// LockDir implements disk.FS.
func (m *Mem) LockDir(dir string) (disk.Lock, error) {
	dir = path.Clean(dir)
	m.mu.Lock()
	n := m.names[dir]
	m.mu.Unlock()
	if n == nil {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: syscall.ENOENT}
	}
	return m.lock(&memFile{m: m, n: n, name: dir})
}

func (m *Mem) lock(f *memFile) (disk.Lock, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.locks[f.name] {
		return nil, &fs.PathError{Op: "lock", Path: f.name, Err: disk.ErrLocked}
	}
	m.locks[f.name] = true
	return &memLock{memFile: f, give: sync.OnceFunc(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.locks, f.name)
	})}, nil
}

// A memLock is a closed file and the release of its lock.
type memLock struct {
	*memFile
	give func()
}

func (l *memLock) Close() error {
	l.give()
	return nil
}

func (m *Mem) unlink(n *inode) {
	n.links--
	if n.links == 0 {
		m.used -= int64(len(n.data))
	}
}

func (m *Mem) resize(n *inode, size int64) {
	old := int64(len(n.data))
	if size <= old {
		n.data = n.data[:size:size]
	} else {
		n.data = append(n.data, make([]byte, size-old)...)
	}
	m.used += size - old
	n.modTime = time.Now()
}
