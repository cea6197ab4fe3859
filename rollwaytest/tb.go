package rollwaytest

import (
	"bytes"
	"log/slog"
	"sync"
	"testing"
)

// TB returns a writer that passes lines to tb.Log, so that they are shown with their
// test, and only if it fails or -v is set. It drops lines that come after the test has
// ended, on which tb.Log would panic. It is safe for concurrent use.
func TB(tb testing.TB) *TBWriter {
	w := &TBWriter{tb: tb}
	tb.Cleanup(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.ended = true
	})
	return w
}

// TBWriter is the type of writers that [TB] returns.
type TBWriter struct {
	tb    testing.TB
	mu    sync.Mutex
	ended bool // guarded by mu
}

// Write logs the lines of p.
func (w *TBWriter) Write(p []byte) (int, error) {
	w.tb.Helper()
	return w.WriteLevel(slog.LevelInfo, p)
}

// WriteLevel logs the lines of p; the level is in them.
func (w *TBWriter) WriteLevel(_ slog.Level, p []byte) (int, error) {
	w.tb.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended {
		w.tb.Log(string(bytes.TrimSuffix(p, []byte{'\n'})))
	}
	return len(p), nil
}
