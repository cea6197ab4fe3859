package collector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/collector/journal"
)

// health knows whether lines can be stored.
type health struct {
	journal *journal.Journal
	config  config.Config

	serving  atomic.Bool
	stopping atomic.Bool
	failure  atomic.Pointer[error] // of the last append; nil: it succeeded

	folder os.FileInfo           // the journal's, as it was opened; nil: not known
	lost   atomic.Pointer[error] // why folder is not in its place; nil: it is
}

func (h *health) init(j *journal.Journal, cfg config.Config) {
	h.journal, h.config = j, cfg
	h.folder, _ = os.Stat(JournalFolder(cfg.Data)) // without it the folder cannot be watched
}

// JournalFolder is where a data folder has its journal.
func JournalFolder(data string) string { return filepath.Join(data, "journal") }

// watchEvery is how long lines may be stored in a folder that is gone.
const watchEvery = time.Second

// watch looks after the journal's folder until ctx ends. The system goes on
// writing to files that were removed, and says nothing.
func (h *health) watch(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		before := h.lost.Load()
		switch now := h.look(); {
		case now != nil && before == nil:
			log.Error("lines are refused: "+now.Error(), "folder", JournalFolder(h.config.Data))
		case now == nil && before != nil:
			log.Info("the journal's folder is back, lines are stored again", "folder", JournalFolder(h.config.Data))
		}
	}
}

// look notes whether the journal's folder is the one that was opened, and
// returns why it is not.
func (h *health) look() error {
	if h.folder == nil {
		return nil
	}
	info, err := os.Stat(JournalFolder(h.config.Data))
	switch {
	case err == nil && os.SameFile(info, h.folder):
		h.lost.Store(nil)
		return nil
	case err == nil:
		err = errors.New("another one is in its place")
	}
	err = fmt.Errorf("the journal's folder was removed or replaced (%w); put it back or restart the collector", err)
	h.lost.Store(&err)
	return err
}

// storable returns why nothing may be stored now.
func (h *health) storable() error {
	if lost := h.lost.Load(); lost != nil {
		return *lost
	}
	return nil
}

// note records how an append ended.
func (h *health) note(err error) {
	switch {
	case err != nil:
		h.failure.Store(&err)
	case h.failure.Load() != nil:
		h.failure.Store(nil)
	}
}

// ready returns why lines cannot be stored now; nil: they can. After a failed
// append it tries the disk itself, as a collector that is not ready may be sent
// no lines by which it could find out.
func (h *health) ready() error {
	switch {
	case h.stopping.Load():
		return errors.New("the collector is shutting down")
	case !h.serving.Load():
		return errors.New("the collector is starting")
	}
	if err := h.look(); err != nil {
		return err
	}
	failure := h.failure.Load()
	if failure == nil {
		return nil
	}
	if limit := int64(h.config.Journal.MaxSize); limit > 0 && h.journal.Stats().Bytes >= limit {
		return fmt.Errorf("the journal has reached journal.max_size (%v): %w", h.config.Journal.MaxSize, *failure)
	}
	if err := tryDisk(h.config.Data); err != nil {
		return fmt.Errorf("the last lines could not be stored (%w), nor can a probe: %w", *failure, err)
	}
	return nil
}

// probeSize is what must fit on the disk for it to count as writable: more than
// the crumb that a full disk may have left.
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
