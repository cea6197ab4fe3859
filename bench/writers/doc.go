// Package writers measures slab.Writer against the other ways to put a buffer
// between loggers and a destination, in three cases:
//
//   - raw: lines of 256 bytes into a destination that counts their bytes, from
//     one goroutine and from as many as there are processors;
//   - file: ten goroutines log lines of 256 bytes through whole loggers into a
//     real file;
//   - published: the table that the author of logf's SlabWriter has published,
//     ten goroutines with lines of 200 bytes into a real file.
//
// The measured time ends when everything is through: the close of the writer
// is inside it, so that a queue does not count as speed. Lines that did not
// arrive are counted, and a writer that loses, tears, repeats or reorders them
// without being lossy by design ends the run.
package writers

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/phuslu/log"
	"github.com/rollway/rollway/slab"
	"github.com/rs/zerolog/diode"
	"go.uber.org/zap/zapcore"
)

// LogfAbsent is why logf's own SlabWriter is not among the writers: what the
// public module proxy answers.
const LogfAbsent = `github.com/ssgreg/logf/v2: 403 Forbidden: This module version is not available.`

// Writer is one contender.
type Writer struct {
	Name string

	// Lossy marks writers that drop lines by design rather than wait.
	Lossy bool

	// Own marks the writers of this project.
	Own bool

	// Bar marks the rivals that the target for raw writes is about.
	Bar bool

	// Open puts the writer in front of dst. It is safe for concurrent use;
	// Close passes on everything that it took.
	Open func(dst io.Writer) (io.WriteCloser, error)
}

// The names of the contenders that targets are about.
const (
	Heap      = "slab 8 × 64 KiB"
	Persisted = "slab persisted 8 × 64 KiB"
)

// Writers lists the contenders, our own first. Each has the settings that it
// is shipped or documented with; where its default for the age of a line is
// longer, it has 100 ms, as slab.Writer does.
func Writers() []Writer {
	all := []Writer{{Name: Heap, Own: true, Open: openSlab(slab.Options{})}}
	if CanPersist() {
		all = append(all, Writer{Name: Persisted, Own: true, Open: OpenPersisted(slab.Options{})})
	}
	return append(all,
		Writer{Name: "mutex + bufio 64 KiB", Bar: true, Open: func(dst io.Writer) (io.WriteCloser, error) {
			return &mutexWriter{buf: bufio.NewWriterSize(dst, 64<<10)}, nil
		}},
		Writer{Name: "zap BufferedWriteSyncer 256 KiB", Bar: true, Open: func(dst io.Writer) (io.WriteCloser, error) {
			return zapWriter{&zapcore.BufferedWriteSyncer{WS: zapcore.AddSync(dst), FlushInterval: 100 * time.Millisecond}}, nil
		}},
		Writer{Name: "slab design as published 8 × 64 KiB", Bar: true, Open: func(dst io.Writer) (io.WriteCloser, error) {
			return NewPublishedSlab(dst, 64<<10, 8, 100*time.Millisecond), nil
		}},
		Writer{Name: "zerolog diode 1000", Lossy: true, Open: openDiode(1000)},
		Writer{Name: "zerolog diode 100000", Lossy: true, Open: openDiode(100_000)},
		Writer{Name: "phuslu AsyncWriter 4096", Open: func(dst io.Writer) (io.WriteCloser, error) {
			return phusluWriter{&log.AsyncWriter{Writer: log.IOWriter{Writer: dst}, ChannelSize: 4096}}, nil
		}},
	)
}

func openSlab(o slab.Options) func(dst io.Writer) (io.WriteCloser, error) {
	o.Full, o.KeepOpen = slab.Block, true
	return func(dst io.Writer) (io.WriteCloser, error) { return slab.New(dst, o) }
}

func openDiode(size int) func(dst io.Writer) (io.WriteCloser, error) {
	return func(dst io.Writer) (io.WriteCloser, error) {
		return diode.NewWriter(dst, size, 10*time.Millisecond, nil), nil
	}
}

// OpenPersisted gives every Writer a mapped file of its own, on a tmpfs where
// there is one, as slab.Options.Persist advises; Close removes it.
func OpenPersisted(o slab.Options) func(dst io.Writer) (io.WriteCloser, error) {
	return func(dst io.Writer) (io.WriteCloser, error) {
		dir, err := os.MkdirTemp(PersistDir(), "rollway-bench-")
		if err != nil {
			return nil, err
		}
		o := o
		o.Full, o.KeepOpen, o.Persist = slab.Block, true, filepath.Join(dir, "slabs")
		w, err := slab.New(dst, o)
		if err != nil {
			os.RemoveAll(dir)
			return nil, err
		}
		return persisted{w, dir}, nil
	}
}

type persisted struct {
	*slab.Writer
	dir string
}

func (p persisted) Close() error {
	err := p.Writer.Close()
	os.RemoveAll(p.dir)
	return err
}
