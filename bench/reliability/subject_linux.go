package reliability

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/phuslu/log"
	"github.com/rollway/rollway/bench/writers"
	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/slab"
	"github.com/rs/zerolog/diode"
	"go.uber.org/zap/zapcore"
)

// Writers lists the contenders, our own first.
func Writers() []Writer {
	all := []Writer{{Name: Heap, Own: true}}
	if writers.CanPersist() {
		all = append(all, Writer{Name: Persisted, Own: true})
	}
	all = append(all, Writer{Name: Sharded, Own: true})
	if canWriteDirect() {
		all = append(all, Writer{Name: ShardDirect, Own: true, Whole: true, Opens: true})
	}
	return append(all,
		Writer{Name: Direct, Own: true, Whole: true},
		Writer{Name: "slab design as published"},
		Writer{Name: "zap BufferedWriteSyncer"},
		Writer{Name: "zerolog diode"},
		Writer{Name: "phuslu AsyncWriter"},
		Writer{Name: "mutex + bufio"},
	)
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

// A subject is a writer at work.
type subject struct {
	io.Writer
	sync    func() error // nil: it has none
	close   func() error
	counted func() uint64 // lines that a rival's own account gives as dropped; nil: it has none
	ledger  func() Ledger // of one of ours; nil: it has none
}

// destination is what the fault kit puts below a writer.
type destination interface {
	io.WriteCloser
	Sync() error
}

// open starts the writer of the job over dst, which is nil for one that opens
// its file by itself.
func open(j *job, dst destination) (subject, error) {
	switch j.Subject {
	case Heap, Persisted, Sharded, ShardDirect:
		return openSlab(j, dst)
	case Direct:
		return subject{Writer: dst, sync: dst.Sync, close: dst.Close}, nil
	case "zap BufferedWriteSyncer": // closes nothing: its owner does
		w := &zapcore.BufferedWriteSyncer{WS: zapcore.AddSync(dst), FlushInterval: 100 * time.Millisecond}
		return subject{Writer: w, sync: w.Sync, close: w.Stop}, nil
	case "zerolog diode":
		var missed atomic.Uint64
		w := diode.NewWriter(dst, 1000, 10*time.Millisecond, func(n int) { missed.Add(uint64(n)) })
		return subject{Writer: w, close: w.Close, counted: missed.Load}, nil
	case "phuslu AsyncWriter":
		w := &log.AsyncWriter{ChannelSize: 4096, Writer: closing{log.IOWriter{Writer: dst}, dst}}
		// Its first Write sets it up, and two at once would do so twice.
		if _, err := w.Write(nil); err != nil {
			return subject{}, err
		}
		return subject{Writer: cloning{w}, close: w.Close}, nil
	case "slab design as published":
		w := writers.NewPublishedSlab(dst, 64<<10, 8, 100*time.Millisecond)
		return subject{Writer: w, close: w.Close}, nil
	default: // mutex + bufio
		w := &lockedBufio{w: bufio.NewWriterSize(dst, 64<<10)}
		return subject{Writer: w, sync: w.Flush, close: w.Flush}, nil
	}
}

// closeTimeout is that of our writers' Close.
func (j *job) closeTimeout() time.Duration {
	if j.Fault == errorsForEver || j.Fault == closeBlocks {
		return time.Second // it will be reached
	}
	return j.Limit / 2
}

func openSlab(j *job, dst destination) (subject, error) {
	o := slab.Options{Full: slab.Block, CloseTimeout: j.closeTimeout()}
	switch j.Subject {
	case Persisted:
		o.Persist = j.Slabs
	case ShardDirect:
		f, err := openDirect(j)
		if err != nil {
			return subject{}, err
		}
		dst = f
		fallthrough
	case Sharded:
		o.Full, o.Shards, o.SlabSize, o.SlabCount = slab.Drop, shards, shardSlabSize, shardSlabs
	}
	w, err := slab.New(dst, o)
	if err != nil {
		return subject{}, err
	}
	return subject{Writer: w, sync: w.Sync, close: w.Close, ledger: func() Ledger {
		s := w.Stats()
		return Ledger{Accepted: s.Accepted, Recovered: s.Recovered, Written: s.Written, Dropped: s.Dropped.Total(), Shutdown: s.Dropped.Shutdown, Pending: s.Pending}
	}}, nil
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

// closing is an IOWriter that AsyncWriter closes, as it does its own FileWriter.
type closing struct {
	log.IOWriter
	io.Closer
}

// cloning hands AsyncWriter a copy of each line: it keeps what it is given, as
// only phuslu's own logger may let it.
type cloning struct{ w *log.AsyncWriter }

func (c cloning) Write(p []byte) (int, error) { return c.w.Write(bytes.Clone(p)) }

type lockedBufio struct {
	mu sync.Mutex
	w  *bufio.Writer // guarded by mu
}

func (l *lockedBufio) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

func (l *lockedBufio) Flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Flush()
}

// openFile opens the real file: file.File below our writers, *os.File below
// the others.
func openFile(j *job) (destination, error) {
	if j.Own {
		return file.Open(j.Path, file.Options{})
	}
	return os.OpenFile(j.Path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o640)
}
