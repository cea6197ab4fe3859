package journal

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// wakeKeeper makes the keeper look around soon.
func (j *Journal) wakeKeeper() {
	select {
	case j.kick <- struct{}{}:
	default:
	}
}

// keep seals retired segments and applies the retention until stop is closed.
func (j *Journal) keep() {
	defer close(j.keeperDone)
	var tick <-chan time.Time
	if age := j.o.RetainAge; age > 0 {
		t := time.NewTicker(min(max(age/10, 10*time.Millisecond), time.Hour))
		defer t.Stop()
		tick = t.C
	}
	for {
		select {
		case <-j.kick:
		case now := <-tick:
			j.retireAged(now)
		case <-j.stop:
			j.settleAll()
			return
		}
		j.settleAll()
		j.deleteOld(time.Now(), 0)
	}
}

// settleAll seals every retired segment: fsync, rename, fsync of the folder. One
// whose fsync fails, or that holds what cannot be cut from it, keeps its name, so
// that the next Open checks it.
func (j *Journal) settleAll() {
	for {
		s := j.nextRetired()
		if s == nil {
			return
		}
		if err := j.settle(s); err != nil {
			j.note(fmt.Errorf("seal segment %s: %w", segmentName(s.first, ""), err))
		}
		select {
		case j.kickPacker <- struct{}{}:
		default:
		}
	}
}

func (j *Journal) nextRetired() *segment {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, s := range j.segs {
		if s.retired && !s.settled {
			return s
		}
	}
	return nil
}

func (j *Journal) settle(s *segment) error {
	j.mu.Lock()
	w := j.waiterLocked()
	err := j.syncToLocked(w, s, s.end)
	j.releaseLocked(w)
	keys, uncut, size := j.keys.between(s.first, s.end), s.uncut, s.size
	j.mu.Unlock()
	renamed := false
	if err == nil && uncut { // a sealed segment is believed to its end
		if err = s.file.Truncate(size); err == nil {
			err = s.file.Sync()
		}
	}
	if err == nil {
		err = j.writeKeyFile(s, keys)
	}
	if err == nil {
		err = j.fs.Rename(j.path(s.first, extOpen), j.path(s.first, extSealed))
		renamed = err == nil
		if renamed {
			err = j.fs.SyncDir(j.dir)
		}
	}
	err = errors.Join(err, s.file.Close())
	j.mu.Lock()
	defer j.mu.Unlock()
	s.file = nil
	s.settled, s.sealed = true, renamed
	return err
}

// retireAged ends the newest segment when its first record is so old that
// retention would delete it, and begins the next, whose name keeps the offset
// when no other file is left.
func (j *Journal) retireAged(now time.Time) {
	j.acquire()
	defer j.release()
	j.mu.Lock()
	aged := false
	if n := len(j.segs); n > 0 {
		s := j.segs[n-1]
		aged = s.end > s.first && now.Sub(s.begun) > j.o.RetainAge
	}
	next := j.next
	j.mu.Unlock()
	if !aged {
		return
	}
	j.retire()
	s, err := j.createSegment(next)
	if err != nil {
		j.note(err)
		return
	}
	j.writer.seg = s
}

// deleteOld deletes the oldest settled segments while retention asks for it, or,
// where there is a RetainBytes, while need more bytes would pass a limit. The
// newest segment always stays, because its name carries the offset.
func (j *Journal) deleteOld(now time.Time, need int64) {
	j.deleting.Lock()
	defer j.deleting.Unlock()
	for j.deleteOldest(now, need) {
	}
}

func (j *Journal) deleteOldest(now time.Time, need int64) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.segs) < 2 {
		return false
	}
	s := j.segs[0]
	keep := j.o.RetainBytes
	if j.o.MaxBytes > 0 {
		keep = min(keep, j.o.MaxBytes)
	}
	over := j.o.RetainBytes > 0 && j.total+need > keep
	aged := j.o.RetainAge > 0 && now.Sub(s.written) > j.o.RetainAge
	if !s.settled || !over && !aged || j.holderLocked(s) != nil {
		return false
	}
	ext := extOpen
	if s.sealed {
		ext = extSealed
	}
	// Readers look for it in the list first, then for the file.
	s.gone = true
	j.segs = j.segs[1:]
	records := j.segs[0].first - s.first
	j.counters.DeletedSegments++
	j.counters.DeletedRecords += records // with First, or a snapshot between would not add up
	j.mu.Unlock()
	err := j.remove(j.path(s.first, ext), s.size)
	var keysErr error
	if err == nil {
		keysErr = j.removeFile(j.path(s.first, extKeys)) // else the next Open removes it
	}
	j.mu.Lock()
	if keysErr != nil {
		j.noteLocked(fmt.Errorf("delete keys by retention: %w", keysErr))
	}
	if err != nil {
		s.gone = false
		j.segs = slices.Insert(j.segs, 0, s)
		j.counters.DeletedSegments--
		j.counters.DeletedRecords -= records
		j.noteLocked(fmt.Errorf("delete segment by retention: %w", err))
		return false
	}
	j.total -= s.size
	return true
}
