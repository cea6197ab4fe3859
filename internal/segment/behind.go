package segment

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"
)

// behind is the goroutine that does what writes need not wait for: fsync by
// interval, the end of files that are done, the removal of old ones.
type behind struct {
	log   *Log
	work  chan struct{} // holds a token when there is something in todo
	quit  chan struct{}
	done  chan struct{}
	freer freer       // owned by run
	alarm *time.Timer // runs stalled; owned by run

	mu      sync.Mutex
	idle    *sync.Cond // todo is empty and nothing of it is under way
	todo    []func() error
	busy    bool
	cur     *segment // guarded by mu; the file in use
	unsaved bool     // guarded by mu; cur was written to since its last fsync
	syncing string   // guarded by mu; the path of the file of the latest fsync by interval
	slow    bool     // guarded by mu; that has taken long, which was told
	failed  error    // guarded by mu; of an fsync of cur
	lost    error    // guarded by mu; errors that the next Sync returns
}

func startBehind(l *Log) *behind {
	b := &behind{log: l, work: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{})}
	b.idle = sync.NewCond(&b.mu)
	go b.run()
	return b
}

func (b *behind) run() {
	defer close(b.done)
	var tick <-chan time.Time
	if b.log.opt.Sync == Interval {
		t := time.NewTicker(b.log.opt.SyncEvery)
		defer t.Stop()
		tick = t.C
		b.alarm = time.AfterFunc(time.Hour, b.stalled)
		b.alarm.Stop() // until there is an fsync
	}
	for {
		select {
		case <-b.work:
			b.drain()
		case <-tick:
			b.syncDue()
		case <-b.quit:
			b.drain()
			return
		}
	}
}

// drain does what there is to do.
func (b *behind) drain() {
	for {
		b.mu.Lock()
		if len(b.todo) == 0 {
			b.busy = false
			b.idle.Broadcast()
			b.mu.Unlock()
			return
		}
		do := b.todo[0]
		b.todo, b.busy = b.todo[1:], true
		b.mu.Unlock()
		if err := do(); err != nil {
			b.log.notice("%w", err)
			b.mu.Lock()
			b.lost = errors.Join(b.lost, err)
			b.mu.Unlock()
		}
	}
}

func (b *behind) add(do func() error) {
	b.mu.Lock()
	b.todo = append(b.todo, do)
	b.mu.Unlock()
	select {
	case b.work <- struct{}{}:
	default:
	}
}

// wait returns when everything that was added before is done, with what has
// failed since the last call.
func (b *behind) wait() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.todo) > 0 || b.busy {
		b.idle.Wait()
	}
	err := b.lost
	b.lost = nil
	return err
}

// stop does the rest and ends the goroutine.
func (b *behind) stop() error {
	close(b.quit)
	<-b.done
	b.freer.stop()
	return b.wait()
}

// watch makes s the file that is synced by interval.
func (b *behind) watch(s *segment) {
	b.mu.Lock()
	b.cur, b.unsaved, b.failed = s, false, nil
	b.mu.Unlock()
}

// dirty notes that s was written to.
func (b *behind) dirty(s *segment) {
	b.mu.Lock()
	b.unsaved = b.unsaved || b.cur == s
	b.mu.Unlock()
}

// verdict returns the error of an fsync of s in the background.
func (b *behind) verdict(s *segment) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cur != s {
		return nil
	}
	return b.failed
}

// syncDue calls fsync on the file in use if it was written to.
func (b *behind) syncDue() {
	b.mu.Lock()
	s, due := b.cur, b.unsaved && b.failed == nil
	b.unsaved = false
	b.mu.Unlock()
	if !due {
		return
	}
	if err := b.watched(s); err != nil && !errors.Is(err, fs.ErrClosed) {
		b.mu.Lock()
		if b.cur == s {
			b.failed = err
		}
		b.lost = errors.Join(b.lost, err)
		b.mu.Unlock()
		b.log.notice("%w", err)
	}
}

// watched is syncSegment, and tells if that takes long: no call waits for it, so
// nobody else would. It tells once, until one is quick again.
func (b *behind) watched(s *segment) error {
	b.mu.Lock()
	b.syncing = s.path
	b.mu.Unlock()
	b.alarm.Reset(b.log.opt.StallAfter)
	err := b.log.syncSegment(s)
	if b.alarm.Stop() {
		b.mu.Lock()
		b.slow = false
		b.mu.Unlock()
	}
	return err
}

// stalled tells that an fsync takes long.
func (b *behind) stalled() {
	b.mu.Lock()
	path, told := b.syncing, b.slow
	b.slow = true
	b.mu.Unlock()
	if !told {
		b.log.notice("the fsync of %s in the background has not returned for %v", path, b.log.opt.StallAfter)
	}
}

// retire has s closed, after an fsync if sync is set and none has failed, which
// was told then.
func (b *behind) retire(s *segment, sync bool) {
	b.mu.Lock()
	if b.cur == s {
		b.cur, b.unsaved = nil, false
	}
	b.mu.Unlock()
	b.add(func() error {
		var err error
		if sync && s.syncErr == nil { // nobody else calls fsync on it any more
			err = b.log.syncSegment(s)
		}
		return errors.Join(err, s.close())
	})
}

// prune has the oldest files removed that Keep does not cover.
func (b *behind) prune(path string) {
	keep := b.log.opt.Keep
	if keep == 0 {
		return
	}
	b.add(func() error {
		names, err := rotated(path)
		if b.log.opt.Framed {
			keep++ // one more, to be written over
		}
		for len(names) > keep && err == nil {
			if err = b.freer.remove(names[0]); errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
			if err == nil {
				b.log.count(func(s *Stats) { s.Removed++ })
			}
			names = names[1:]
		}
		if err != nil {
			err = fmt.Errorf("remove old files: %w", err)
		}
		return err
	})
}

// syncSegment forces s and its name to the disk, unless that has failed before.
// It is safe for concurrent use.
func (l *Log) syncSegment(s *segment) error {
	s.syncing <- struct{}{}
	defer func() { <-s.syncing }()
	if s.syncErr != nil {
		return s.syncErr
	}
	err := l.syncData(s.f)
	l.count(func(st *Stats) {
		st.Syncs++
		if err != nil {
			st.SyncErrors++
		}
	})
	if err == nil {
		err = s.folderErr
	}
	if err == nil { // each time: of a disk that just went away the first call may have seen nothing
		err = s.folder.Sync()
	}
	if err != nil {
		s.syncErr = fmt.Errorf("sync: %w", err)
		return s.syncErr
	}
	s.synced.Store(true)
	return nil
}
