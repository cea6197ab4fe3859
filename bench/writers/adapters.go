package writers

import (
	"bufio"
	"bytes"
	"sync"

	"github.com/phuslu/log"
	"go.uber.org/zap/zapcore"
)

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

// phusluWriter hands AsyncWriter a copy of each line: it keeps what it is
// given, as only phuslu's own logger may let it.
type phusluWriter struct{ *log.AsyncWriter }

func (w phusluWriter) Write(p []byte) (int, error) { return w.AsyncWriter.Write(bytes.Clone(p)) }
