package file

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/rollway/rollway/internal/disk"
)

// A keeper does for a File what no Write should wait for: fsync by interval,
// fsync of rotated files and of the folder, packing and removing rotated files,
// finishing what a crash has left. Its goroutines run from the first need to
// Shutdown.
type keeper struct {
	f *File

	mu      sync.Mutex
	state   keeperState // guarded by mu
	running int         // goroutines; guarded by mu
	behind  []behind    // guarded by mu
	news    []string    // rotated files for OnRotated, without Compress; guarded by mu
	failed  error       // of an fsync of a file behind, until Sync or Close returns it; guarded by mu
	lost    struct {    // the last file whose fsync failed; guarded by mu
		f   *os.File
		err error
	}
	wake   chan struct{} // holds one value while a pass is wanted
	stop   chan struct{} // closed when no more work comes
	done   chan struct{} // closed when the goroutines have ended after stop
	ctx    context.Context
	cancel context.CancelFunc // gives up on the work there is

	tidying   sync.Mutex // held while the series is changed, from a pass or a Write
	toldOwner bool       // notice was given of an owner that cannot be kept; guarded by tidying
	looked    bool       // rotated files were looked through for what a power cut has left; guarded by tidying
	syncing   sync.Mutex // held during an fsync: the system reports a failure once
}

type keeperState int

const (
	idle keeperState = iota
	started
	stopped
)

// behind is a file that was the current one and may not be on the disk yet.
type behind struct {
	path string
	f    *os.File // nil if it is closed
}

// behindLimit is how many files are left for Sync to find, with Never.
const behindLimit = 16

func newKeeper(f *File) *keeper {
	k := &keeper{f: f, wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	k.ctx, k.cancel = context.WithCancel(context.Background())
	return k
}

// begin starts the goroutines. It reports false after the end.
func (k *keeper) begin() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.state == idle {
		k.state = started
		k.running = 1
		if k.f.opt.Sync == Interval {
			k.running++
			go k.syncByInterval()
		}
		go k.run()
	}
	return k.state == started
}

// poke asks for a pass.
func (k *keeper) poke() {
	if !k.begin() {
		return
	}
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// retired takes over a file that is no longer the current one.
func (k *keeper) retired(old target, path string, syncErr error) error {
	if old.std || !old.regular {
		return old.close()
	}
	if path != "" && k.f.opt.OnRotated != nil && k.f.opt.Compress == nil {
		k.mu.Lock()
		k.news = append(k.news, path)
		k.mu.Unlock()
	}
	lazy := k.f.opt.Sync == Never && path != ""
	if k.f.opt.Sync == EachWrite || syncErr != nil || lazy || !k.begin() {
		err := old.close()
		if lazy {
			k.mu.Lock()
			k.behind = append(k.behind, behind{path: path})
			k.mu.Unlock()
		}
		if path != "" || k.f.opt.series() {
			k.poke()
		}
		return errors.Join(syncErr, err)
	}
	if err := old.free(); err != nil {
		k.f.tell(k.f.fail("rotate", err))
	}
	unlock(old.f) // nothing comes after what is in it
	k.mu.Lock()
	k.behind = append(k.behind, behind{path: path, f: old.f})
	k.mu.Unlock()
	k.poke()
	return nil
}

// syncBehind calls fsync on files behind and closes them: on all, or on those
// that are not left for Sync.
func (k *keeper) syncBehind(all bool) {
	k.syncing.Lock()
	defer k.syncing.Unlock()
	for {
		k.mu.Lock()
		i := 0
		for i < len(k.behind) && !all && k.behind[i].f == nil && len(k.behind) <= behindLimit {
			i++
		}
		if i == len(k.behind) {
			k.mu.Unlock()
			return
		}
		b := k.behind[i]
		k.behind = append(k.behind[:i:i], k.behind[i+1:]...)
		k.mu.Unlock()
		if err := errors.Join(k.lostOf(b.f), b.sync()); err != nil {
			err = fmt.Errorf("what was written before the rotation may not be on the disk: %w", err)
			k.mu.Lock()
			k.failed = errors.Join(k.failed, err)
			k.mu.Unlock()
			k.f.tell(k.f.fail("sync", err))
		}
		k.f.count(func(s *Stats) { s.Syncs++ })
	}
}

func (b behind) sync() error {
	if b.f == nil {
		var err error
		if b.f, err = openFile(b.path, os.O_RDONLY, 0); errors.Is(err, os.ErrNotExist) {
			return nil // removed, or packed and so fsynced
		} else if err != nil {
			return err
		}
	}
	return errors.Join(b.f.Sync(), b.f.Close())
}

// takeFailure returns what syncBehind met since the last call.
func (k *keeper) takeFailure() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	err := k.failed
	k.failed = nil
	return err
}

// syncCurrent calls fsync on the current file, unless it has failed before.
func (k *keeper) syncCurrent(f *os.File) error {
	k.syncing.Lock()
	defer k.syncing.Unlock()
	if err := k.lostOf(f); err != nil {
		return err
	}
	k.f.count(func(s *Stats) { s.Syncs++ })
	err := f.Sync()
	if err == nil {
		return nil
	}
	err = fmt.Errorf("what was written may not be on the disk: %w", err)
	if !errors.Is(err, os.ErrClosed) {
		k.mu.Lock()
		k.lost.f, k.lost.err = f, err
		k.mu.Unlock()
	}
	return err
}

// lostOf returns how an fsync of f failed.
func (k *keeper) lostOf(f *os.File) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if f == nil || k.lost.f != f {
		return nil
	}
	return k.lost.err
}

// forget makes the next fsync of f count again.
func (k *keeper) forget(f *os.File) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.lost.f == f {
		k.lost.f, k.lost.err = nil, nil
	}
}

// syncByInterval calls fsync on the current file and on those just rotated.
// Writes go on meanwhile.
func (k *keeper) syncByInterval() {
	defer k.ended()
	tick := time.NewTicker(k.f.opt.SyncEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-k.stop:
			return
		}
		k.syncBehind(false) // the other goroutine may be packing for long
		f := k.f.takeDirty()
		if f == nil || k.lostOf(f) != nil {
			continue
		}
		if err := k.syncCurrent(f); err != nil && !errors.Is(err, os.ErrClosed) {
			k.f.tell(k.f.fail("sync", err))
		}
	}
}

// run makes a pass whenever one is asked for or something is due.
func (k *keeper) run() {
	defer k.ended()
	var retry time.Duration
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-k.wake:
		case <-timer.C:
		case <-k.stop:
			select {
			case <-k.wake:
				k.pass()
			default:
				k.syncBehind(false)
			}
			return
		}
		again, ok := k.pass()
		if ok {
			retry = 0
		} else {
			retry = min(max(2*retry, time.Second), time.Minute)
			again = min(again, retry)
		}
		timer.Reset(again)
	}
}

func (k *keeper) ended() {
	k.mu.Lock()
	k.running--
	last := k.running == 0
	k.mu.Unlock()
	if last {
		close(k.done)
	}
}

// close ends the goroutines: it lets them do what they have begun until ctx
// ends, and then no longer than it takes to leave off cleanly.
func (k *keeper) close(ctx context.Context) error {
	k.mu.Lock()
	was := k.state
	k.state = stopped
	k.mu.Unlock()
	defer k.cancel()
	if was != started {
		return k.takeFailure()
	}
	close(k.stop)
	select {
	case <-k.done:
		return k.takeFailure()
	case <-ctx.Done():
	}
	k.cancel()
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-k.done:
	case <-t.C:
	}
	return k.takeFailure()
}

// syncFolder makes names in dir durable. One that may not be read is left to
// the operating system.
func syncFolder(dir string) error {
	err := disk.Real{}.SyncDir(dir)
	if errors.Is(err, os.ErrPermission) {
		return nil
	}
	return err
}
