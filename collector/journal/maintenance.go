package journal

import (
	"fmt"
	"slices"
	"time"
)

// wake sends to c, which has room for one value, unless that is there.
func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// maintain seals retired segments and applies retention until stop is closed.
func (j *Journal) maintain() {
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
		if j.Look(); j.folderMoved() {
			continue // another process may own what is in its place
		}
		j.settleAll()
		j.deleteOld(time.Now(), 0)
		j.saveManifest(false)
	}
}

// retireAged retires the newest segment if its first record is too old for retention, and
// creates the next one, whose name keeps the offset.
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

// deleteOld deletes the oldest settled segments while retention asks for it or, with
// RetainBytes, while need more bytes would exceed a limit. The newest segment stays: its
// name keeps the offset.
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
	// Readers look in the list first, then for the file.
	s.gone = true
	j.segs = j.segs[1:]
	records := j.segs[0].first - s.first
	j.counters.DeletedSegments++
	j.counters.DeletedRecords += records // with First, or a snapshot between would not add up
	size := s.bytesLocked()
	j.mu.Unlock()
	err := j.remove(j.path(s.first, ext), size)
	j.mu.Lock()
	if err != nil {
		s.gone = false
		j.segs = slices.Insert(j.segs, 0, s)
		j.counters.DeletedSegments--
		j.counters.DeletedRecords -= records
		j.noteLocked(fmt.Errorf("delete segment by retention: %w", err))
		return false
	}
	j.total -= size
	j.changedLocked()
	return true
}
