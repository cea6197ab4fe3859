package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"os"
	"syscall"
	"time"

	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/recordlog"
)

// Batch is records to store together.
type Batch struct {
	Before  []Chunk // lines that come before Lines
	Lines   []byte  // canonical lines, each ended by '\n'; not kept
	Records int     // number of lines, those in Before included
	MinTime int64   // least time of a record, unix nanoseconds
	MaxTime int64   // greatest time of a record, unix nanoseconds
	Synced  bool    // wait for fdatasync

	// Events is the number of events that became the lines, if some became none; 0: as
	// many as Records. It tells whether a batch belongs to its key.
	Events int

	Owner string // who pays for remembering its key
}

// A Chunk is a part of the lines of a batch. One that is packed becomes a frame as it is.
type Chunk struct {
	Bytes   []byte // lines, or a frame of zstd that tells their length; not kept
	Packed  bool
	Size    int // length of the lines
	Records int // number of lines
}

func (b *Batch) events() int { return cmp.Or(b.Events, b.Records) }

// bytes returns the length of b's lines, and of what is stored of them.
func (b *Batch) bytes() (lines, stored int) {
	lines, stored = len(b.Lines), len(b.Lines)
	for i := range b.Before {
		lines, stored = lines+b.Before[i].Size, stored+len(b.Before[i].Bytes)
	}
	return lines, stored
}

// parts returns the frames that b becomes if one holds limit bytes: readers have a whole
// frame in memory.
func (b *Batch) parts(limit int) iter.Seq[Chunk] {
	return func(yield func(Chunk) bool) {
		for _, c := range b.Before {
			if c.Packed && !yield(c) || !c.Packed && !split(c.Bytes, limit, yield) {
				return
			}
		}
		split(b.Lines, limit, yield)
	}
}

// split yields lines in chunks of at most limit bytes, unless a single line has more.
func split(lines []byte, limit int, yield func(Chunk) bool) bool {
	for len(lines) > 0 {
		part := lines[:recordlog.Piece(lines, limit)]
		lines = lines[len(part):]
		if !yield(Chunk{Bytes: part, Size: len(part), Records: recordlog.LineCount(part)}) {
			return false
		}
	}
	return true
}

// lineCount returns the number of lines of b, or -1.
func (b *Batch) lineCount() int {
	n := recordlog.LineCount(b.Lines)
	if len(b.Lines) == 0 && len(b.Before) > 0 {
		n = 0
	}
	for i := range b.Before {
		c := &b.Before[i]
		if n < 0 || !c.Packed && recordlog.LineCount(c.Bytes) != c.Records {
			return -1
		}
		n += c.Records
	}
	return n
}

func (b *Batch) check() error {
	switch n := b.lineCount(); {
	case len(b.Lines) > maxLines:
		return fmt.Errorf("append to journal: batch has %d bytes; a batch may have %d", len(b.Lines), maxLines)
	case n < 0:
		return errors.New("append to journal: batch is empty or its last line has no line break")
	case n != b.Records:
		return fmt.Errorf("append to journal: batch says %d records, but has %d lines", b.Records, n)
	case b.MinTime > b.MaxTime:
		return fmt.Errorf("append to journal: batch has MinTime %d after MaxTime %d", b.MinTime, b.MaxTime)
	}
	return nil
}

// Append stores b and returns the offset of its first record, also with [ErrNotSynced]; the
// others follow it. The package documentation says what an answer promises. The first of
// several concurrent callers writes for all.
func (j *Journal) Append(ctx context.Context, b Batch) (first uint64, err error) {
	if err := b.check(); err != nil {
		return 0, err
	}
	return j.append(ctx, b, nil)
}

// append stores b, which was checked, under key, if that is not nil.
func (j *Journal) append(ctx context.Context, b Batch, key *keyHash) (first uint64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("append to journal: %w", err)
	}
	j.mu.Lock()
	if j.closing || j.lost != nil {
		defer j.mu.Unlock()
		return 0, cmp.Or(j.lost, fmt.Errorf("append to journal: %w", os.ErrClosed))
	}
	w := j.waiterLocked()
	if w.batch = b; key != nil {
		w.key, w.keyed = *key, true
	}
	if !j.queue.busy {
		j.queue.busy = true
		w.state = leading
	} else {
		j.queue.push(w)
		j.mu.Unlock()
		select {
		case <-w.ready:
		case <-ctx.Done():
			j.mu.Lock()
			if w.state == queued {
				j.queue.remove(w)
				j.releaseLocked(w)
				j.mu.Unlock()
				return 0, fmt.Errorf("append to journal: wait for a place: %w", ctx.Err())
			}
			j.mu.Unlock()
			<-w.ready
		}
		j.mu.Lock()
	}
	if w.state == leading {
		j.leadLocked(w)
	}
	if w.err == nil && b.Synced {
		w.err = j.syncToLocked(w, w.seg, w.first+uint64(b.Records))
	}
	first, err = w.first, w.err
	j.releaseLocked(w)
	j.mu.Unlock()
	return first, err
}

// group is batches that are written together: head and those linked to it.
type group struct {
	head    *waiter
	bytes   int  // to be stored
	lines   int  // bytes of lines; more than bytes if chunks are packed
	packed  bool // the lines are, by zstd
	keys    int
	records int
	batches int
	minTime int64
	maxTime int64
	at      int64 // by keyTime, if there are keys
}

// keysLen returns the bytes of g's keys in a frame.
func (g *group) keysLen() int { return keyEntrySize * g.keys }

// leadLocked writes w and all that fit after it as one group, answers them, and hands the
// writer role on. It releases mu during the write.
func (j *Journal) leadLocked(w *waiter) {
	g := group{head: w, minTime: w.batch.MinTime, maxTime: w.batch.MaxTime}
	for last := w; last != nil; {
		lines, stored := last.batch.bytes()
		g.lines, g.bytes = g.lines+lines, g.bytes+stored
		if last.keyed {
			g.keys++
		}
		g.records += last.batch.Records
		g.batches++
		g.minTime, g.maxTime = min(g.minTime, last.batch.MinTime), max(g.maxTime, last.batch.MaxTime)
		m := j.queue.head
		if m == nil || m.solo || len(w.batch.Before)+len(m.batch.Before) > 0 || g.bytes+len(m.batch.Lines) > j.o.MaxGroupBytes || g.keys == math.MaxUint16 || g.records+m.batch.Records > recordlog.MaxBody {
			break
		}
		m = j.queue.pop()
		m.state = grouped
		last.next, last = m, m
	}
	if g.keys > 0 {
		g.at = j.keyTime()
	}
	first := j.next
	j.mu.Unlock()
	n, err := j.writeGroup(&g, first)
	now := time.Now()
	j.mu.Lock()

	s := j.writer.seg
	if err == nil {
		marks := len(s.marks)
		if s.addLocked(first, first+uint64(g.records), n, &j.writer.tail, g.minTime, g.maxTime, now); len(s.marks) > marks {
			wake(j.kickPacker)
		}
		s.keyed += g.keys
		if j.next = s.end; j.next >= j.manifest.refresh {
			j.manifest.refresh = math.MaxUint64 // until it is written
			j.changedLocked()
		}
		j.total += n
		if j.overLocked() && len(j.segs) > 1 && j.segs[0].settled {
			wake(j.kick)
		}
		j.counters.Appends += uint64(g.batches)
		j.counters.Records += uint64(g.records)
		j.counters.LineBytes += uint64(g.lines)
		j.counters.Groups++
		j.wakeReadersLocked()
	} else {
		j.noteLocked(err)
		if errors.Is(err, ErrFull) {
			j.counters.Full += uint64(g.batches)
		} else {
			j.counters.WriteErrors += uint64(g.batches)
		}
	}
	for m := w; m != nil; {
		next := m.next
		m.next = nil
		m.seg, m.err = s, err
		if err == nil {
			m.first = first
			if m.keyed {
				j.keys.add(m.entry(first, g.at))
			}
			first += uint64(m.batch.Records)
		}
		if m != w {
			m.ready <- struct{}{}
		}
		m = next
	}
	j.handOnLocked()
}

// makeRoom returns ErrFull if size more bytes for g would exceed MaxBytes even after
// retention.
func (j *Journal) makeRoom(size int64, g *group) error {
	limit := j.o.MaxBytes
	if limit == 0 {
		return nil
	}
	if j.writer.seg == nil {
		size += segmentHeaderSize
	}
	j.mu.Lock()
	size += j.footerRoomLocked(g)
	j.mu.Unlock()
	fits := func() bool {
		j.mu.Lock()
		defer j.mu.Unlock()
		return j.total+size <= limit
	}
	if fits() {
		return nil
	}
	j.deleteOld(time.Now(), size)
	if fits() {
		return nil
	}
	advice := "raise it or set a retention"
	j.mu.Lock()
	if len(j.segs) > 1 && j.o.RetainBytes+int64(j.o.RetainAge) > 0 {
		if c := j.holderLocked(j.segs[0]); c != nil {
			advice = "the oldest lines have not been delivered by " + c.name
		}
	}
	j.mu.Unlock()
	return fmt.Errorf("append to journal: %w: %d bytes more would pass the limit of %d (max_bytes); %s", ErrFull, size, limit, advice)
}

// footerRoomLocked returns the greatest length of the footers that are still to be written,
// with g in the last segment or in a new one.
func (j *Journal) footerRoomLocked(g *group) int64 {
	room := maxFooter(uint64(g.records), g.keys, int64(g.bytes+g.keysLen()))
	for i := len(j.segs) - 1; i >= 0 && !j.segs[i].settled; i-- {
		s := j.segs[i]
		room += maxFooter(s.end-s.first, s.keyed, s.size)
	}
	return room
}

func (j *Journal) prepareSegment(size int64, first uint64) error {
	if s := j.writer.seg; s != nil {
		j.mu.Lock()
		over := s.syncErr != nil && j.syncer.mayRotate(time.Now()) || s.end > s.first && s.size+size > j.o.SegmentBytes
		j.mu.Unlock()
		if over {
			j.retire()
		}
	}
	if j.writer.seg == nil {
		s, err := j.createSegment(first)
		if err != nil {
			return err
		}
		j.writer.seg = s
	}
	return nil
}

// fullError adds ErrFull to an error that means no room on the disk or in the file.
func fullError(err error) error {
	if disk.IsFull(err) || errors.Is(err, syscall.EFBIG) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return err
}
