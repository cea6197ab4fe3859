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
	if age := j.leastAge(); age > 0 {
		t := time.NewTicker(min(max(age/10, 10*time.Millisecond), time.Hour))
		defer t.Stop()
		tick = t.C
	}
	for {
		var ticked time.Time
		select {
		case <-j.kick:
		case ticked = <-tick:
		case <-j.stop:
			j.settleAll()
			return
		}
		if j.Look(); j.folderMoved() {
			continue // another process may own what is in its place
		}
		if !ticked.IsZero() {
			j.retireAged(ticked)
		}
		j.settleAll()
		j.deleteOld(time.Now(), 0)
		if len(j.o.Tenants) > 0 {
			wake(j.kickPacker)
		}
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
		aged = s.end > s.first && now.Sub(s.begun) > j.leastAge()
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
	over := j.overLocked() || j.o.RetainBytes > 0 && j.o.MaxBytes > 0 && j.total+need > j.o.MaxBytes
	age := j.ageLocked(s)
	aged := age > 0 && now.Sub(s.written) > age
	return (over || aged) && j.removeOldestLocked(s)
}

// overLocked reports whether the files have more than RetainBytes. Segments that wait to be
// packed do not count, as long as all have no more than twice as much.
func (j *Journal) overLocked() bool {
	r := j.o.RetainBytes
	if r == 0 || j.total <= r || !j.o.Pack {
		return r > 0 && j.total > r
	}
	_, waiting := j.waitingLocked()
	return j.total-min(waiting, r) > r
}

// waitingLocked returns how many full segments wait to be packed, and the bytes of their files.
func (j *Journal) waitingLocked() (n int, bytes int64) {
	if !j.o.Pack {
		return 0, 0
	}
	for i := len(j.segs) - 1; i >= 0 && !j.segs[i].packed; i-- {
		if s := j.segs[i]; s.retired && !s.unpackable {
			n, bytes = n+1, bytes+s.bytesLocked()
		}
	}
	return n, bytes
}

// removeOldestLocked removes s, the oldest segment, if it may be removed. The caller holds
// deleting. It releases mu meanwhile.
func (j *Journal) removeOldestLocked(s *segment) bool {
	if !j.manifest.open { // by one that says closed, the next start would miss s
		j.mu.Unlock()
		j.saveManifest(false) // what cannot be written, as on a full disk, does not stop retention
		j.mu.Lock()
	}
	if !s.settled || j.holderLocked(s) != nil {
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
	j.dropCountsLocked(s)
	j.changedLocked()
	return true
}
