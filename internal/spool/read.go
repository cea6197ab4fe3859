package spool

import (
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/rollway/rollway/internal/recordlog"
)

// MaxInFlight bounds the pieces that are handed out and not settled. One that is settled
// while an older one is not counts too: the cursor has the ends of all of them.
const MaxInFlight = 8

// chunkBytes is the least grid over a file: batches whose frames begin in the same cell are
// handed out as one piece. So a restart finds the same pieces.
const chunkBytes = 256 << 10

// maxReadFails is how often a place may fail to be read before it counts as damaged.
const maxReadFails = 3

// A Batch is a piece that Next handed out. It belongs to the caller until it is settled;
// only Ack and Expire change it, and their calls for one Batch must not run concurrently.
type Batch struct {
	Data    []byte // whole lines that are not settled, until they are
	Segment uint64 // random id of the file they are in
	Line    uint64 // number of the first; with Segment it names the line for ever

	// guarded by Spool.op
	buf    []byte // where Data begins in full
	lines  uint64 // in Data
	end    uint64 // number after the last line
	since  time.Time
	frames []frameAge // only with MaxAge
}

// frameAge is when the lines below end were appended.
type frameAge struct {
	end  uint64
	time time.Time
}

// Key names the first n lines of b.Data: no other lines of any spool have the key.
func (b *Batch) Key(n uint64) string {
	return fmt.Sprintf("%x-%d-%d", b.Segment, b.Line, n)
}

// Next hands out the oldest lines that were not handed out yet: whole frames of one
// segment, up to about max bytes. A larger frame makes a larger piece, and pieces of up to
// 512 KiB come whatever max is. Next returns nil if there are no such lines or MaxInFlight
// pieces are out. An error is the disk's, and Next may be called again: what cannot be read
// three times counts as damaged.
func (s *Spool) Next(max int) (*Batch, error) {
	s.op.Lock()
	defer s.op.Unlock()
	defer s.publish()
	if s.closed {
		return nil, fmt.Errorf("read spool: %w", os.ErrClosed)
	}
	if len(s.out)+len(s.orphans) >= MaxInFlight {
		return nil, nil
	}
	s.look(time.Now())
	b, err := s.load(int64(max - maxFrame))
	if b != nil {
		b.Data = b.buf
		s.out = append(s.out, b)
	}
	s.save(false) // an error is counted
	s.removeSettled(false)
	if err != nil {
		err = fmt.Errorf("read spool: %w", err)
		s.fail(err)
	}
	return b, err
}

// Ack settles the first n bytes, whole lines, of b.Data; b.Data and b.Line advance. Pieces
// may be settled in any order: cursor and files follow the oldest one that is not settled.
func (s *Spool) Ack(b *Batch, n int) error {
	s.op.Lock()
	defer s.op.Unlock()
	defer s.publish()
	switch {
	case s.closed:
		return fmt.Errorf("settle in spool: %w", os.ErrClosed)
	case n == 0:
		return nil
	case !s.isOut(b) || n < 0 || n > len(b.Data) || b.Data[n-1] != '\n':
		return fmt.Errorf("settle in spool: %d bytes are not whole lines of a piece that is out", n)
	}
	lines := uint64(recordlog.LineCount(b.Data[:n]))
	s.count.Acked += lines
	s.settle(b, n, lines)
	return nil
}

// Expire drops the first lines of b that are older than MaxAge, counts them, and reports
// whether nothing is left. It is for a piece that waits to be sent again; Next drops old
// lines, too.
func (s *Spool) Expire(b *Batch) bool {
	s.op.Lock()
	defer s.op.Unlock()
	defer s.publish()
	if s.closed || !s.isOut(b) {
		return false
	}
	lines := uint64(0)
	for _, f := range b.frames {
		if f.end <= b.Line {
			continue
		}
		if !s.expired(f.time) {
			break
		}
		lines = f.end - b.Line
	}
	if lines > 0 {
		s.count.Dropped.Old += lines
		s.settle(b, recordlog.SkipLines(b.Data, lines), lines)
	}
	return b.lines == 0
}

func (s *Spool) isOut(b *Batch) bool {
	return b != nil && b.lines > 0 && (slices.Contains(s.out, b) || slices.Contains(s.orphans, b))
}

// settle removes the first n bytes, so many lines, from b.
func (s *Spool) settle(b *Batch, n int, lines uint64) {
	b.Data = b.Data[n:]
	b.Line += lines
	b.lines -= lines
	if b.lines == 0 {
		s.recycle(b)
		s.orphans = slices.DeleteFunc(s.orphans, func(o *Batch) bool { return o == b })
		s.passSettled()
	}
	s.save(false) // an error is counted
	s.removeSettled(false)
}

// passSettled removes settled pieces from the front of out.
func (s *Spool) passSettled() {
	for len(s.out) > 0 && s.out[0].lines == 0 {
		s.out = slices.Delete(s.out, 0, 1)
	}
}

// recycle keeps the memory of b, which is settled, for a later piece.
func (s *Spool) recycle(b *Batch) {
	if len(s.spare) < 2 && cap(b.buf) <= 8*chunkBytes {
		s.spare = append(s.spare, b.buf[:0])
	}
	b.Data, b.buf, b.frames = nil, nil, nil
	if s.firstLine() == s.next {
		s.spare = slices.DeleteFunc(s.spare, func(buf []byte) bool { return cap(buf) > chunkBytes })
	}
}

// keepBytes bounds an empty segment that is kept for the next lines: not each Append makes
// and removes a file.
const keepBytes = 1 << 20

// removeSettled deletes segments without lines. Unless it deletes all, the last one stays
// while it is small.
func (s *Spool) removeSettled(all bool) {
	for len(s.segs) > 0 && s.firstStored() >= s.limit(0) {
		if !all && len(s.segs) == 1 && s.writing && s.segs[0].size < keepBytes {
			return
		}
		s.removeFirst()
	}
}

func (s *Spool) expired(t time.Time) bool { return s.o.MaxAge > 0 && time.Since(t) > s.o.MaxAge }

// load reads the next piece, or nil. Pieces end where a frame begins in another cell of the
// grid.
func (s *Spool) load(grid int64) (*Batch, error) {
	grid = max(grid, chunkBytes)
	for s.at < s.next && len(s.segs) > 0 {
		seg, end := s.segs[s.reading], s.limit(s.reading)
		if s.pos >= seg.size || s.at >= end {
			if s.at < end {
				s.lose(seg, end-s.at)
			}
			s.at = end
			s.bad = badPlace{}
			if s.reading+1 < len(s.segs) {
				s.reading++
				s.pos = segmentHeader
				s.since = s.segs[s.reading].created
			}
			continue
		}
		if err := s.open(seg); err != nil {
			if !s.giveUp() {
				return nil, err
			}
			s.passOver(seg, seg.size, err.Error())
			continue
		}
		if s.walk.File() != seg.file {
			s.walk.Open(seg.file, "", seg.size)
		}
		s.walk.Limit, s.walk.Window = seg.size, chunkBytes // it only grows
		s.walk.Expect(seg.id)
		if b, err := s.loadFrom(seg, end, grid); b != nil || err != nil {
			return b, err
		}
	}
	if s.at < s.next { // not reached: lines without a segment
		s.count.Dropped.Damaged += s.next - s.at
		s.at = s.next
	}
	return nil, nil
}

func (s *Spool) giveUp() bool {
	s.fails++
	s.fails %= maxReadFails
	return s.fails == 0
}

// loadFrom reads frames of seg, whose lines end at limit, until they make a piece.
func (s *Spool) loadFrom(seg *segment, limit uint64, grid int64) (b *Batch, err error) {
	var cell int64
	for s.pos < seg.size && s.at < limit {
		if b == nil {
			cell = s.pos / grid
			s.ends = slices.DeleteFunc(s.ends, func(end uint64) bool { return end <= s.at })
		} else if len(s.ends) > 0 && s.at >= s.ends[0] || len(s.ends) == 0 && s.pos/grid != cell {
			return b, nil
		}
		f, body, err := s.frame(seg, limit)
		switch {
		case err != nil && b != nil:
			return b, nil // the next call sees it again
		case recordlog.IsDamage(err):
			end := seg.size
			if f.Records == 0 { // not even a header
				end = s.resync(func(f *recordlog.Frame) bool { return f.End() > s.at && f.End() <= limit })
			} else if err == recordlog.ErrDamaged {
				end = s.pos + f.Size()
			}
			s.passOver(seg, end, err.Error())
			continue
		case err != nil:
			if !s.giveUp() {
				return nil, err
			}
			s.passOver(seg, s.resync(func(*recordlog.Frame) bool { return true }), err.Error())
			continue
		}
		s.fails = 0
		if f.End() > s.at {
			old := s.expired(time.Unix(0, f.MinTime))
			if b != nil && (f.First > s.at || old) {
				return b, nil
			}
			if f.First > s.at {
				s.lose(seg, f.First-s.at)
				s.at = f.First
			}
			s.bad = badPlace{}
			if old {
				s.count.Dropped.Old += f.End() - s.at
			} else {
				if b == nil {
					b = s.newBatch(seg, &f, grid)
				}
				s.take(b, &f, body)
			}
			s.at = f.End()
		}
		s.pos += f.Size()
		s.since = time.Unix(0, f.MinTime)
	}
	return b, nil
}

// resync returns the position of the next frame after s.pos that accept agrees to, or the
// end of the file.
func (s *Spool) resync(accept func(*recordlog.Frame) bool) int64 {
	s.walk.Pos = s.pos
	_ = s.walk.Resync(accept) // what cannot be read counts as damaged
	return s.walk.Pos
}

// frame reads the frame at s.pos. Its header is set, also with an error, if it is sound.
// The body is left out if it is not needed.
func (s *Spool) frame(seg *segment, limit uint64) (recordlog.Frame, []byte, error) {
	s.walk.Pos = s.pos
	f, err := s.walk.Header()
	if f.Records > 0 && f.End() > limit {
		return recordlog.Frame{}, nil, recordlog.ErrDamaged // an append that was taken back in vain
	}
	if err != nil || f.End() <= s.at || s.expired(time.Unix(0, f.MinTime)) {
		return f, nil, err
	}
	body, err := s.walk.Body(&f)
	if err != nil && !recordlog.IsDamage(err) {
		return recordlog.Frame{}, nil, err
	}
	if f.KeysLen > 0 || f.Codec != recordlog.CodecNone || f.Flags != 0 { // a spool writes only lines
		err = recordlog.ErrDamaged
	}
	return f, body, err
}

// newBatch returns the piece that begins with the frame f at s.at, without lines. A new
// buffer has room for all frames that seg has in the cell; the last one may reach beyond.
func (s *Spool) newBatch(seg *segment, f *recordlog.Frame, grid int64) *Batch {
	b := &Batch{Segment: seg.id, Line: s.at, since: time.Unix(0, f.MinTime)}
	if n := len(s.spare); n > 0 {
		b.buf, s.spare = s.spare[n-1], s.spare[:n-1]
	} else {
		room := min(seg.size-s.pos, grid-s.pos%grid+maxFrame)
		b.buf = make([]byte, 0, max(room, int64(f.BodyLen)))
	}
	return b
}

// take adds the lines of the frame f from s.at on to b.
func (s *Spool) take(b *Batch, f *recordlog.Frame, body []byte) {
	skip := s.at - f.First
	b.buf = append(b.buf, body[recordlog.SkipLines(body, skip):]...)
	b.lines += uint64(f.Records) - skip
	b.end = f.End()
	if s.o.MaxAge > 0 {
		b.frames = append(b.frames, frameAge{b.end, time.Unix(0, f.MinTime)})
	}
}

// passOver continues at end. What is lost shows at the next sound frame.
func (s *Spool) passOver(seg *segment, end int64, why string) {
	if s.bad.bytes == 0 {
		s.bad = badPlace{file: segmentName(seg.line), pos: s.pos, detail: why}
	}
	s.bad.bytes += end - s.pos
	s.pos = end
}

// lose counts n lines before the next ones in seg as damaged.
func (s *Spool) lose(seg *segment, n uint64) {
	s.count.Dropped.Damaged += n
	s.count.Damaged++
	f := Finding{Kind: recordlog.Damaged, File: segmentName(seg.line), Lines: n, Estimated: seg.guessed && s.pos >= seg.size, Detail: "lines are missing"}
	if s.pos >= seg.size {
		f.Detail = fmt.Sprintf("lines are missing: the file was cut here, or %s is gone", segmentName(s.at))
	}
	if s.bad.bytes > 0 {
		f.File, f.Pos, f.Bytes, f.Detail = s.bad.file, s.bad.pos, s.bad.bytes, s.bad.detail
	}
	s.find(f)
}
