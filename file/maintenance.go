package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"slices"
	"sync"
	"time"

	"github.com/rollway/rollway/internal/aside"
	"github.com/rollway/rollway/internal/disk"
)

// maintenance does the work that no Write should wait for: fsync by interval, of rotated
// files and of the folder, compression and removal of rotated files, repair after a crash.
// Its goroutines run from the first need to Shutdown.
type maintenance struct {
	f *File

	mu         sync.Mutex
	begun      bool           // guarded by mu
	closed     bool           // guarded by mu
	running    sync.WaitGroup // the goroutines, and those of ReopenOn; counted up with mu held and before closed
	owed       []owedSync     // guarded by mu
	unreported []string       // rotated files for OnRotated, without Compress; guarded by mu
	failed     error          // errors of fsync, until Sync or Close returns them; guarded by mu
	wake       chan struct{}  // holds one value while a pass is wanted
	stop       chan struct{}  // closed when no more work comes
	ctx        context.Context
	cancel     context.CancelFunc // cancels the work in progress

	maintaining sync.Mutex    // held while the series is changed, from a pass or a Write
	searched    bool          // rotated files were searched for lines torn by a power cut; guarded by tidying
	syncing     chan struct{} // holds one value during an fsync, because the system reports a failure once

	fsync func(*os.File) error                // disk.SyncData, except in tests
	free  func(*os.File, int64) (bool, error) // disk.Free, except in tests
}

func newMaintenance(f *File) *maintenance {
	m := &maintenance{
		f:       f,
		wake:    make(chan struct{}, 1),
		stop:    make(chan struct{}),
		syncing: make(chan struct{}, 1),
		fsync:   disk.SyncData,
		free:    disk.Free,
	}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m
}

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

func (m *maintenance) watch() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.closed {
		m.running.Add(1)
	}
	return !m.closed
}

func (m *maintenance) request() {
	if !m.begin() {
		return
	}
	aside.Signal(m.wake)
}

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

// close ends the goroutines: they may finish their work until ctx ends.
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
	aside.Await(ended, stopTimeout)
	return m.popFailure()
}

const never = 24 * time.Hour

// pass brings the series to the state that Options ask for. It returns when the next pass
// is due, and false if something has to be retried soon.
func (m *maintenance) pass() (again time.Duration, ok bool) {
	m.syncOwed(false)
	m.maintaining.Lock()
	defer m.maintaining.Unlock()
	s, _ := m.f.current()
	list, err := s.list()
	if err != nil {
		m.f.tell(maintaining, m.f.fail("list rotated files of", err))
		return never, false
	}
	ok = true
	changed := false
	try := func(of topic, did bool, err error) {
		changed = changed || did
		ok = ok && err == nil
		if err != nil && !errors.Is(err, errBusy) && m.ctx.Err() == nil {
			m.f.tell(of, m.f.fail("tidy", err))
		}
	}
	for _, x := range list {
		if m.ctx.Err() != nil {
			return never, false
		}
		did, err := m.repair(x)
		try(maintaining, did, err)
		if !m.searched {
			did, err = m.cutTorn(x)
			try(maintaining, did, err)
		}
	}
	m.searched = true
	list = slices.DeleteFunc(list, (*rotatedFile).gone)
	prune := func() {
		left, did, err := m.prune(list, m.release)
		list = left
		try(removing, did, err)
	}
	if m.f.opt.OnRotated == nil {
		prune() // before compressing what is removed
	}
	m.reportRotated()
	for _, x := range list[:max(0, len(list)-m.f.opt.KeepPlain)] {
		if m.ctx.Err() != nil {
			return never, false
		}
		if m.f.opt.Compress != nil && x.plain != "" && x.compressed == "" {
			try(compressing, true, m.compress(x))
		}
	}
	if m.f.opt.OnRotated != nil {
		prune()
	}
	if changed {
		if err := syncFolders(s.folder); err != nil {
			try(syncing, false, fmt.Errorf("fsync folder %s: %w", s.folder, err))
		}
	}
	again = never
	if age := m.f.opt.KeepAge; age > 0 && len(list) > 0 {
		again = max(age-time.Since(list[0].time), time.Second)
	}
	return min(again, never), ok
}

// cutTorn cuts the part of a line that a power cut has left at the end of a rotated file.
// It removes a file without any other bytes.
func (m *maintenance) cutTorn(x *rotatedFile) (did bool, err error) {
	if x.plain == "" || x.compressed != "" || x.size == 0 {
		return false, nil
	}
	f, err := acquire(x.plain)
	if errors.Is(err, errBusy) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	cut, err := m.f.cutTorn(target{f: f, real: x.plain, regular: true})
	f.Close()
	x.size -= cut
	if err == nil && x.size == 0 {
		return m.removeEmpty(x)
	}
	return cut > 0, err
}

// reportRotated tells OnRotated of rotated files, if they are not compressed.
func (m *maintenance) reportRotated() {
	m.mu.Lock()
	news := m.unreported
	m.unreported = nil
	m.mu.Unlock()
	for _, path := range news {
		m.tellRotated(path)
	}
}

func (m *maintenance) tellRotated(path string) {
	if m.f.opt.OnRotated == nil {
		return
	}
	defer func() {
		if v := recover(); v != nil {
			m.f.countError(fmt.Errorf("file: Options.OnRotated panicked: %v", v))
		}
	}()
	m.f.opt.OnRotated(path)
}

// ReopenOn calls Reopen when the process gets one of the signals, for logrotate's
// postrotate script: f.ReopenOn(syscall.SIGHUP). It ends with Close or with stop, which
// does not wait and may be called again. Errors go to Options.OnError. Windows has no
// SIGHUP; there a File notices at its next check that it was moved.
func (f *File) ReopenOn(signals ...os.Signal) (stop func()) {
	got := make(chan os.Signal, 1)
	stopped := make(chan struct{})
	stop = sync.OnceFunc(func() {
		signal.Stop(got)
		close(stopped)
	})
	if len(signals) == 0 || !f.maintenance.watch() {
		return stop
	}
	signal.Notify(got, signals...)
	go func() {
		defer f.maintenance.running.Done()
		defer stop()
		for {
			select {
			case <-got:
				if err := f.Reopen(); err != nil && !errors.Is(err, os.ErrClosed) { // a signal that came with Close
					f.teller.Tell(int(reopening), err) // which is counted
				}
			case <-stopped:
				return
			case <-f.maintenance.stop:
				return
			}
		}
	}()
	return stop
}
