package file

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollway/rollway/internal/disk"
)

// maintenance does for a File what no Write should wait for: fsync by interval,
// fsync of rotated files and of the folder, compressing and removing rotated
// files, finishing what a crash has left. Its goroutines run from the first need
// to Shutdown.
type maintenance struct {
	f *File

	mu      sync.Mutex
	begun   bool           // guarded by mu
	closed  bool           // guarded by mu
	running sync.WaitGroup // the goroutines, and those of ReopenOn; counted up with mu held and before closed
	owed    []owedSync     // guarded by mu
	news    []string       // rotated files for OnRotated, without Compress; guarded by mu
	failed  error          // of an fsync, until Sync or Close returns it; guarded by mu
	wake    chan struct{}  // holds one value while a pass is wanted
	stop    chan struct{}  // closed when no more work comes
	ctx     context.Context
	cancel  context.CancelFunc // gives up on the work there is

	tidying sync.Mutex    // held while the series is changed, from a pass or a Write
	looked  bool          // rotated files were searched for what a power cut has left; guarded by tidying
	syncing chan struct{} // holds one value during an fsync: the system reports a failure once

	fsync    func(*os.File) error        // disk.SyncData, except in tests
	truncate func(*os.File, int64) error // File.Truncate, except in tests
}

// fsyncs is what the calls of fsync for one open file have returned. After one
// that failed there is no other.
type fsyncs struct {
	f      *os.File
	dirty  atomic.Bool           // bytes were written since the last by interval
	worked atomic.Bool           // one succeeded
	lost   atomic.Pointer[error] // of the one that failed
}

// failure returns the error of the call that failed.
func (s *fsyncs) failure() error {
	if err := s.lost.Load(); err != nil {
		return *err
	}
	return nil
}

// lose notes err as the error of the call that failed.
func (s *fsyncs) lose(err error) { s.lost.Store(&err) }

// owedSync is a file that was the current one and may not be on the disk yet.
type owedSync struct {
	path string
	open *fsyncs // nil if it is closed
}

const (
	// owedLimit is how many files are left for Sync to find, with SyncNever.
	owedLimit = 16
	// slowSync is how long an fsync in the background takes before OnError is
	// told: nobody waits for it, so nobody else would notice.
	slowSync = time.Second
)

func newMaintenance(f *File) *maintenance {
	m := &maintenance{
		f:        f,
		wake:     make(chan struct{}, 1),
		stop:     make(chan struct{}),
		syncing:  make(chan struct{}, 1),
		fsync:    disk.SyncData,
		truncate: (*os.File).Truncate,
	}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m
}

// begin starts the goroutines. It reports false after the end.
func (m *maintenance) begin() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.begun && !m.closed {
		m.begun = true
		m.running.Go(m.run)
		if m.f.opt.Sync == SyncInterval {
			m.running.Go(m.syncByInterval)
		}
	}
	return !m.closed
}

// watch counts a goroutine of ReopenOn in. It reports false after the end.
func (m *maintenance) watch() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.closed {
		m.running.Add(1)
	}
	return !m.closed
}

// poke asks for a pass.
func (m *maintenance) poke() {
	if !m.begin() {
		return
	}
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// retired takes over a file that is no longer the current one.
func (m *maintenance) retired(old target) error {
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
		unlock(old.f) // nothing comes after what is in it
		owed.open = old.fsyncs
	}
	m.mu.Lock()
	if path != "" && o.OnRotated != nil && o.Compress == nil {
		m.news = append(m.news, path)
	}
	if owed.open != nil || lazy && !lost {
		m.owed = append(m.owed, owed)
	}
	m.mu.Unlock()
	if owed.open != nil || path != "" || o.series() {
		m.poke()
	}
	return err
}

// syncOwed calls fsync on files that were the current one and closes them: on
// all, or on those that are not left for Sync.
func (m *maintenance) syncOwed(all bool) {
	m.syncing <- struct{}{}
	defer func() { <-m.syncing }()
	for {
		s, ok := m.takeOwed(all)
		if !ok {
			return
		}
		if err := m.syncRotated(s); err != nil {
			m.lose(fmt.Errorf("what was written before the rotation may not be on the disk: %w", err))
		}
	}
}

// takeOwed returns the first of the files that syncOwed is for.
func (m *maintenance) takeOwed(all bool) (s owedSync, ok bool) {
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

// lose tells of an fsync that failed and has the next Sync or Close return its
// error.
func (m *maintenance) lose(err error) {
	m.mu.Lock()
	m.failed = errors.Join(m.failed, err)
	m.mu.Unlock()
	m.f.tell(syncing, m.f.fail("sync", err))
}

// takeFailure returns what lose was given since the last call.
func (m *maintenance) takeFailure() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	err := m.failed
	m.failed = nil
	return err
}

// sync calls fsync on the current file, unless it has failed before.
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
// Writes go on meanwhile.
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
		m.syncOwed(false) // the other goroutine may be compressing for long
		s := m.f.current()
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

// run makes a pass whenever one is asked for or something is due.
func (m *maintenance) run() {
	var retry time.Duration
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-m.wake:
		case <-timer.C:
		case <-m.stop:
			select {
			case <-m.wake:
				m.pass()
			default:
				m.syncOwed(false)
			}
			return
		}
		again, ok := m.pass()
		if ok {
			retry = 0
		} else {
			retry = min(max(2*retry, time.Second), time.Minute)
			again = min(again, retry)
		}
		timer.Reset(again)
	}
}

// close ends the goroutines: it lets them do what they have begun until ctx
// ends, and then no longer than it takes to stop cleanly.
func (m *maintenance) close(ctx context.Context) error {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	close(m.stop)
	ended := make(chan struct{})
	go func() {
		m.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
	m.cancel()
	select {
	case <-ended:
	case <-time.After(patience):
	}
	return m.takeFailure()
}

// syncFolders makes the names in folders durable. One that may not be read is left
// to the operating system.
func syncFolders(folders ...string) error {
	var errs []error
	for _, folder := range slices.Compact(folders) {
		if err := (disk.Real{}).SyncDir(folder); !errors.Is(err, os.ErrPermission) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
