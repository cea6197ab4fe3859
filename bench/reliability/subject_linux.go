package reliability

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/rollway/rollway/bench/internal/rivals"
	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/slab"
)

// rivalWriters are the contenders that are not ours.
var rivalWriters = []struct {
	name string
	open rivals.Opener
}{
	{"slab design as published", rivals.Published},
	{"zap BufferedWriteSyncer", rivals.Zap},
	{"zerolog diode", rivals.Diode(1000)},
	{"phuslu AsyncWriter", rivals.Phuslu},
	{"mutex + bufio", rivals.Bufio(64 << 10)},
}

// Writers lists the contenders, our own first.
func Writers() []Writer {
	all := []Writer{{Name: Heap, Own: true}}
	if rivals.CanPersist {
		all = append(all, Writer{Name: Persisted, Own: true})
	}
	all = append(all, Writer{Name: Sharded, Own: true})
	if canWriteDirect() {
		all = append(all, Writer{Name: ShardDirect, Own: true, Whole: true, Opens: true})
	}
	all = append(all, Writer{Name: Direct, Own: true, Whole: true})
	for _, r := range rivalWriters {
		all = append(all, Writer{Name: r.name})
	}
	return all
}

// canWriteDirect reports whether the file system for temporary files takes
// direct I/O. Where it does not, a file.File writes as others do.
func canWriteDirect() bool {
	dir, err := os.MkdirTemp("", "rollway-reliability-")
	if err != nil {
		return false
	}
	defer os.RemoveAll(dir)
	f, err := file.Open(filepath.Join(dir, "log"), file.Options{Mode: file.Direct})
	if err != nil {
		return false
	}
	defer f.Close()
	return f.Stats().Mode == file.Direct
}

// destination is what the fault kit puts below a writer.
type destination interface {
	io.WriteCloser
	Sync() error
}

// open starts the writer of the job over dst, which is nil for one that opens
// its file itself.
func (j *job) open(dst destination) (*rivals.Writer, error) {
	o := slab.Options{Full: slab.Block, CloseTimeout: j.Limit / 2}
	if j.Fault == errorsForEver || j.Fault == closeBlocks {
		o.CloseTimeout = time.Second // it will be reached
	}
	switch j.Subject {
	case Direct:
		return &rivals.Writer{Writer: dst, Sync: dst.Sync, Close: dst.Close}, nil
	case Heap:
		return rivals.Slab(o)(dst)
	case Persisted:
		o.Persist = j.Slabs
		return rivals.Slab(o)(dst)
	case ShardDirect:
		f, err := openDirect(j)
		if err != nil {
			return nil, err
		}
		dst = f
		fallthrough
	case Sharded:
		o.Full, o.Shards, o.SlabSize, o.SlabCount = slab.Drop, shards, shardSlabSize, shardSlabs
		return rivals.Slab(o)(dst)
	}
	for _, r := range rivalWriters {
		if r.name == j.Subject {
			return r.open(dst)
		}
	}
	return nil, fmt.Errorf("there is no writer %q", j.Subject)
}

// openDirect opens the file for direct I/O, which a small file system may refuse.
func openDirect(j *job) (destination, error) {
	f, err := file.Open(j.Path, file.Options{Mode: file.Direct})
	if err != nil {
		return nil, err
	}
	if mode := f.Stats().Mode; mode != file.Direct && j.Mount == "" {
		return nil, errors.Join(fmt.Errorf("direct I/O was refused, it would be %v", mode), f.Close())
	}
	return f, nil
}

// openFile opens the real file: file.File below our writers, *os.File below
// the others.
func openFile(j *job) (destination, error) {
	if j.Own {
		return file.Open(j.Path, file.Options{})
	}
	return os.OpenFile(j.Path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o640)
}
