package disktest

import (
	"io/fs"

	"github.com/rollway/rollway/internal/disk"
)

type Kind string

const (
	Open     Kind = "open"
	Read     Kind = "read"
	Write    Kind = "write"
	Truncate Kind = "truncate"
	Sync     Kind = "sync"
	Rename   Kind = "rename"
	Remove   Kind = "remove"
	Mkdir    Kind = "mkdir"
	SyncDir  Kind = "syncdir"
	List     Kind = "list"
	Lock     Kind = "lock"
)

type Op struct {
	Kind Kind
	Name string
	To   string // new name of a Rename
	Off  int64  // position of a Read or Write, size of a Truncate
	Data []byte // of a Write; valid during the hook
	Len  int    // bytes asked by a Read or Write
	Flag int    // of an Open
}

// Fault is a hook's order: the operation fails with Err, if that is not nil. A Write then
// still writes its first Short bytes.
type Fault struct {
	Err   error
	Short int
}

// Faulty is a disk.FS that asks Hook about each operation. The hook runs in the caller's
// goroutine without locks, and may block or copy a Mem below.
type Faulty struct {
	disk.FS
	Hook func(Op) Fault
}

func (d *Faulty) do(op Op, call func() error) error {
	if f := d.Hook(op); f.Err != nil {
		return &fs.PathError{Op: string(op.Kind), Path: op.Name, Err: f.Err}
	}
	return call()
}

func get[T any](d *Faulty, op Op, call func() (T, error)) (result T, err error) {
	err = d.do(op, func() error {
		result, err = call()
		return err
	})
	return result, err
}

func (d *Faulty) OpenFile(name string, flag int, perm fs.FileMode) (disk.File, error) {
	return get(d, Op{Kind: Open, Name: name, Flag: flag}, func() (disk.File, error) {
		f, err := d.FS.OpenFile(name, flag, perm)
		if err != nil {
			return nil, err
		}
		return &faultyFile{File: f, d: d, name: name}, nil
	})
}

func (d *Faulty) List(dir string) ([]disk.Entry, error) {
	return get(d, Op{Kind: List, Name: dir}, func() ([]disk.Entry, error) { return d.FS.List(dir) })
}

func (d *Faulty) Rename(oldname, newname string) error {
	return d.do(Op{Kind: Rename, Name: oldname, To: newname}, func() error { return d.FS.Rename(oldname, newname) })
}

func (d *Faulty) Remove(name string) error {
	return d.do(Op{Kind: Remove, Name: name}, func() error { return d.FS.Remove(name) })
}

func (d *Faulty) MkdirAll(dir string, perm fs.FileMode) error {
	return d.do(Op{Kind: Mkdir, Name: dir}, func() error { return d.FS.MkdirAll(dir, perm) })
}

func (d *Faulty) SyncDir(dir string) error {
	return d.do(Op{Kind: SyncDir, Name: dir}, func() error { return d.FS.SyncDir(dir) })
}

func (d *Faulty) Lock(name string, perm fs.FileMode) (disk.Lock, error) {
	return get(d, Op{Kind: Lock, Name: name}, func() (disk.Lock, error) { return d.FS.Lock(name, perm) })
}

type faultyFile struct {
	disk.File
	d    *Faulty
	name string
}

func (f *faultyFile) ReadAt(p []byte, off int64) (int, error) {
	return get(f.d, Op{Kind: Read, Name: f.name, Off: off, Len: len(p)}, func() (int, error) { return f.File.ReadAt(p, off) })
}

func (f *faultyFile) WriteAt(p []byte, off int64) (int, error) {
	fault := f.d.Hook(Op{Kind: Write, Name: f.name, Off: off, Data: p, Len: len(p)})
	if fault.Err == nil {
		return f.File.WriteAt(p, off)
	}
	n, err := f.File.WriteAt(p[:min(fault.Short, len(p))], off)
	if err != nil {
		return n, err
	}
	return n, &fs.PathError{Op: string(Write), Path: f.name, Err: fault.Err}
}

func (f *faultyFile) Truncate(size int64) error {
	return f.d.do(Op{Kind: Truncate, Name: f.name, Off: size}, func() error { return f.File.Truncate(size) })
}

func (f *faultyFile) Sync() error {
	return f.d.do(Op{Kind: Sync, Name: f.name}, f.File.Sync)
}
