package spool

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

// chunkBytes is the grid by which small batches are put together: those whose
// frames begin within the same chunkBytes of a file are returned as one. The
// grid is the file's, so that a restart finds the same ones.
const chunkBytes = 256 << 10

// maxReadFails is how often a place may fail to be read before it counts as
// damaged.
const maxReadFails = 3

// A Batch is what Peek returns: the oldest lines.
type Batch struct {
	Data    []byte // whole lines; valid until they are settled
	Segment uint64 // random id of the file they are in
	Line    uint64 // number of the first; with Segment it names the line for ever
	Tag     string // given to Append with these lines, or ""
	Skipped uint64 // lines given with the Tag that are settled and not in Data
}

// Key names the n lines of b that begin with the line skip: no other lines of
// any spool have the same key.
func (b *Batch) Key(skip, n uint64) string {
	buf := make([]byte, 0, 60)
	buf = strconv.AppendUint(buf, b.Segment, 16)
	buf = append(buf, '-')
	buf = strconv.AppendUint(buf, b.Line+skip, 10)
	buf = append(buf, '-')
	return string(strconv.AppendUint(buf, n, 10))
}

// Peek returns the oldest lines that are not settled; ok is false if there are
// none. An error is the disk's, and Peek may be called again: what cannot be
// read three times counts as damaged.
func (s *Spool) Peek() (b Batch, ok bool, err error) {
	s.op.Lock()
	defer s.op.Unlock()
	defer s.publish()
	if s.closed {
		return Batch{}, false, fmt.Errorf("read spool: %w", os.ErrClosed)
	}
	s.expireHead()
	if !s.head.loaded {
		if err := s.load(); err != nil {
			err = fmt.Errorf("read spool: %w", err)
			s.fail(err)
			return Batch{}, false, err
		}
	}
	s.save() // an error is counted
	if !s.head.loaded {
		return Batch{}, false, nil
	}
	h := &s.head
	return Batch{Data: h.data[h.off:], Segment: h.id, Line: h.line, Tag: h.tag, Skipped: h.skipped()}, true, nil
}

// Ack settles the first n bytes, whole lines, of what Peek returned.
func (s *Spool) Ack(n int) error {
	s.op.Lock()
	defer s.op.Unlock()
	defer s.publish()
	h := &s.head
	if s.closed {
		return fmt.Errorf("settle in spool: %w", os.ErrClosed)
	}
	if n == 0 {
		return nil
	}
	if !h.loaded || n < 0 || n > len(h.data)-h.off || h.data[h.off+n-1] != '\n' {
		return fmt.Errorf("settle in spool: %d bytes are not whole lines of what was returned", n)
	}
	lines := uint64(countLines(h.data[h.off : h.off+n]))
	s.count.Acked += lines
	h.off += n
	h.line += lines
	h.lines -= lines
	if h.off == len(h.data) {
		h.drop()
	}
	s.save() // an error is counted
	s.removeSettled()
	return nil
}

// skipped is how many lines that belong to the tag are settled.
func (h *head) skipped() uint64 {
	if h.tag == "" {
		return 0
	}
	return h.line - h.first
}

// drop forgets the head.
func (h *head) drop() {
	data := h.data[:0]
	if cap(data) > 8*chunkBytes {
		data = nil
	}
	*h = head{data: data}
}

// removeSettled deletes segments that hold nothing any more.
func (s *Spool) removeSettled() {
	if s.head.loaded || len(s.segs) == 0 || s.at.line < s.limit(0).line {
		return
	}
	s.save() // before the files that keep the numbers go
	for len(s.segs) > 0 && s.at.line >= s.limit(0).line {
		s.removeFirst()
	}
}

func (s *Spool) expired(t time.Time) bool { return s.o.MaxAge > 0 && time.Since(t) > s.o.MaxAge }

// expireHead puts the head back if its first lines are too old; load then
// counts them.
func (s *Spool) expireHead() {
	h := &s.head
	switch {
	case !h.loaded || !s.expired(h.time):
		return
	case h.orphan:
		s.count.Dropped.Old += h.lines
	default:
		s.at, s.pos = position{h.line, h.batch}, h.pos
	}
	h.drop()
}

// load fills the head, if there is anything to fill it with.
func (s *Spool) load() error {
	for s.at.line < s.next.line && len(s.segs) > 0 {
		seg, end := s.segs[0], s.limit(0)
		if s.pos >= seg.size || s.at.line >= end.line {
			if s.at.line < end.line {
				s.lose(seg, end.line-s.at.line)
			}
			s.at = end
			s.bad = badPlace{}
			s.removeSettled()
			continue
		}
		if err := s.open(seg); err != nil {
			if !s.giveUp() {
				return err
			}
			s.passOver(seg, seg.size, err.Error())
			continue
		}
		s.view.over(seg.file, seg.size)
		if err := s.loadFrom(seg, end.line); err != nil {
			return err
		}
		if s.head.loaded {
			s.until = 0
			return nil
		}
	}
	if s.at.line < s.next.line { // not reached: lines without a segment
		s.count.Dropped.Damaged += s.next.line - s.at.line
		s.at = s.next
	}
	return nil
}

// giveUp counts a failed reading and reports whether it was the last.
func (s *Spool) giveUp() bool {
	s.fails++
	if s.fails < maxReadFails {
		return false
	}
	s.fails = 0
	return true
}

// loadFrom reads frames of seg, whose lines end at limit, until the head is
// what one Peek returns, or nothing more can be read into it.
func (s *Spool) loadFrom(seg *segment, limit uint64) error {
	h := &s.head
	grid := int64(-1)
	for s.pos < seg.size && s.at.line < limit {
		if h.loaded && (s.pos/chunkBytes != grid || h.tag != "" || s.at.line == s.until) {
			return nil
		}
		f, body, err := s.frame(seg, limit)
		switch {
		case err == errDamaged || err == errTorn:
			if h.loaded {
				return nil
			}
			end := seg.size
			if f.lines == 0 { // not even a header
				end = s.view.resync(s.pos, func(f *frameHeader) bool {
					return f.id == seg.id && f.end() > s.at.line && f.end() <= limit
				})
			} else if err == errDamaged {
				end = s.pos + f.size()
			}
			s.passOver(seg, end, err.Error())
			continue
		case err != nil:
			if h.loaded {
				return nil
			}
			if !s.giveUp() {
				return err
			}
			s.passOver(seg, s.view.resync(s.pos, func(f *frameHeader) bool { return f.id == seg.id }), err.Error())
			continue
		}
		s.fails = 0
		if f.end() > s.at.line {
			if f.line > s.at.line {
				if h.loaded {
					return nil
				}
				s.lose(seg, f.line-s.at.line)
				s.at.line = f.line
			}
			s.bad = badPlace{}
			old := s.expired(time.Unix(0, f.time))
			if h.loaded && (old || f.tagLen > 0) {
				return nil
			}
			if old {
				s.count.Dropped.Old += f.end() - s.at.line
			} else {
				if !h.loaded {
					grid = s.pos / chunkBytes
				}
				s.take(seg, &f, body)
			}
			s.at.line = f.end()
		}
		s.at.batch = f.batch + 1
		s.pos += f.size()
	}
	return nil
}

// frame reads the frame at s.pos. Its header is set, also with an error, if
// that much is sound; the body is left out where nobody needs it.
func (s *Spool) frame(seg *segment, limit uint64) (frameHeader, []byte, error) {
	f, err := s.view.header(s.pos, seg.id)
	if err == nil && f.end() > limit {
		err = errDamaged // an append that was taken back in vain
	}
	if err != nil {
		return frameHeader{}, nil, err
	}
	if f.end() <= s.at.line || s.expired(time.Unix(0, f.time)) {
		if s.pos+f.size() > seg.size {
			return f, nil, errTorn
		}
		return f, nil, nil
	}
	body, err := s.view.body(s.pos, &f)
	if err != nil && err != errDamaged && err != errTorn {
		return frameHeader{}, nil, err
	}
	return f, body, err
}

// take puts the lines of a frame from s.at on behind the head.
func (s *Spool) take(seg *segment, f *frameHeader, body []byte) {
	h, skip := &s.head, s.at.line-f.line
	lines := body[f.tagLen:]
	if !h.loaded {
		h.loaded = true
		h.pos, h.id = s.pos, seg.id
		h.line, h.batch = s.at.line, f.batch
		h.time = time.Unix(0, f.time)
		s.oldest = h.time
		h.first, h.tag = f.line, string(body[:f.tagLen])
	}
	h.data = append(h.data, lines[skipLines(lines, skip):]...)
	h.lines += uint64(f.lines) - skip
	h.batches++
}

// passOver goes on at end. What is lost by it shows when something sound comes.
func (s *Spool) passOver(seg *segment, end int64, why string) {
	if s.bad.bytes == 0 {
		s.bad = badPlace{file: segmentName(seg.line), pos: s.pos, detail: why}
	}
	s.bad.bytes += end - s.pos
	s.pos = end
}

// lose counts n lines before what comes next in seg as damaged.
func (s *Spool) lose(seg *segment, n uint64) {
	s.count.Dropped.Damaged += n
	s.count.Damaged++
	f := Finding{Kind: Damaged, File: segmentName(seg.line), Lines: n, Estimated: seg.guessed && s.pos >= seg.size, Detail: "lines are missing"}
	if s.bad.bytes > 0 {
		f.File, f.Pos, f.Bytes, f.Detail = s.bad.file, s.bad.pos, s.bad.bytes, s.bad.detail
	}
	s.find(f)
}
