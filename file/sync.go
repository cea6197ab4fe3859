package file

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rollway/rollway/internal/disk"
)

// fsyncs is the results of fsync on one open file. After a failure it is not called again.
type fsyncs struct {
	f      *os.File
	dirty  atomic.Bool           // bytes were written since the last by interval
	worked atomic.Bool           // one succeeded
	lost   atomic.Pointer[error] // of the one that failed
}

func (s *fsyncs) failure() error {
	if err := s.lost.Load(); err != nil {
		return *err
	}
	return nil
}

func (s *fsyncs) lose(err error) { s.lost.Store(&err) }

type owedSync struct {
	path string
	open *fsyncs // nil if it is closed
}

const (
	// owedLimit is how many rotated files wait for Sync, with SyncNever.
	owedLimit = 16
	// slowSync is how long an fsync in the background takes before OnError is told:
	// no call waits for it, so it would go unnoticed.
	slowSync = time.Second
)

func (m *maintenance) finishOld(old target) error {
	if !old.regular {
		return old.close()
	}
	o, path := m.f.opt, old.aside
	lost := old.fsyncs.failure() != nil // which was told
	lazy := o.Sync == SyncNever && path != ""
	owed := owedSync{path: path}
	var err error
	if o.Sync == SyncEachWrite || lost || lazy || !m.begin() {
		err = old.close()
	} else {
		err = old.endTail()
		disk.Unlock(old.f) // nothing comes after what is in it
		owed.open = old.fsyncs
	}
	m.mu.Lock()
	if path != "" && o.OnRotated != nil && o.Compress == nil {
		m.unreported = append(m.unreported, path)
	}
	if owed.open != nil || lazy && !lost {
		m.owed = append(m.owed, owed)
	}
	m.mu.Unlock()
	if owed.open != nil || path != "" || o.series() {
		m.request()
	}
	return err
}

// syncOwed calls fsync on rotated files and closes them: on all, or on those that do not
// wait for Sync.
func (m *maintenance) syncOwed(all bool) {
	m.syncing <- struct{}{}
	defer func() { <-m.syncing }()
	for {
		s, ok := m.nextOwed(all)
		if !ok {
			return
		}
		if err := m.syncRotated(s); err != nil {
			m.lose(fmt.Errorf("what was written before the rotation may not be on the disk: %w", err))
		}
	}
}

func (m *maintenance) nextOwed(all bool) (s owedSync, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all = all || len(m.owed) > owedLimit
	i := slices.IndexFunc(m.owed, func(s owedSync) bool { return all || s.open != nil })
	if i < 0 {
		return s, false
	}
	s = m.owed[i]
	m.owed = slices.Delete(m.owed, i, i+1)
	return s, true
}

func (m *maintenance) syncRotated(s owedSync) error {
	if s.open == nil {
		f, err := openFile(s.path, os.O_RDONLY, 0)
		if errors.Is(err, os.ErrNotExist) {
			return nil // removed, or compressed and so fsynced
		}
		if err != nil {
			return err
		}
		s.open = &fsyncs{f: f}
	}
	if s.open.failure() != nil { // which was told
		_ = s.open.f.Close()
		return nil
	}
	m.f.count(func(s *Stats) { s.Syncs++ })
	return errors.Join(m.fsync(s.open.f), s.open.f.Close())
}

// lose reports an fsync that failed to OnError and to the next Sync or Close.
func (m *maintenance) lose(err error) {
	m.mu.Lock()
	m.failed = errors.Join(m.failed, err)
	m.mu.Unlock()
	m.f.tell(syncing, m.f.fail("sync", err))
}

func (m *maintenance) popFailure() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	err := m.failed
	m.failed = nil
	return err
}

func (m *maintenance) sync(s *fsyncs) error {
	m.syncing <- struct{}{}
	defer func() { <-m.syncing }()
	if err := s.failure(); err != nil {
		return err
	}
	m.f.count(func(s *Stats) { s.Syncs++ })
	err := m.fsync(s.f)
	if err == nil {
		s.worked.Store(true)
		return nil
	}
	err = fmt.Errorf("what was written may not be on the disk: %w", err)
	if !errors.Is(err, os.ErrClosed) {
		s.lose(err)
	}
	return err
}

// syncByInterval calls fsync on the current file and on those just rotated.
func (m *maintenance) syncByInterval() {
	alarm := time.AfterFunc(time.Hour, func() {
		m.f.notice(stalling, "%s: an fsync in the background has not returned for %v", m.f.path, slowSync)
	})
	alarm.Stop()
	tick := time.NewTicker(m.f.opt.SyncEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-m.stop:
			return
		}
		m.syncOwed(false) // the other goroutine may be busy compressing
		_, s := m.f.current()
		if s.failure() != nil || !s.dirty.Swap(false) {
			continue
		}
		alarm.Reset(slowSync)
		err := m.sync(s)
		alarm.Stop()
		if err != nil && !errors.Is(err, os.ErrClosed) {
			m.lose(err)
		}
	}
}

// syncFolders makes the names in folders durable. It skips folders without read permission.
func syncFolders(folders ...string) error {
	var errs []error
	for _, folder := range slices.Compact(folders) {
		if err := (disk.Real{}).SyncDir(folder); !errors.Is(err, os.ErrPermission) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
