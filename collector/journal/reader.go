package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"sync/atomic"
	"time"

	"github.com/rollway/rollway/collector/columns"
	"github.com/rollway/rollway/collector/pool"
	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/recordlog"
)

// Frame is a run of consecutive records.
type Frame struct {
	First   uint64 // offset of the first record
	Records int
	MinTime int64  // no record is older, unix nanoseconds
	MaxTime int64  // no record is newer, unix nanoseconds
	Lines   []byte // canonical lines, each ended by '\n'; valid until the reader's next call
}

// Gap is the error of a Reader for missing records. The next call continues at To.
type Gap struct {
	From, To  uint64 // the records [From, To) are missing; To < From: the cursor was ahead of the journal
	Reason    string // what happened, naming the file where there is one
	Retention bool   // the retention of their tenant has deleted them
}

func (g *Gap) Error() string {
	if g.To < g.From {
		return fmt.Sprintf("cursor %d is ahead of the journal, which ends at %d: %s", g.From, g.To, g.Reason)
	}
	return fmt.Sprintf("%d records missing, offsets %d to %d: %s", g.To-g.From, g.From, g.To-1, g.Reason)
}

// Missed returns the number of missing records.
func (g *Gap) Missed() uint64 {
	if g.To < g.From {
		return 0
	}
	return g.To - g.From
}

// Reader reads the records of a Journal from a cursor of its own. One goroutine at a time
// may use it, and its creator closes it. It may outlive the Journal.
//
//  1. Frames come in the order of offsets, without overlap.
//  2. Every record at or after the cursor is in a frame, in a [*Gap], or excluded by
//     SetTimeRange, SetTenant or SetUnpack.
//  3. After a *Gap the caller calls again. Another error of the file comes at most three
//     times; then what cannot be read becomes a Gap. An *UnsupportedError stays.
//  4. A segment that retention deletes while the reader is in it is read to its end.
type Reader struct {
	j        *Journal
	minTime  int64
	maxTime  int64
	tenant   *string // whose blocks are read; nil: all
	ahead    bool    // see SetUnpack
	next     uint64  // the cursor
	stop     uint64  // see SetEnd
	err      error   // sticks
	failures int     // of the disk, in a row
	seen     *Seen
	lent     []byte // the frame returned last

	seg     *segment  // nil: none entered
	packed  bool      // the file is the packed one, or what is packed ahead of it
	file    disk.File // nil: packed is in memory
	created int64     // the time in its header
	walk    walker
	end     uint64 // offset after the records within walk.Limit
}

// NewReader returns a reader whose first frame begins at offset from, or after it if that
// is gone.
func (j *Journal) NewReader(from uint64) *Reader {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.counters.Readers++
	return &Reader{j: j, next: from, stop: math.MaxUint64, minTime: math.MinInt64, maxTime: math.MaxInt64, seen: new(Seen)}
}

// Seen counts the blocks that readers have come to: frames, or what frames with blocks have of
// one tenant. It is safe for concurrent use.
type Seen struct {
	ByTime   atomic.Int64 // passed over for SetTimeRange
	ByTenant atomic.Int64 // for SetTenant
	ByFilter atomic.Int64 // because SetUnpack's function wanted no line
	Read     atomic.Int64
	Nanos    atomic.Int64 // spent in Next and TryNext, waiting for records not included
}

// read counts a block, and what was wanted of it.
func (s *Seen) read(lines []byte) {
	if len(lines) == 0 {
		s.ByFilter.Add(1)
	} else {
		s.Read.Add(1)
	}
}

// SetSeen makes the reader count in s, as others may.
func (r *Reader) SetSeen(s *Seen) { r.seen = s }

// SetTimeRange makes the reader skip frames without a record from min to max, both
// included, in unix nanoseconds. Frames are not cut.
func (r *Reader) SetTimeRange(min, max int64) { r.minTime, r.maxTime = min, max }

// SetEnd makes TryNext return false once the cursor is at offset or after it, and so not look beyond
// for a frame that is not to be skipped. The last frame may go on after it.
func (r *Reader) SetEnd(offset uint64) { r.stop = offset }

// SetTenant makes the reader skip the blocks of other tenants. What is not in blocks, as in
// the newest segments, comes whole: see [TenantOf].
func (r *Reader) SetTenant(name string) { r.tenant = &name }

// Unpack gets a block of columns, the length of its lines in bytes and a range in which all their times
// are, and appends to dst what is needed of each line, ended by '\n', or nothing at all. An error means
// damage. See [columns.Block.AppendRows].
type Unpack func(dst, block []byte, size int, times columns.Range) ([]byte, error)

// SetUnpack makes the reader call unpack for each block of columns. If that appends nothing, the frame
// comes without lines, so that a caller has its turn after each. The lines of other blocks come whole.
// With ahead, so is read what is packed of the segment that is being written. Without, its lines come from
// the file, which takes less if all of them are wanted.
func (r *Reader) SetUnpack(unpack Unpack, ahead bool) {
	r.walk.unpacked.part, r.walk.win.plain.part, r.ahead = unpack, unpack, ahead && unpack != nil
}

// SegmentsIn returns how many segments there are, and how many of them may have records from
// min to max, both included, in unix nanoseconds.
func (j *Journal) SegmentsIn(min, max int64) (in, all int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, s := range j.segs {
		if !s.timed || s.maxTime >= min && s.minTime <= max {
			in++
		}
	}
	return in, len(j.segs)
}

// Offset returns the cursor: the offset after the last frame that was returned, skipped or
// reported missing.
func (r *Reader) Offset() uint64 { return r.next }

// Seek moves the cursor to offset, forwards or backwards.
func (r *Reader) Seek(offset uint64) error {
	r.endLoan()
	if r.err != nil || offset == r.next {
		return r.err
	}
	r.next, r.failures = offset, 0
	if r.seekHere() {
		return nil
	}
	return r.leave()
}

// Close closes the reader's file. It must not run during another call.
func (r *Reader) Close() error {
	if errors.Is(r.err, os.ErrClosed) {
		return nil
	}
	r.err = fmt.Errorf("read journal: %w", os.ErrClosed)
	r.endLoan()
	r.j.mu.Lock()
	r.j.counters.Readers--
	r.j.mu.Unlock()
	return r.leave()
}

// Next returns the next frame. At the end it waits until records are stored, ctx ends, or
// the journal is closed, which is io.EOF.
func (r *Reader) Next(ctx context.Context) (Frame, error) {
	for {
		f, ok, err := r.TryNext()
		if ok || err != nil {
			return f, err
		}
		committed := r.j.nextCommit(r.next)
		if committed == nil {
			continue
		}
		select {
		case <-committed:
		case <-ctx.Done():
			return Frame{}, ctx.Err()
		}
	}
}

// nextCommit returns what the next commit closes; nil: there are records from offset on, or
// will be no more.
func (j *Journal) nextCommit(offset uint64) <-chan struct{} {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.next > offset || j.done {
		return nil
	}
	if j.committed == nil {
		j.committed = make(chan struct{})
	}
	return j.committed
}

// wakeReadersLocked wakes all readers that wait.
func (j *Journal) wakeReadersLocked() {
	if j.committed != nil {
		close(j.committed)
		j.committed = nil
	}
}

// TryNext returns the next frame; false with a nil error: not yet. The error is
// as from Next.
func (r *Reader) TryNext() (Frame, bool, error) {
	begin := time.Now()
	defer func() { r.seen.Nanos.Add(int64(time.Since(begin))) }()
	r.endLoan()
	for r.err == nil {
		if r.next >= r.stop {
			return Frame{}, false, nil
		}
		if r.seg == nil {
			ok, err := r.enter()
			if err != nil || !ok {
				return Frame{}, false, err
			}
			continue
		}
		if win := &r.walk.win; win.open {
			f, lost, ok := win.step()
			switch {
			case !ok && win.plain.part != nil:
				return r.lend(Frame{First: win.h.End()}), true, nil
			case !ok:
				r.next = win.h.End()
				continue
			case lost != "":
				r.next = f.First
				return Frame{}, false, r.gap(f.end(), lost)
			}
			return r.lend(f), true, nil
		}
		h, err := r.walk.Header()
		if err == nil && h.First < r.end && h.End() > r.end { // it would hide what comes after the segment
			err = recordlog.ErrDamaged
		}
		switch {
		case err == nil:
			r.failures = 0
		case err == io.EOF:
			if more, err := r.extend(); err != nil || !more {
				return Frame{}, false, err
			}
			continue
		default:
			if err := r.damaged(err); err != nil {
				return Frame{}, false, err
			}
			continue
		}
		if h.First >= r.end { // rolled back by a write error, or not of this journal
			r.walk.Pos = r.walk.Limit
			continue
		}
		if h.End() <= r.next {
			r.walk.Skip(&h)
			continue
		}
		if h.First > r.next {
			return Frame{}, false, r.gap(h.First, "segment "+r.walk.Path()+" does not hold them")
		}
		others := r.tenant != nil && *r.tenant != "" && r.packed && h.Flags == 0
		if late := h.MaxTime < r.minTime || h.MinTime > r.maxTime; late || others {
			if late {
				r.seen.ByTime.Add(1)
			} else {
				r.seen.ByTenant.Add(1)
			}
			r.next = h.End()
			r.walk.Skip(&h)
			continue
		}
		if h.Flags == recordlog.FlagBlocks {
			if err := r.enterWindow(&h); err != nil {
				return Frame{}, false, err
			}
			continue
		}
		lines, err := r.walk.lines(&h)
		if err != nil {
			if err := r.damagedBody(&h, err); err != nil {
				return Frame{}, false, err
			}
			continue
		}
		r.seen.read(lines)
		before := r.next - h.First
		return r.lend(Frame{
			First: r.next, Records: h.Records - int(before), MinTime: h.MinTime, MaxTime: h.MaxTime,
			Lines: lines[recordlog.SkipLines(lines, before):],
		}), true, nil
	}
	return Frame{}, false, r.err
}

// lend moves the cursor past f, which the caller may use until its next call.
func (r *Reader) lend(f Frame) Frame {
	r.next = f.end()
	r.lent = f.Lines[:len(f.Lines):len(f.Lines)]
	return f
}

// end returns the offset after the last record.
func (f *Frame) end() uint64 { return f.First + uint64(f.Records) }

// endLoan ends the caller's use of the last frame.
func (r *Reader) endLoan() {
	pool.Overwrite(r.lent)
	r.lent = nil
}

// gap moves the cursor to to and returns the error that says so.
func (r *Reader) gap(to uint64, reason string) error {
	g := &Gap{From: r.next, To: to, Reason: reason, Retention: reason == byRetention}
	r.next = to
	r.j.mu.Lock()
	if r.seg != nil && !g.Retention {
		r.seg.suspect = true
	}
	r.j.counters.Gaps++
	r.j.counters.MissedRecords += g.Missed()
	r.j.mu.Unlock()
	return g
}
