package journal

import (
	"errors"
	"fmt"

	"github.com/rollway/rollway/collector/pool"
	"github.com/rollway/rollway/internal/recordlog"
)

// writeGroup is tryGroup, and once more if the disk was full and the trash was not empty.
func (j *Journal) writeGroup(g *group, first uint64) (int64, error) {
	n, err := j.tryGroup(g, first)
	if errors.Is(err, ErrFull) && j.emptyTrash() {
		n, err = j.tryGroup(g, first)
	}
	return n, err
}

// tryGroup writes g, whose first record gets the offset first, and returns its length in
// the file. A batch above MaxGroupBytes, or of several chunks, becomes several frames. After
// an error the file ends where it did before, or is retired. The caller has the writer role.
func (j *Journal) tryGroup(g *group, first uint64) (int64, error) {
	frames := int64(1)
	if g.cut(j.o.MaxGroupBytes) {
		frames = 0
		for range g.head.batch.parts(j.o.MaxGroupBytes) {
			frames++
		}
	}
	size := int64(g.bytes) + int64(g.keysLen()) + frameHeaderSize*frames
	if err := j.makeRoom(size, g); err != nil {
		return 0, err
	}
	if err := j.prepareSegment(size, first); err != nil {
		return 0, fullError(err)
	}
	s := j.writer.seg
	j.mu.Lock()
	j.writer.tail = s.tail
	j.mu.Unlock()
	var err error
	if g.cut(j.o.MaxGroupBytes) {
		err = j.writeParts(g, first, s.size)
	} else {
		_, err = j.writeFrame(g, first, s.size)
	}
	if err == nil {
		return size, nil
	}
	err = fullError(fmt.Errorf("append to journal: %w", err))
	if terr := s.file.Truncate(s.size); terr != nil {
		err = errors.Join(err, fmt.Errorf("roll back: %w", terr))
		j.mu.Lock()
		s.uncut = true
		j.mu.Unlock()
		j.retire()
	}
	return 0, err
}

// cut reports whether g, which is a single batch then, becomes several frames.
func (g *group) cut(limit int) bool { return g.bytes > limit || len(g.head.batch.Before) > 0 }

// writeParts writes the one batch of g as several frames from pos on; the first has its
// key.
func (j *Journal) writeParts(g *group, first uint64, pos int64) error {
	keys := g.keys
	for c := range g.head.batch.parts(j.o.MaxGroupBytes) {
		part := group{
			head:  &waiter{batch: Batch{Lines: c.Bytes, Records: g.records, Events: g.head.batch.Events}, key: g.head.key, keyed: keys > 0},
			bytes: len(c.Bytes), lines: c.Size, packed: c.Packed, records: c.Records,
			keys: keys, minTime: g.minTime, maxTime: g.maxTime, at: g.at,
		}
		keys = 0
		n, err := j.writeFrame(&part, first, pos)
		if err != nil {
			return err
		}
		pos += n
		first += uint64(part.records)
	}
	return nil
}

// writeFrame writes g as one frame at pos and returns its length.
func (j *Journal) writeFrame(g *group, first uint64, pos int64) (int64, error) {
	size := frameHeaderSize + int64(g.keysLen()) + int64(g.bytes)
	buf := j.writer.buf
	if int64(cap(buf)) < size {
		buf = make([]byte, 0, max(size, 64<<10))
	}
	buf = buf[:frameHeaderSize]
	for w, at := g.head, first; w != nil; w = w.next {
		if w.keyed {
			k := w.entry(at, g.at)
			buf = k.append(buf)
		}
		at += uint64(w.batch.Records)
	}
	for w := g.head; w != nil; w = w.next {
		buf = append(buf, w.batch.Lines...)
	}
	if cap(buf) <= 2*j.o.MaxGroupBytes+frameHeaderSize {
		j.writer.buf = buf[:0]
	}
	h := recordlog.Frame{
		Unpacked: g.lines, Keys: g.keys, KeysLen: g.keysLen(),
		First: first, Records: g.records, ID: j.writer.seg.id,
		MinTime: g.minTime, MaxTime: g.maxTime,
	}
	if g.packed {
		h.Codec = recordlog.CodecZstd
	}
	h.Put(buf)
	s := j.writer.seg
	_, err := s.file.WriteAt(buf, pos)
	if err == nil {
		if why := j.writer.tail.wrote(s.file, buf, j.writer.read[:]); why != nil {
			j.mu.Lock()
			s.takenLocked(why)
			j.lost = s.away
			j.mu.Unlock()
		}
	}
	pool.Overwrite(j.writer.buf)
	return size, err
}
