package recordlog

import (
	"errors"
	"io"
	"math"
)

type Range struct{ From, To uint64 }

// Segment is what Scan found in a segment file.
type Segment struct {
	Header  Header
	Sound   bool // Header was read
	Size    int64
	ID      uint64
	Spans   []Range // of bytes: sound frames, neighbours joined
	Frames  int
	Records int64
	End     uint64 // number after the last record
	MinTime int64
	MaxTime int64
	Jumps   []Range // record numbers between frames that no frame has
	Lost    []Range // records of damaged blocks
	Deleted uint64  // records that retention has removed from frames
	Newer   string  // an unknown codec or flag, or ""
	Zero    bool    // all bytes are zero
	Footer  *Footer // nil: no sound one
	Err     error   // why something could not be read

	blocks []Finding // damaged
}

// framesEnd returns where the frames end at the latest.
func (s *Segment) framesEnd() int64 {
	if s.Footer != nil {
		return s.Footer.FramesEnd()
	}
	return s.Size
}

func (s *Segment) GoodEnd() int64 {
	switch n := len(s.Spans); {
	case n > 0:
		return int64(s.Spans[n-1].To)
	case s.Sound:
		return HeaderSize
	}
	return 0
}

func (s *Segment) Damage() (out []Range) {
	pos := uint64(0)
	if s.Sound {
		pos = HeaderSize
	}
	end := uint64(s.framesEnd())
	for _, sp := range append(s.Spans[:len(s.Spans):len(s.Spans)], Range{end, end}) {
		if pos < sp.From {
			out = append(out, Range{pos, sp.From})
		}
		pos = sp.To
	}
	return out
}

// Broken reports damage before the end of the last sound frame, which no interrupted append
// leaves.
func (s *Segment) Broken() bool {
	return !s.Sound || s.Err != nil || len(s.Spans) > 1 || len(s.Spans) == 1 && s.Spans[0].From != HeaderSize
}

// Findings returns what is wrong with the segment, whose file has that name. With open set,
// what follows the last sound frame is a torn tail.
func (s *Segment) Findings(name string, open bool) (list []Finding) {
	if s.Newer != "" {
		list = append(list, Finding{Kind: Newer, File: name, Detail: s.Newer})
	}
	for _, g := range s.Jumps {
		list = append(list, Finding{Kind: Missing, File: name, From: g.From, To: g.To})
	}
	for _, f := range s.blocks {
		f.File = name
		list = append(list, f)
	}
	detail := ""
	if s.Err != nil {
		detail = s.Err.Error()
	}
	for _, d := range s.Damage() {
		kind := Damaged
		if open && s.Sound && s.Err == nil && int64(d.To) == s.Size {
			kind = TornTail
		}
		list = append(list, Finding{Kind: kind, File: name, Pos: int64(d.From), Bytes: int64(d.To - d.From), Detail: detail})
	}
	return list
}

// Scan reads a whole segment of size bytes. Its records have numbers in [first, limit);
// the rollback of others has failed. Scan calls each, if it is not nil, with every sound
// frame, its position and its body. The error is each's or an UnsupportedError of the
// header; all else is in the result.
func Scan(f io.ReaderAt, path string, kind Kind, size int64, first, limit uint64, each func(pos int64, h *Frame, body []byte) error) (Segment, error) {
	s := Segment{Size: size, End: first, MinTime: math.MaxInt64, MaxTime: math.MinInt64}
	var w Walker
	w.Open(f, path, size)
	h, err := w.FileHeader(kind)
	var newer *UnsupportedError
	switch {
	case errors.As(err, &newer):
		return s, err
	case err == nil && h.First == first:
		s.Header, s.Sound, s.ID = h, true, h.ID
	case err != nil && !IsDamage(err):
		s.Err = err
		return s, nil
	}
	if foot, err := ReadFooter(f, path, size); err == nil && (!s.Sound || foot.ID == s.ID) && foot.First == first {
		s.Footer, w.Limit = foot, foot.FramesEnd()
	}
	for {
		pos := w.Pos
		h, err := w.Header()
		if err == nil && (h.First < s.End || h.End() > limit) {
			err = ErrDamaged
		}
		var body []byte
		if err == nil {
			if body, err = w.Body(&h); IsDamage(err) || err == nil && !s.addBlocks(&h, pos, body) {
				continue // at the frame after it
			}
		}
		switch {
		case err == nil:
			s.add(&h, pos)
			if each == nil {
				continue
			}
			if err := each(pos, &h, body); err != nil {
				return s, err
			}
		case err == io.EOF:
			w.Limit = size
			s.Zero = len(s.Spans) == 0 && !s.Sound && w.Zero()
			return s, nil
		case IsDamage(err):
			if err := w.Resync(func(h *Frame) bool { return h.First >= s.End && w.Fits(h) }); s.Err == nil {
				s.Err = err
			}
		default:
			s.Err = err
			return s, nil
		}
	}
}

func (s *Segment) add(h *Frame, pos int64) {
	if h.First > s.End {
		s.Jumps = append(s.Jumps, Range{s.End, h.First})
	}
	if s.Newer == "" {
		s.Newer = h.Unknown()
	}
	end := uint64(pos + h.Size())
	if n := len(s.Spans); n > 0 && s.Spans[n-1].To == uint64(pos) {
		s.Spans[n-1].To = end
	} else {
		s.Spans = append(s.Spans, Range{uint64(pos), end})
	}
	s.ID, s.End = h.ID, h.End()
	s.Frames++
	s.Records += int64(h.Records)
	s.MinTime, s.MaxTime = min(s.MinTime, h.MinTime), max(s.MaxTime, h.MaxTime)
}

// addBlocks adds what the blocks of the frame h at pos lack, and reports whether its
// directory is valid.
func (s *Segment) addBlocks(h *Frame, pos int64, body []byte) bool {
	if h.Flags != FlagBlocks {
		return true
	}
	blocks, runs, err := ParseBlocks(h, body)
	if err != nil {
		return false
	}
	damaged := make([]bool, len(blocks))
	for i, b := range blocks {
		if _, err := b.Of(body); b.Len == 0 {
			s.Deleted += uint64(b.Records)
			s.Records -= int64(b.Records)
		} else if damaged[i] = err != nil; damaged[i] {
			s.Records -= int64(b.Records)
			s.blocks = append(s.blocks, Finding{Kind: Damaged, Pos: pos + FrameHeaderSize + int64(b.Pos), Bytes: int64(b.Len), Detail: b.String()})
		}
	}
	for number := h.First; len(runs) > 0; {
		i, n := runs.Next()
		if damaged[i] {
			s.Lost = append(s.Lost, Range{number, number + uint64(n)})
		}
		number += uint64(n)
	}
	return true
}
