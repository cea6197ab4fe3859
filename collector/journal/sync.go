package journal

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rollway/rollway/internal/disk"
)

// syncer shares fsyncs: the first caller syncs all that is written by then, the others wait
// for the round that covers them. Journal.mu guards its fields, except that work belongs to
// the current round.
type syncer struct {
	busy  bool       // a round is running
	queue queue      // waiting for a round to end
	dirty []*segment // perhaps not durable to their end, oldest first
	work  []syncTask

	buf [compareBytes]byte // of the current round, as work is

	failures int       // fsyncs in a row that failed
	failed   time.Time // when the last one did
}

// rotatePause is the least time between new segments while no fsync succeeds, so that a
// broken disk is not filled with files.
const rotatePause = time.Second

// mayRotate reports whether a segment whose fsync failed may be replaced now.
func (y *syncer) mayRotate(now time.Time) bool {
	return y.failures <= 1 || now.Sub(y.failed) >= rotatePause
}

type syncTask struct {
	s    *segment
	file disk.File
	end  uint64
	size int64
	tail tail
	name bool // the name is to be made durable too
}

// syncToLocked returns when the records of s below offset to, and all before them, are
// durable, or with the error of s's fsync. It releases mu meanwhile.
func (j *Journal) syncToLocked(w *waiter, s *segment, to uint64) error {
	y := &j.syncer
	for s.synced < to && s.syncErr == nil && s.away == nil {
		if y.busy {
			w.seg, w.target = s, to
			y.queue.push(w)
			j.mu.Unlock()
			<-w.ready
			j.mu.Lock()
			continue
		}
		y.busy = true
		j.syncRoundLocked()
		y.busy = false
		// Finished waiters leave; the first of the rest leads the next round.
		waiting, leader := y.queue, false
		y.queue = queue{}
		for o := waiting.pop(); o != nil; o = waiting.pop() {
			over := o.seg.synced >= o.target || o.seg.syncErr != nil || o.seg.away != nil
			if !over && leader {
				y.queue.push(o)
				continue
			}
			leader = leader || !over
			o.ready <- struct{}{}
		}
	}
	switch {
	case s.synced >= to:
	case s.syncErr != nil:
		return s.syncErr
	default:
		return fmt.Errorf("make segment %s durable: %w: %w", segmentName(s.first, ""), ErrNotSynced, s.away)
	}
	return nil
}

// awaitRoundLocked waits for the round of fsyncs that is under way, if one is. It releases mu
// meanwhile. s is any segment.
func (j *Journal) awaitRoundLocked(s *segment) {
	if !j.syncer.busy {
		return
	}
	w := j.waiterLocked()
	w.seg, w.target = s, 0 // which each round reaches
	j.syncer.queue.push(w)
	j.mu.Unlock()
	<-w.ready
	j.mu.Lock()
	j.releaseLocked(w)
}

// syncRoundLocked makes durable what is written now. It releases mu during fsyncs; only the
// holder of syncer.busy may call it.
func (j *Journal) syncRoundLocked() {
	y := &j.syncer
	y.work = y.work[:0]
	for _, s := range y.dirty {
		if s.synced < s.end && s.syncErr == nil && s.away == nil {
			y.work = append(y.work, syncTask{s, s.file, s.end, s.size, s.tail, !s.named})
		}
	}
	for i := range y.work {
		t := &y.work[i]
		j.mu.Unlock()
		var away error
		var left tail
		err := t.file.Sync()
		if err == nil && t.name {
			err = j.fs.SyncDir(j.dir)
		}
		if err == nil {
			left, away = t.inPlace(y.buf[:])
		}
		j.mu.Lock()
		j.counters.Fsyncs++
		if away != nil {
			t.s.takenLocked(away)
			j.lost = t.s.away
			continue
		}
		if err != nil {
			err = fmt.Errorf("make segment %s durable: %w: %w", segmentName(t.s.first, ""), ErrNotSynced, err)
			t.s.syncErr = err
			j.counters.SyncErrors++
			if j.counters.lostSync == nil {
				j.counters.lostSync = err
			}
			y.failures++
			y.failed = time.Now()
			j.noteLocked(err)
			continue
		}
		y.failures = 0
		t.s.synced, t.s.named = t.end, true
		t.s.tail.compared(t.tail, left)
	}
	y.dirty = slices.DeleteFunc(y.dirty, func(s *segment) bool {
		return s.retired && (s.synced >= s.end || s.syncErr != nil)
	})
}

// Sync makes durable all that was stored before the call, or joins an fsync that covers it.
// After an error a part may not survive a power cut; that part is not tried again.
func (j *Journal) Sync() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	var errs []error
	w := j.waiterLocked()
	for _, s := range slices.Clone(j.syncer.dirty) {
		errs = append(errs, j.syncToLocked(w, s, s.end))
	}
	j.releaseLocked(w)
	return errors.Join(errs...)
}
