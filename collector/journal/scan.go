package journal

import (
	"errors"
	"io"
	"math"
	"slices"
	"time"

	"github.com/rollway/rollway/internal/disk"
)

// span is a range of bytes in a file.
type span struct{ pos, end int64 }

// scanned is what a frame by frame reading of a segment found.
type scanned struct {
	header  bool // the segment header is sound
	zero    bool // all bytes are zero
	id      uint32
	prev    uint64
	created time.Time
	packed  bool
	written time.Time // if packed
	spans   []span    // sound frames, neighbours joined
	size    int64
	frames  int
	records int64
	end     uint64 // offset behind the last record
	min     int64
	max     int64
	marks   marks   // of this file
	jumps   []Gap   // offsets that no frame between others holds
	keys    []keyed // the last ones, at least as many as asked for
	keyPos  int64   // of the frame with the last key
	newer   string  // a codec or flag this version does not know, or ""
	readErr error   // why the reading ended early
}

// goodEnd returns the end of the last sound byte.
func (sc *scanned) goodEnd() int64 {
	if n := len(sc.spans); n > 0 {
		return sc.spans[n-1].end
	}
	if sc.header {
		return segmentHeaderSize
	}
	return 0
}

// damage returns what lies outside the sound frames.
func (sc *scanned) damage() []span {
	var out []span
	pos := int64(segmentHeaderSize)
	if !sc.header {
		pos = 0
	}
	for _, sp := range append(sc.spans, span{sc.size, sc.size}) {
		if pos < sp.pos {
			out = append(out, span{pos, sp.pos})
		}
		pos = sp.end
	}
	return out
}

// broken reports whether something is wrong before the end of the last sound
// frame, as no interrupted append leaves it.
func (sc *scanned) broken() bool {
	return !sc.header || sc.readErr != nil || len(sc.spans) > 1 || len(sc.spans) == 1 && sc.spans[0].pos != segmentHeaderSize
}

// scan reads the segment c in f, whose records have offsets below limit: what is
// beyond was rolled back in vain. It keeps the last maxKeys keys and perhaps
// more. The error is an UnsupportedError; all else is in the result.
func scan(f disk.File, path string, c candidate, limit uint64, maxKeys int) (scanned, error) {
	sc := scanned{size: c.size, end: c.first, prev: c.first, created: c.written, min: math.MaxInt64, max: math.MinInt64}
	var w walker
	w.open(f, path, c.size)
	h, err := w.readSegmentHeader()
	var newer *UnsupportedError
	switch {
	case errors.As(err, &newer):
		return sc, err
	case err == nil && h.first == c.first:
		sc.header, sc.id, sc.prev, sc.created = true, h.id, h.prev, time.Unix(0, h.created)
		sc.packed, sc.written = h.packed, time.Unix(0, h.written)
	case err != nil && err != errDamaged:
		sc.readErr = err
		return sc, nil
	}
	for {
		pos := w.pos
		h, err := w.header()
		if err == nil && (h.first < sc.end || h.end() > limit) {
			err = errDamaged
		}
		var body []byte
		if err == nil {
			body, err = w.raw(&h)
			if err == errDamaged {
				continue // behind it by its length
			}
		}
		switch {
		case err == nil:
			sc.add(&h, pos)
			if h.keys > 0 && maxKeys > 0 {
				sc.addKeys(&h, body, pos, maxKeys)
			}
		case err == io.EOF:
			sc.zero = len(sc.spans) == 0 && !sc.header && allZero(f, c.size)
			return sc, nil
		case err == errDamaged:
			err = w.resync(sc.end)
		}
		if err != nil {
			sc.readErr = err
			return sc, nil
		}
	}
}

// add notes the sound frame h at pos.
func (sc *scanned) add(h *frameHeader, pos int64) {
	if h.first > sc.end {
		sc.jumps = append(sc.jumps, Gap{From: sc.end, To: h.first})
	}
	if sc.newer == "" {
		sc.newer = h.unknown()
	}
	end := pos + h.size()
	if n := len(sc.spans); n > 0 && sc.spans[n-1].end == pos {
		sc.spans[n-1].end = end
	} else {
		sc.spans = append(sc.spans, span{pos, end})
	}
	sc.marks.add(h.first, pos, markStep)
	sc.id, sc.end = h.id, h.end()
	sc.frames++
	sc.records += int64(h.records)
	sc.min, sc.max = min(sc.min, h.minTime), max(sc.max, h.maxTime)
}

func (sc *scanned) addKeys(h *frameHeader, body []byte, pos int64, limit int) {
	if n := len(sc.keys); n > 2*limit {
		sc.keys = sc.keys[:copy(sc.keys, sc.keys[n-limit:])]
	}
	n := len(sc.keys)
	if sc.keys = parseKeys(sc.keys, h, body); len(sc.keys) > n {
		sc.keyPos = pos
	}
}

// cutUnfinished leaves out a batch at the end that has a key and not all of its
// frames: it was not acknowledged, and will be sent again under that key.
func (sc *scanned) cutUnfinished() {
	n := len(sc.keys)
	if n == 0 || sc.broken() || sc.newer != "" || sc.keys[n-1].first+uint64(sc.keys[n-1].records) <= sc.end {
		return
	}
	sc.end = sc.keys[n-1].first
	sc.keys = sc.keys[:n-1]
	sc.marks = slices.DeleteFunc(sc.marks, func(m mark) bool { return m.pos >= sc.keyPos })
	if sc.spans[0].end = sc.keyPos; sc.keyPos == segmentHeaderSize {
		sc.spans = nil
	}
}

// forgetDamaged leaves out the keys of batches that are not whole. They may never
// have been acknowledged: sent again, such a batch must be stored.
func (sc *scanned) forgetDamaged() {
	sc.keys = slices.DeleteFunc(sc.keys, func(k keyed) bool {
		end := k.first + uint64(k.records)
		return end > sc.end || slices.ContainsFunc(sc.jumps, func(g Gap) bool { return g.From < end && k.first < g.To })
	})
}

func allZero(f disk.File, size int64) bool {
	buf := make([]byte, walkWindow)
	for pos := int64(0); pos < size; pos += int64(len(buf)) {
		n, err := f.ReadAt(buf, pos)
		if err != nil && err != io.EOF {
			return false
		}
		for _, b := range buf[:n] {
			if b != 0 {
				return false
			}
		}
	}
	return true
}
