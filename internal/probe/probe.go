// Package probe finds out what a folder is good for as the place of log files:
// which ways of writing its file system takes, and how long they take here.
package probe

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"time"

	"github.com/rollway/rollway/internal/direct"
)

// Options bounds a probe. The zero value is meant for use.
type Options struct {
	// Space is the most bytes that are on the disk at a time, default 64 MiB. A
	// quarter of what is free is not exceeded.
	Space int64
	// Time is how long writes are measured in all: default 6 s. The one under
	// way is not cut off.
	Time time.Duration

	chunks []int // sizes of the writes that are measured, multiples of blockSize; tests have others
}

const (
	blockSize = 4096    // every known disk takes multiples of it
	minLimit  = 1 << 20 // of a file, to be probed at all
)

func (o Options) withDefaults() Options {
	o.Space = cmp.Or(o.Space, 64<<20)
	o.Time = cmp.Or(o.Time, 6*time.Second)
	if len(o.chunks) == 0 {
		o.chunks = []int{4 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 8 << 20}
	}
	return o
}

// Mode is a way of writing.
type Mode string

// The ways of writing.
const (
	Direct   Mode = "Direct"   // past the page cache, O_DIRECT
	Uncached Mode = "Uncached" // through it, leaving nothing there, RWF_DONTCACHE
	Buffered Mode = "Buffered" // as the system likes
)

var systemMode = map[Mode]direct.Mode{Direct: direct.Direct, Uncached: direct.Uncached, Buffered: direct.Buffered}

// Report is what was found out about one folder.
type Report struct {
	Dir   string
	Mount Mount
	Space Space
	Perm  fs.FileMode // of the folder
	Owner string      // of the folder, "uid:gid"; empty if not known
	User  string      // who asked, "uid:gid"; empty if not known

	Files    error // why a file cannot be made, renamed or removed there; nil: it can
	Direct   Support
	Align    Align // of Direct
	Uncached Support
	Allocate Support // blocks can be allocated ahead of the end
	Limit    int64   // the longest file that this process may write, bytes; 0: no limit

	Writes []Writes // by mode, then chunk
	Cut    bool     // the time was over, or the probe interrupted, before all was measured
}

// Mount is where a folder's file system comes from.
type Mount struct {
	Type     string // "ext4"; empty if not known
	Source   string
	Point    string // folder
	Options  string
	ReadOnly bool
}

// Space is what is free on a file system, for everyone but root.
type Space struct {
	Known             bool
	Free, Total       int64 // bytes
	FreeIDs, TotalIDs int64 // inodes: how many files; TotalIDs 0: as many as there is space for
}

// Support says whether something works.
type Support struct {
	OK  bool
	Why string // it does not
}

func support(err error) Support {
	if err == nil {
		return Support{OK: true}
	}
	return Support{Why: err.Error()}
}

// Align is what direct I/O asks of a write, in bytes.
type Align struct {
	Told           bool // by the system; else 4096 was tried
	Memory, Offset int
}

// Run looks at dir. It writes one file, which has no name while it is written
// where the system allows that, and removes it. The error says that dir cannot
// be looked at; what does not work there is in the report.
func Run(ctx context.Context, dir string, o Options) (Report, error) {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "probe", Path: dir, Err: errors.New("not a folder")}
	}
	if err != nil {
		return Report{}, err
	}
	r := Report{Dir: dir, Perm: info.Mode(), Limit: fileLimit()}
	r.Owner, r.User = owners(info)
	r.Mount, r.Space = mountOf(dir), spaceOf(dir)
	if r.Limit > 0 && r.Limit < minLimit {
		r.Files = fmt.Errorf("this process may write files of %d bytes only (ulimit -f)", r.Limit)
		return r, nil
	}
	f, err := create(dir)
	if r.Files = err; err != nil {
		return r, nil
	}
	r.try(f)
	r.measure(ctx, f, o.withDefaults())
	return r, f.close()
}

// scratch is the file that is written.
type scratch struct {
	*os.File
	name string // empty once it has none
}

// renameNeedsClosed is whether an open file may refuse to be renamed and
// removed.
const renameNeedsClosed = runtime.GOOS == "windows"

// create makes, renames and, where that is possible while it is open, removes
// a file.
func create(dir string) (*scratch, error) {
	f, err := os.CreateTemp(dir, ".rollway-probe-*")
	if err != nil {
		return nil, err
	}
	s := &scratch{File: f, name: f.Name()}
	renamed := s.name + ".renamed"
	if err = os.Rename(s.name, renamed); err == nil {
		s.name = renamed
	}
	if err == nil || renameNeedsClosed {
		if err = os.Remove(s.name); err == nil {
			s.name = ""
		}
	}
	if err != nil && !renameNeedsClosed {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *scratch) close() error {
	err := s.Close()
	if s.name != "" {
		err = errors.Join(err, os.Remove(s.name))
	}
	return err
}

// try finds out which ways of writing work.
func (r *Report) try(f *scratch) {
	r.Align.Memory, r.Align.Offset, r.Align.Told = direct.Alignment(f.File)
	r.Direct = support(tryDirect(f.File, &r.Align))
	r.Uncached = support(tryWrite(f.File, Uncached))
	r.Allocate = support(direct.Allocate(f.File, 0, minLimit))
	_ = f.Truncate(0)
}

// tryWrite writes a block and reads it back.
func tryWrite(f *os.File, m Mode) error {
	memory, err := direct.NewMemorySet(2, blockSize)
	if err != nil {
		return err
	}
	defer memory.Free()
	out, in := memory.Bytes(0), memory.Bytes(1)
	for i := range out {
		out[i] = byte(i%251 + 1)
	}
	if err := direct.WriteAt(f, out, 0, systemMode[m]); err != nil {
		return err
	}
	if _, err := f.ReadAt(in, 0); err != nil {
		return err
	}
	if !bytes.Equal(in, out) {
		return errors.New("what was written is not what is read back")
	}
	return nil
}

// tryDirect tries blocks of the size that the system asks for, or 4096.
func tryDirect(f *os.File, a *Align) error {
	if a.Told && (a.Memory == 0 || a.Offset == 0) {
		return errors.New("the file system does not support it")
	}
	if !a.Told {
		a.Memory, a.Offset = blockSize, blockSize
	}
	if err := direct.Bypass(f, true); err != nil {
		return err
	}
	defer func() { _ = direct.Bypass(f, false) }()
	return tryWrite(f, Direct)
}
