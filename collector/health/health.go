// Package health knows whether the collector can store lines.
package health

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/rollway/rollway/collector/config"
)

// Health is safe for concurrent use.
type Health struct {
	o Options

	began    time.Time
	turned   atomic.Int64 // nanoseconds after began, when Watch last had its turn
	serving  atomic.Bool
	stopping atomic.Bool
	failure  atomic.Pointer[error] // of the last append; nil: it succeeded
}

// Options of a Health.
type Options struct {
	Data    string       // the collector's folder, where a probe is written
	Journal string       // the journal's folder
	MaxSize config.Size  // journal.max_size; 0: none
	Size    func() int64 // bytes of the journal
	Look    func() error // why nothing may be stored now
	Check   func() error // Look, after what can be mended was; it may wait for the disk
	Turn    func()       // waits for the write and the fsync that are under way
}

// New returns the Health of a collector that has opened its journal.
func New(o Options) *Health { return &Health{o: o, began: time.Now()} }

// Start says that the collector serves.
func (h *Health) Start() { h.serving.Store(true) }

// Stop says that the collector shuts down.
func (h *Health) Stop() { h.stopping.Store(true) }

// Stopping reports whether the collector shuts down.
func (h *Health) Stopping() bool { return h.stopping.Load() }

// watchEvery bounds how long lines are stored in files that are gone.
const watchEvery = time.Second

// Watch watches the journal's files until ctx ends.
func (h *Health) Watch(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	var before error
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := h.o.Check()
		h.o.Turn()
		h.turned.Store(int64(time.Since(h.began)))
		switch {
		case now != nil && (before == nil || before.Error() != now.Error()):
			log.Error("lines are refused: "+now.Error(), "folder", h.o.Journal)
		case now == nil && before != nil:
			log.Info("the journal's files are in place again, lines are stored", "folder", h.o.Journal)
		}
		before = now
	}
}

// Stalled returns how long ago the journal was last found to get on. That is a second or two
// while Watch runs and the disk does what it is asked for.
func (h *Health) Stalled() time.Duration {
	return time.Since(h.began) - time.Duration(h.turned.Load())
}

// Note records how an append ended.
func (h *Health) Note(err error) {
	switch {
	case err != nil:
		failure := err // otherwise every err would be allocated
		h.failure.Store(&failure)
	case h.failure.Load() != nil:
		h.failure.Store(nil)
	}
}

// Ready returns why lines cannot be stored now, or nil. After a failed append it tries
// the disk itself: a collector that is not ready may get no lines to try it with.
func (h *Health) Ready() error {
	switch {
	case h.stopping.Load():
		return errors.New("the collector is shutting down")
	case !h.serving.Load():
		return errors.New("the collector is starting")
	}
	if h.o.Look != nil {
		if err := h.o.Look(); err != nil {
			return err
		}
	}
	failure := h.failure.Load()
	if failure == nil {
		return nil
	}
	if limit := int64(h.o.MaxSize); limit > 0 && h.o.Size() >= limit {
		return fmt.Errorf("the journal has reached journal.max_size (%v): %w", h.o.MaxSize, *failure)
	}
	if err := tryDisk(h.o.Data); err != nil {
		return fmt.Errorf("the last lines could not be stored (%w), nor can a probe: %w", *failure, err)
	}
	return nil
}

// probeSize is what must fit on a disk that counts as writable. A full disk may have
// room for less.
const probeSize = 1 << 20

// tryDisk writes and removes a file in dir.
func tryDisk(dir string) error {
	f, err := os.CreateTemp(dir, ".probe-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(make([]byte, probeSize))
	return errors.Join(err, f.Close())
}
