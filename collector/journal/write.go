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
// the file. A batch above MaxGroupBytes becomes several frames, since readers have a whole
// frame in memory. After an error the file ends where it did before, or is retired. The
// caller has the writer role.
func (j *Journal) tryGroup(g *group, first uint64) (int64, error) {
	size := int64(g.bytes) + int64(g.keysLen()) + frameHeaderSize*int64(j.pieces(g))
	if err := j.makeRoom(size, g); err != nil {
		return 0, err
	}
	if err := j.prepareSegment(size, first); err != nil {
		return 0, fullError(err)
	}
	s := j.writer.seg
	var err error
	if g.bytes <= j.o.MaxGroupBytes {
		_, err = j.writeFrame(g, first, s.size)
	} else {
		err = j.writePieces(g, first, s.size)
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

// pieces returns how many frames g becomes. Only a single batch is cut.
func (j *Journal) pieces(g *group) int {
	if g.bytes <= j.o.MaxGroupBytes {
		return 1
	}
	return recordlog.Pieces(g.head.batch.Lines, j.o.MaxGroupBytes)
}

// writePieces writes the one batch of g as several frames from pos on; the first has its
// key.
func (j *Journal) writePieces(g *group, first uint64, pos int64) error {
	keys := g.keys
	for rest := g.head.batch.Lines; len(rest) > 0; {
		lines := rest[:recordlog.Piece(rest, j.o.MaxGroupBytes)]
		rest = rest[len(lines):]
		piece := group{
			head: &waiter{batch: Batch{Lines: lines, Records: g.records, Events: g.head.batch.Events}, key: g.head.key, keyed: keys > 0}, bytes: len(lines), records: recordlog.LineCount(lines),
			keys: keys, minTime: g.minTime, maxTime: g.maxTime, at: g.at,
		}
		keys = 0
		n, err := j.writeFrame(&piece, first, pos)
		if err != nil {
			return err
		}
		pos += n
		first += uint64(piece.records)
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
		Unpacked: g.bytes, Keys: g.keys, KeysLen: g.keysLen(),
		First: first, Records: g.records, ID: j.writer.seg.id,
		MinTime: g.minTime, MaxTime: g.maxTime,
	}
	h.Put(buf)
	_, err := j.writer.seg.file.WriteAt(buf, pos)
	pool.Overwrite(j.writer.buf)
	return size, err
}
