package framed

import "encoding/binary"

// nextRecord finds the next sound record of the batch, moves pos to it and
// returns its length.
func (r *Reader) nextRecord() (n int, ok bool) {
	end := r.batch.end()
	if r.pos >= end {
		return 0, false
	}
	if r.got == r.batch.records { // the writer's count is wrong
		r.hurt = hurt{pos: r.pos, bytes: end - r.pos}
		r.pos = end
		return 0, false
	}
	if n, ok = r.win.sound(r.seed, r.pos, end); ok {
		return n, true
	}
	from := r.pos
	r.pos, n, ok = r.resync(end)
	if r.hurt.bytes == 0 {
		r.hurt.pos = from
	}
	r.hurt.bytes += r.pos - from
	r.hurt.atEnd = !ok
	return n, ok
}

// resync returns the place and length of the next sound record behind the bad
// one at pos, or the end of the batch.
func (r *Reader) resync(end int64) (at int64, n int, ok bool) {
	last := min(end, r.win.size)
	// What claims to be a record is read to its end. The bound keeps a batch
	// full of false claims from taking time by the square of its length.
	work := 16*int64(r.batch.size) + 16*windowSize + r.win.read
	for at = r.pos + 1; at+RecordHeaderSize <= last && work > r.win.read && r.win.err == nil; at++ {
		length := r.claims(at)
		if length > last-at-RecordHeaderSize {
			continue
		}
		work -= length + RecordHeaderSize
		if n, ok := r.win.sound(r.seed, at, end); ok {
			return at, n, true
		}
	}
	if at+RecordHeaderSize <= last { // too many: where the bad one says it ends
		at = r.pos + RecordHeaderSize + r.claims(r.pos)
		if n, ok := r.win.sound(r.seed, at, end); ok {
			return at, n, true
		}
	}
	return end, 0, false
}

// claims returns how long the record at off, if there is one, says it is.
func (r *Reader) claims(off int64) int64 {
	b := r.win.view(off, RecordHeaderSize)
	if len(b) < RecordHeaderSize {
		return r.win.size
	}
	return int64(binary.LittleEndian.Uint32(b[4:]))
}
