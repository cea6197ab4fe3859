package disk

import (
	"io"
	"io/fs"
)

// Kind names an operation of FS or File.
type Kind string

// The operations that a Faulty hook sees.
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

// Op is one operation about to happen.
type Op struct {
	Kind Kind
	Name string
	To   string // new name of a Rename
	Off  int64  // position of a Read or Write, size of a Truncate
	Data []byte // of a Write; valid during the hook
	Len  int    // bytes asked by a Read or Write
	Flag int    // of an Open
}

// Fault is what a hook orders: the operation fails with Err, or, when Err is
// nil, takes place. A Write with Err set still writes its first Short bytes.
type Fault struct {
	Err   error
	Short int
}

// Faulty passes operations on to FS after asking Hook about each. The hook
// runs in the caller's goroutine, holds no lock, and may block to play a
// stalled disk or copy a Mem below.
type Faulty struct {
	FS
	Hook func(Op) Fault
}

func (d *Faulty) ask(op Op) error {
	if f := d.Hook(op); f.Err != nil {
		return &fs.PathError{Op: string(op.Kind), Path: op.Name, Err: f.Err}
	}
	return nil
}

// OpenFile implements FS.
func (d *Faulty) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	if err := d.ask(Op{Kind: Open, Name: name, Flag: flag}); err != nil {
		return nil, err
	}
	f, err := d.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &faultyFile{File: f, d: d, name: name}, nil
}

// List implements FS.
func (d *Faulty) List(dir string) ([]Entry, error) {
	if err := d.ask(Op{Kind: List, Name: dir}); err != nil {
		return nil, err
	}
	return d.FS.List(dir)
}

// Rename implements FS.
func (d *Faulty) Rename(oldname, newname string) error {
	if err := d.ask(Op{Kind: Rename, Name: oldname, To: newname}); err != nil {
		return err
	}
	return d.FS.Rename(oldname, newname)
}

// Remove implements FS.
func (d *Faulty) Remove(name string) error {
	if err := d.ask(Op{Kind: Remove, Name: name}); err != nil {
		return err
	}
	return d.FS.Remove(name)
}

// MkdirAll implements FS.
func (d *Faulty) MkdirAll(dir string, perm fs.FileMode) error {
	if err := d.ask(Op{Kind: Mkdir, Name: dir}); err != nil {
		return err
	}
	return d.FS.MkdirAll(dir, perm)
}

// SyncDir implements FS.
func (d *Faulty) SyncDir(dir string) error {
	if err := d.ask(Op{Kind: SyncDir, Name: dir}); err != nil {
		return err
	}
	return d.FS.SyncDir(dir)
}

// Lock implements FS.
func (d *Faulty) Lock(name string, perm fs.FileMode) (io.Closer, error) {
	if err := d.ask(Op{Kind: Lock, Name: name}); err != nil {
		return nil, err
	}
	return d.FS.Lock(name, perm)
}

type faultyFile struct {
	File
	d    *Faulty
	name string
}

func (f *faultyFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.d.ask(Op{Kind: Read, Name: f.name, Off: off, Len: len(p)}); err != nil {
		return 0, err
	}
	return f.File.ReadAt(p, off)
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
	if err := f.d.ask(Op{Kind: Truncate, Name: f.name, Off: size}); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

func (f *faultyFile) Sync() error {
	if err := f.d.ask(Op{Kind: Sync, Name: f.name}); err != nil {
		return err
	}
	return f.File.Sync()
}
