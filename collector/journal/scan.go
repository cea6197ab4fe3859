package journal

import (
	"cmp"
	"io"
	"slices"
	"time"

	"github.com/rollway/rollway/collector/columns"
	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/recordlog"
)

type (
	Finding = recordlog.Finding
	// FindingKind says what a Finding is about.
	FindingKind = recordlog.FindingKind
	// UnsupportedError reports a file or frame that a newer version wrote.
	UnsupportedError = recordlog.UnsupportedError
)

const (
	segmentHeaderSize = recordlog.HeaderSize
	frameHeaderSize   = recordlog.FrameHeaderSize

	// flagPacked is in the header of a segment that was rewritten with packed frames.
	flagPacked = 1

	// maxLines leaves room for a key in the frame of a batch.
	maxLines = recordlog.MaxBody - keyEntrySize
)

// A walker is a recordlog.Walker that unpacks.
type walker struct {
	recordlog.Walker
	unpacked lineBuffer
	win      window // the frame with blocks that was entered last
}

// lines returns the lines of the frame h at Pos, valid until the next call on w, and
// moves past it, even if they are damaged. Other errors leave Pos.
func (w *walker) lines(h *recordlog.Frame) ([]byte, error) {
	if what := h.Unknown(); what != "" {
		return nil, &UnsupportedError{File: w.Path(), Pos: w.Pos, What: what}
	}
	b, err := w.Body(h)
	if err != nil || h.Codec == recordlog.CodecNone {
		return b[min(h.KeysLen, len(b)):], err
	}
	return linesOf(h, b, &w.unpacked)
}

// A lineBuffer is memory for unpacked lines, which is used again.
type lineBuffer struct {
	lines   []byte
	columns columns.Block
	part    Unpack // see Reader.SetUnpack; nil: whole lines
}

// reset forgets the lines, and memory for many of them.
func (b *lineBuffer) reset() {
	if b.lines = b.lines[:0]; cap(b.lines) > 2*packBytes {
		*b = lineBuffer{part: b.part, columns: columns.Block{Pause: b.columns.Pause}}
	}
}

// unpack appends records of the frame h, whose lines have size bytes, to b.lines, and returns what it
// has appended: the lines, or what part makes of them.
func (b *lineBuffer) unpack(h *recordlog.Frame, packed []byte, size, records int) ([]byte, error) {
	start := len(b.lines)
	lines, err := b.lines, error(nil)
	parts := b.part != nil && h.Codec == recordlog.CodecColumns
	switch {
	case parts:
		lines, err = b.part(lines, packed, size, columns.Range{First: h.MinTime, Last: h.MaxTime})
	case h.Codec == recordlog.CodecNone:
		lines = append(lines, packed...)
	default:
		lines = slices.Grow(lines, min(size, packBytes))
		lines, err = unpack(lines, packed, h.Codec, size, &b.columns)
	}
	if err != nil {
		return nil, recordlog.ErrDamaged
	}
	b.lines, lines = lines, lines[start:]
	if parts && len(lines) == 0 {
		return nil, nil
	}
	if !parts && len(lines) != size || recordlog.LineCount(lines) != records {
		return nil, recordlog.ErrDamaged
	}
	return lines, nil
}

// linesOf returns the lines of the frame h, which has the checked body, valid until buf is
// used again.
func linesOf(h *recordlog.Frame, body []byte, buf *lineBuffer) ([]byte, error) {
	switch {
	case h.Flags != 0: // no writer makes blocks here
		return nil, recordlog.ErrDamaged
	case h.Codec == recordlog.CodecNone:
		return body[h.KeysLen:], nil
	}
	buf.reset()
	return buf.unpack(h, body[h.KeysLen:], h.Unpacked, h.Records)
}

// framesOf calls f with the records of the frame h at pos that are there. The body is checked
// except its blocks. The lines are valid during the call. leftOut, if it is empty, gets why some
// are not there.
func (w *walker) framesOf(h *recordlog.Frame, body []byte, pos int64, f func(f Frame) error, leftOut *string) error {
	if h.Flags != recordlog.FlagBlocks {
		lines, err := linesOf(h, body, &w.unpacked)
		if err != nil {
			return err
		}
		return f(Frame{First: h.First, Records: h.Records, MinTime: h.MinTime, MaxTime: h.MaxTime, Lines: lines})
	}
	if err := w.win.enter(h, body, 0, nil, w.Path(), pos+frameHeaderSize, func(b *recordlog.Block) ([]byte, error) {
		return b.Of(body)
	}); err != nil {
		return err
	}
	for {
		frame, lost, ok := w.win.step()
		if !ok {
			return nil
		}
		if lost != "" {
			if lost != byRetention {
				*leftOut = cmp.Or(*leftOut, lost)
			}
			continue
		}
		if err := f(frame); err != nil {
			return err
		}
	}
}

// each calls f with every frame up to the limit and its bytes, which were checked, until
// f returns an error; io.EOF ends it early. With damaged it goes on after damage, and calls
// that with its bytes.
func (w *walker) each(f func(h *recordlog.Frame, frame []byte) error, damaged func(from, to int64) error) error {
	for next := uint64(0); w.Pos < w.Limit; {
		at := w.Pos
		h, err := w.Header()
		var frame []byte
		if err == nil {
			frame, err = w.Bytes(at, int(h.Size()))
		}
		if err == nil {
			_, err = w.Body(&h)
		}
		if err == nil {
			next = h.End()
			err = f(&h, frame)
		}
		switch {
		case err == io.EOF:
			return nil
		case recordlog.IsDamage(err) && damaged != nil:
			if w.Pos == at {
				_ = w.resync(next) // damaged meets what cannot be read
			}
			if err := damaged(at, w.Pos); err != nil {
				return err
			}
		case err != nil:
			return err
		}
	}
	return nil
}

// resync moves to the next frame whose first offset is at least least.
func (w *walker) resync(least uint64) error {
	return w.Resync(func(h *recordlog.Frame) bool { return h.First >= least && w.Fits(h) })
}

// unpack appends the unpacked lines, of the given length, to dst, or returns ErrDamaged.
func unpack(dst, packed []byte, codec byte, unpacked int, block *columns.Block) ([]byte, error) {
	var err error
	if codec == recordlog.CodecColumns {
		dst, err = block.AppendLines(dst, packed, unpacked)
	} else {
		dst, err = columns.AppendFrame(dst, packed, unpacked)
	}
	if err != nil {
		return nil, recordlog.ErrDamaged
	}
	return dst, nil
}

// scanned is a segment that was read frame by frame.
type scanned struct {
	recordlog.Segment
	created time.Time
	marks   marks
	keys    []keyed // the last ones, at least as many as asked for
	keyPos  int64   // of the frame with the last key

	sections []Finding // sections that verify has found damaged
}

// scan reads the segment c in f, whose offsets are below limit. It keeps at least the last
// maxKeys keys. The error is an UnsupportedError; all else is in the result.
func scan(f disk.File, path string, c candidate, limit uint64, maxKeys int) (scanned, error) {
	sc := scanned{created: c.written}
	var err error
	sc.Segment, err = recordlog.Scan(f, path, recordlog.JournalSegment, c.size, c.first, limit, func(pos int64, h *recordlog.Frame, body []byte) error {
		sc.marks.add(h.First, pos, markStep)
		if h.Keys == 0 || maxKeys == 0 {
			return nil
		}
		if n := len(sc.keys); n > 2*maxKeys {
			sc.keys = sc.keys[:copy(sc.keys, sc.keys[n-maxKeys:])]
		}
		n := len(sc.keys)
		if sc.keys = parseKeys(sc.keys, h, body); len(sc.keys) > n {
			sc.keyPos = pos
		}
		return nil
	})
	if sc.Sound {
		sc.created = time.Unix(0, sc.Header.Created)
	} else {
		sc.Header.Prev = c.first
	}
	return sc, err
}

func (sc *scanned) packed() bool { return sc.Sound && sc.Header.Flags&flagPacked != 0 }

// cutUnfinished removes a batch at the end that has a key and not all of its frames: it was
// not acknowledged, and will be sent again under that key.
func (sc *scanned) cutUnfinished() {
	n := len(sc.keys)
	if n == 0 || sc.Broken() || sc.Newer != "" || sc.keys[n-1].first+uint64(sc.keys[n-1].records) <= sc.End {
		return
	}
	sc.End = sc.keys[n-1].first
	sc.keys = sc.keys[:n-1]
	sc.marks = slices.DeleteFunc(sc.marks, func(m mark) bool { return m.pos >= sc.keyPos })
	if sc.Spans[0].To = uint64(sc.keyPos); sc.keyPos == segmentHeaderSize {
		sc.Spans = nil
	}
}

// forgetDamaged removes the keys of batches that are not whole: sent again, such a batch
// must be stored.
func (sc *scanned) forgetDamaged() {
	sc.keys = slices.DeleteFunc(sc.keys, func(k keyed) bool {
		end := k.first + uint64(k.records)
		return end > sc.End || slices.ContainsFunc(sc.Jumps, func(g recordlog.Range) bool { return g.From < end && k.first < g.To })
	})
}

// A candidate is a listed segment file.
type candidate struct {
	first   uint64
	ext     string
	size    int64
	written time.Time
}

func (c *candidate) name() string { return segmentName(c.first, c.ext) }
