// Package writers measures slab.Writer against the other ways to put a buffer
// between loggers and a destination: lines of 256 bytes, written by 1, 2, 4
// and 8 goroutines into a destination that counts them.
//
// The measured time ends when everything is through: the close of the writer
// is inside it, so that a queue does not count as speed. The time of the
// callers alone is reported beside it, and so is every line that was lost.
package writers

import (
	"bufio"
	"bytes"
	"io"
	"sync"
	"time"

	"github.com/phuslu/log"
	"github.com/rollway/rollway/slab"
	"github.com/rs/zerolog/diode"
	"go.uber.org/zap/zapcore"
)

// Writer is one contender.
type Writer struct {
	Name string

	// Lossy marks writers that drop lines by design rather than wait.
	Lossy bool

	// Open puts the writer in front of dst. It is safe for concurrent use;
	// Close passes on everything that it took.
	Open func(dst io.Writer) (io.WriteCloser, error)
}

// Writers lists the contenders, slab.Writer first. Each has the settings that
// it is shipped or documented with.
func Writers() []Writer {
	return []Writer{
		{Name: "slab 8 × 64 KiB", Open: func(dst io.Writer) (io.WriteCloser, error) {
			return slab.New(dst, slab.Options{})
		}},
		{Name: "mutex + bufio 64 KiB", Open: func(dst io.Writer) (io.WriteCloser, error) {
			return &mutexWriter{buf: bufio.NewWriterSize(dst, 64<<10)}, nil
		}},
		{Name: "zap BufferedWriteSyncer 256 KiB", Open: func(dst io.Writer) (io.WriteCloser, error) {
			return zapWriter{&zapcore.BufferedWriteSyncer{WS: zapcore.AddSync(dst), FlushInterval: 100 * time.Millisecond}}, nil
		}},
		{Name: "zerolog diode 1000", Lossy: true, Open: openDiode(1000)},
		{Name: "zerolog diode 100000", Lossy: true, Open: openDiode(100_000)},
		{Name: "phuslu AsyncWriter 4096", Open: func(dst io.Writer) (io.WriteCloser, error) {
			return phusluWriter{&log.AsyncWriter{Writer: log.IOWriter{Writer: dst}, ChannelSize: 4096}}, nil
		}},
	}
}

// mutexWriter is what most programs write themselves.
type mutexWriter struct {
	mu  sync.Mutex
	buf *bufio.Writer // guarded by mu
}

func (w *mutexWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.Write(p)
}

func (w *mutexWriter) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.Flush()
}

type zapWriter struct{ *zapcore.BufferedWriteSyncer }

func (w zapWriter) Close() error { return w.Stop() }

func openDiode(size int) func(dst io.Writer) (io.WriteCloser, error) {
	return func(dst io.Writer) (io.WriteCloser, error) {
		return diode.NewWriter(dst, size, 10*time.Millisecond, nil), nil
	}
}

// phusluWriter hands AsyncWriter a copy of each line: it keeps what it is
// given, as only phuslu's own logger may let it.
type phusluWriter struct{ *log.AsyncWriter }

func (w phusluWriter) Write(p []byte) (int, error) { return w.AsyncWriter.Write(bytes.Clone(p)) }
