// Package probe finds out which ways of writing the file system of a folder
// supports, and how long they take.
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
	// Space bounds the size of the file that the probe writes: default 64 MiB, and
	// never more than a quarter of the free space.
	Space int64
	// Time bounds the measurement: default 6 s. A write under way is not cut off.
	Time time.Duration

	chunks []int // sizes of the measured writes, multiples of blockSize; tests set others
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

// Report is what a probe found out about one folder. It has the form that rollway
// doctor -o json prints.
type Report struct {
	Dir   string      `json:"dir"`
	Perm  fs.FileMode `json:"-"`               // of the folder
	Owner string      `json:"owner,omitempty"` // of the folder, "uid:gid"; empty if unknown
	User  string      `json:"user,omitempty"`  // of this process, "uid:gid"; empty if unknown
	Mount Mount       `json:"mount"`
	Space *Space      `json:"space,omitempty"`          // nil if unknown
	Limit int64       `json:"max_file_bytes,omitempty"` // that this process may write; 0: no limit

	Files    Support `json:"files"`  // whether a file can be created, renamed and removed
	Direct   Support `json:"direct"` // O_DIRECT
	Align    Align   `json:"direct_alignment"`
	Uncached Support `json:"uncached"` // RWF_DONTCACHE
	Allocate Support `json:"allocate"` // blocks beyond the end of the file

	Writes []Writes `json:"writes"` // by mode, then chunk
	Cut    bool     `json:"cut"`    // time or space ran out, or the probe was interrupted
	Advice Advice   `json:"advice"`
}

// Mount is the file system of a folder.
type Mount struct {
	Type     string `json:"type,omitempty"` // "ext4"; empty if unknown
	Source   string `json:"source,omitempty"`
	Point    string `json:"point,omitempty"` // folder
	Options  string `json:"options,omitempty"`
	ReadOnly bool   `json:"read_only"`
}

// Space is what is free on a file system, for users other than root.
type Space struct {
	Free     int64 `json:"free_bytes"`
	Total    int64 `json:"total_bytes"`
	FreeIDs  int64 `json:"free_files"`  // inodes
	TotalIDs int64 `json:"total_files"` // 0: limited by space alone
}

// SpaceOf returns the room on the file system of a folder; nil: it is not known.
func SpaceOf(dir string) *Space { return spaceOf(dir) }

// Support says whether something works.
type Support struct {
	OK  bool   `json:"ok"`
	Why string `json:"why,omitempty"` // why it does not
}

func support(err error) Support {
	if err == nil {
		return Support{OK: true}
	}
	return Support{Why: err.Error()}
}

// Align is the alignment that direct I/O needs, in bytes.
type Align struct {
	Told   bool `json:"told"` // by the system; otherwise 4096 was tried
	Memory int  `json:"memory_bytes,omitempty"`
	Offset int  `json:"offset_bytes,omitempty"` // of lengths too
}

// Run probes dir. It writes one file, without a name where the system allows that,
// and removes it. The error says why dir could not be probed; what does not work
// there is in the report.
func Run(ctx context.Context, dir string, o Options) (Report, error) {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "probe", Path: dir, Err: errors.New("not a folder")}
	}
	if err != nil {
		return Report{}, err
	}
	r := Report{Dir: dir, Perm: info.Mode(), Limit: fileLimit(), Mount: mountOf(dir), Space: spaceOf(dir)}
	r.Owner, r.User = owners(info)
	f, err := create(dir, r.Limit)
	if r.Files = support(err); err == nil {
		r.try(f)
		r.measure(ctx, f, o.withDefaults())
		err = f.close()
	} else {
		err = nil
	}
	r.advise()
	return r, err
}

// scratch is the file that the probe writes.
type scratch struct {
	*os.File
	name string // empty once it has none
}

// renameNeedsClosed reports whether renaming or removing an open file may fail.
const renameNeedsClosed = runtime.GOOS == "windows"

// create creates, renames and, where an open file allows that, removes a file.
func create(dir string, limit int64) (*scratch, error) {
	if limit > 0 && limit < minLimit {
		return nil, fmt.Errorf("this process may write files of %d bytes only (ulimit -f)", limit)
	}
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

// try finds out which modes work.
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
