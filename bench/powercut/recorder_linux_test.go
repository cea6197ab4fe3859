package powercut

import (
	"context"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/rollway/rollway/internal/testkit"
)

type kind int

const (
	opWrite kind = iota
	opCut
	opAllocate
	opSync
	opSyncFolder
	opNames
	opTell // the writer was told that something is safe
)

// An op is one change of the disk.
type op struct {
	kind  kind
	file  *inode
	at    int64 // of a write; the size of a cut
	data  []byte
	names map[string]*inode // of the folder, from here on
	tell  map[int]int       // of opTell: records of each goroutine that are safe
}

// A recorder is a file system of one folder in memory that notes each op.
type recorder struct {
	fs.Inode
	mu    sync.Mutex
	names map[string]*inode
	ops   []op
}

var (
	_ fs.NodeCreater  = (*recorder)(nil)
	_ fs.NodeRenamer  = (*recorder)(nil)
	_ fs.NodeUnlinker = (*recorder)(nil)
	_ fs.NodeFsyncer  = (*recorder)(nil)

	_ fs.NodeOpener    = (*inode)(nil)
	_ fs.NodeReader    = (*inode)(nil)
	_ fs.NodeWriter    = (*inode)(nil)
	_ fs.NodeGetattrer = (*inode)(nil)
	_ fs.NodeSetattrer = (*inode)(nil)
	_ fs.NodeAllocater = (*inode)(nil)
	_ fs.NodeFsyncer   = (*inode)(nil)
)

// mount returns a recorder and the folder where it is.
func mount(t *testing.T) (r *recorder, dir string, end func()) {
	t.Helper()
	r, dir = &recorder{names: map[string]*inode{}}, t.TempDir()
	o := &fs.Options{MountOptions: fuse.MountOptions{DirectMountStrict: true, FsName: "recorder", MaxWrite: 1 << 20}}
	server, err := fs.Mount(dir, r, o)
	if err != nil {
		testkit.Missing(t, "FUSE, as root: "+err.Error())
	}
	return r, dir, func() {
		if err := server.Unmount(); err != nil {
			t.Errorf("unmount: %v", err)
		}
	}
}

func (r *recorder) note(o op) { r.ops = append(r.ops, o) } // r.mu is held

// named notes the names that there are now; r.mu is held.
func (r *recorder) named() {
	m := make(map[string]*inode, len(r.names))
	for name, f := range r.names {
		m[name] = f
	}
	r.note(op{kind: opNames, names: m})
}

// tellAll notes that so many rounds are safe.
func (r *recorder) tellAll(l load, rounds int) {
	safe := map[int]int{}
	for g := range goroutines {
		safe[g] = rounds * l.perRound[g]
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.note(op{kind: opTell, tell: safe})
}

func (r *recorder) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := &inode{r: r, mode: mode}
	r.names[name] = f
	r.named()
	out.Mode = mode
	return r.NewPersistentInode(ctx, f, fs.StableAttr{Mode: syscall.S_IFREG}), nil, 0, 0
}

func (r *recorder) Rename(_ context.Context, name string, _ fs.InodeEmbedder, to string, flags uint32) syscall.Errno {
	r.mu.Lock()
	defer r.mu.Unlock()
	const noReplace = 1
	if r.names[to] != nil && flags&noReplace != 0 {
		return syscall.EEXIST
	}
	r.names[to] = r.names[name]
	delete(r.names, name)
	r.named()
	return 0
}

func (r *recorder) Unlink(_ context.Context, name string) syscall.Errno {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.names, name)
	r.named()
	return 0
}

func (r *recorder) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.note(op{kind: opSyncFolder})
	return 0
}

// A file of the recorder. r.mu guards it.
type inode struct {
	fs.Inode
	r    *recorder
	mode uint32
	data []byte
}

func (f *inode) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return nil, 0, 0
}

func (f *inode) Read(_ context.Context, _ fs.FileHandle, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	f.r.mu.Lock()
	defer f.r.mu.Unlock()
	if off > int64(len(f.data)) {
		return fuse.ReadResultData(nil), 0
	}
	return fuse.ReadResultData(slices.Clone(f.data[off:min(off+int64(len(dest)), int64(len(f.data)))])), 0
}

func (f *inode) Write(_ context.Context, _ fs.FileHandle, data []byte, off int64) (uint32, syscall.Errno) {
	f.r.mu.Lock()
	defer f.r.mu.Unlock()
	data = slices.Clone(data)
	f.data = overwrite(f.data, data, off)
	f.r.note(op{kind: opWrite, file: f, at: off, data: data})
	return uint32(len(data)), 0
}

func (f *inode) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	f.r.mu.Lock()
	defer f.r.mu.Unlock()
	out.Mode, out.Size, out.Nlink = f.mode, uint64(len(f.data)), 1
	return 0
}

func (f *inode) Setattr(_ context.Context, _ fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	f.r.mu.Lock()
	defer f.r.mu.Unlock()
	if size, ok := in.GetSize(); ok && int(size) != len(f.data) {
		f.data = resize(f.data, int64(size))
		f.r.note(op{kind: opCut, file: f, at: int64(size)})
	}
	out.Mode, out.Size, out.Nlink = f.mode, uint64(len(f.data)), 1
	return 0
}

func (f *inode) Allocate(_ context.Context, _ fs.FileHandle, _, _ uint64, mode uint32) syscall.Errno {
	const keepSize = 1
	if mode != keepSize {
		return syscall.EOPNOTSUPP
	}
	f.r.mu.Lock()
	defer f.r.mu.Unlock()
	f.r.note(op{kind: opAllocate, file: f})
	return 0
}

func (f *inode) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	f.r.mu.Lock()
	defer f.r.mu.Unlock()
	f.r.note(op{kind: opSync, file: f})
	return 0
}

// overwrite returns b with data at off, longer if need be.
func overwrite(b, data []byte, off int64) []byte {
	b = resize(b, max(int64(len(b)), off+int64(len(data))))
	copy(b[off:], data)
	return b
}

// resize cuts b or appends zeros.
func resize(b []byte, size int64) []byte {
	if size <= int64(len(b)) {
		return b[:size:size]
	}
	return append(b, make([]byte, size-int64(len(b)))...)
}
