// Package rivals has the buffered writers and the loggers that programs here
// compare Rollway with, each with the settings that it documents, and 100 ms as
// the age of a line where it has such a setting.
package rivals

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/phuslu/log"
	"github.com/rollway/rollway/slab"
	"github.com/rs/zerolog/diode"
	"go.uber.org/zap/zapcore"
)

// lineAge is how old a line may get in a buffer.
const lineAge = 100 * time.Millisecond

// A Writer is a buffer in front of a destination, safe for concurrent use.
type Writer struct {
	io.Writer
	Close   func() error  // passes on everything that it took
	Sync    func() error  // nil: it has none
	Counted func() uint64 // lines that it counts as dropped; nil: it counts none
	Stats   func() slab.Stats
}

// An Opener puts a Writer in front of dst.
type Opener func(dst io.Writer) (*Writer, error)

// Slab is slab.Writer.
func Slab(o slab.Options) Opener {
	return func(dst io.Writer) (*Writer, error) {
		w, err := slab.New(dst, o)
		if err != nil {
			return nil, err
		}
		return &Writer{Writer: w, Close: w.Close, Sync: w.Sync, Counted: func() uint64 { return w.Stats().Dropped.Total() }, Stats: w.Stats}, nil
	}
}

// Persisted is slab.Writer with a slab file of its own, on a tmpfs where there
// is one; Close removes it.
func Persisted(o slab.Options) Opener {
	return func(dst io.Writer) (*Writer, error) {
		dir, err := os.MkdirTemp(PersistDir(), "rollway-bench-")
		if err != nil {
			return nil, err
		}
		o := o
		o.Persist = filepath.Join(dir, "slabs")
		w, err := Slab(o)(dst)
		if err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
		closeSlabs := w.Close
		w.Close = func() error { return errors.Join(closeSlabs(), os.RemoveAll(dir)) }
		return w, nil
	}
}

// CanPersist says whether a slab.Writer with Persist has its slabs in the file here.
const CanPersist = runtime.GOOS == "linux" || runtime.GOOS == "darwin"

// PersistDir is the folder of slab files: /dev/shm where there is one, or else
// the folder for temporary files.
func PersistDir() string {
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		return "/dev/shm"
	}
	return ""
}

// Bufio is what most programs write themselves: a mutex and a bufio.Writer.
func Bufio(size int) Opener {
	return func(dst io.Writer) (*Writer, error) {
		l := &lockedBufio{w: bufio.NewWriterSize(dst, size)}
		return &Writer{Writer: l, Close: l.Flush, Sync: l.Flush}, nil
	}
}

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

// Zap is zap's BufferedWriteSyncer. It does not close dst.
func Zap(dst io.Writer) (*Writer, error) {
	w := &zapcore.BufferedWriteSyncer{WS: zapcore.AddSync(dst), FlushInterval: lineAge}
	return &Writer{Writer: w, Close: w.Stop, Sync: w.Sync}, nil
}

// Diode is zerolog's diode with room for size lines.
func Diode(size int) Opener {
	return func(dst io.Writer) (*Writer, error) {
		var missed atomic.Uint64
		w := diode.NewWriter(dst, size, 10*time.Millisecond, func(n int) { missed.Add(uint64(n)) })
		return &Writer{Writer: w, Close: w.Close, Counted: missed.Load}, nil
	}
}

// Phuslu is phuslu's AsyncWriter. It gets a copy of each line: it keeps what it
// is given, as only phuslu's own logger may let it.
func Phuslu(dst io.Writer) (*Writer, error) {
	w := &log.AsyncWriter{ChannelSize: 4096, Writer: log.IOWriter{Writer: dst}}
	if c, ok := dst.(io.Closer); ok {
		w.Writer = closing{log.IOWriter{Writer: dst}, c}
	}
	// Its first Write sets it up, and two at once would do so twice.
	if _, err := w.Write(nil); err != nil {
		return nil, err
	}
	return &Writer{Writer: cloning{w}, Close: w.Close}, nil
}

// closing is an IOWriter that AsyncWriter closes, as it does its own FileWriter.
type closing struct {
	log.IOWriter
	io.Closer
}

type cloning struct{ w io.Writer }

func (c cloning) Write(p []byte) (int, error) { return c.w.Write(bytes.Clone(p)) }

// Published is the design of "Buffering Strategies", with 8 slabs of 64 KiB.
func Published(dst io.Writer) (*Writer, error) {
	w := newPublishedSlab(dst, 64<<10, 8, lineAge)
	return &Writer{Writer: w, Close: w.Close}, nil
}

// Channel copies each line, sends it through a channel of size lines, and has
// one goroutine write what arrives.
func Channel(size int, open Opener) Opener {
	return func(dst io.Writer) (*Writer, error) {
		w, err := open(dst)
		if err != nil {
			return nil, err
		}
		queue, done := make(channel, size), make(chan error, 1)
		go func() {
			var errs error
			for line := range queue {
				if _, err := w.Write(line); err != nil && errs == nil {
					errs = err
				}
			}
			done <- errors.Join(errs, w.Close())
		}()
		return &Writer{Writer: queue, Close: func() error {
			close(queue)
			return <-done
		}}, nil
	}
}

type channel chan []byte

func (c channel) Write(p []byte) (int, error) {
	c <- bytes.Clone(p)
	return len(p), nil
}
