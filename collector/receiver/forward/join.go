package forward

import (
	"bytes"
	"encoding/binary"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/wire"
	"github.com/rollway/rollway/collector/textlog"
)

// Entries of one tag whose records have all in common but their message and their time are
// lines of one stream. Those that only continue the one before them, see textlog.Joiner,
// belong to its event, and so do parts of a line that is too long for what has read it:
//
//	partial_message, partial_id, partial_ordinal, partial_last   Docker's driver, from 16 KiB on
//	logtag, _p                                                   P in each part but the last: parsers of CRI
//
// So it is within a message, and in messages of one entry after another on a connection,
// unless their client waits for each to be acknowledged. Parts that have not all come are
// waited for like the rest of a message.

// maxPairs is how many members a record may have that others are compared with.
const maxPairs = 16

// record is the record of an entry that may be a line of a stream.
type record struct {
	pairs reader // at the first key
	n     int    // pairs
	at    int    // which of them is the message
	left  [2]int // bytes of the reader from the message on, and after it
	text  []byte // the message

	part    bool // it is a part of a line
	last    bool // the last one
	id      []byte
	ordinal []byte
}

// readRecord reads the record after the time at r, which has no metadata.
func readRecord(r reader) (rec record, is bool) {
	if at := r.next(); at.kind != isArray {
		r.skip(at)
	} else if metadata := last(&r, at.n); metadata.n > 0 {
		return rec, false
	}
	head := r.next()
	if head.kind != isMap || head.n > maxPairs {
		return rec, false
	}
	rec.pairs, rec.n, rec.at = r, head.n, -1
	for i := range head.n {
		key := r.next()
		left := len(r.b)
		v := r.next()
		r.skip(v)
		if key.kind != isString && key.kind != isBinary {
			return rec, false
		}
		if !isOwn(key.data) {
			continue
		}
		isTrue := string(v.data) == "true" || v.kind == isBool && v.n == 1
		switch string(key.data) {
		case "log", "message", "msg", "MESSAGE":
			if rec.at >= 0 || v.kind != isString && v.kind != isBinary {
				return rec, false
			}
			rec.at, rec.text, rec.left = i, v.data, [2]int{left, len(r.b)}
		case "partial_message":
			rec.part = isTrue
		case "logtag", "_p":
			rec.part = string(v.data) == "P"
		case "partial_last":
			rec.last = isTrue
		case "partial_id":
			rec.id = v.data
		case "partial_ordinal":
			rec.ordinal = v.data
		}
	}
	return rec, rec.at >= 0
}

// last returns the last of n values, without what belongs to it.
func last(r *reader, n int) (t token) {
	for ; n > 0; n-- {
		t = r.next()
		if n > 1 || t.n == 0 {
			r.skip(t)
		}
	}
	return t
}

// isOwn reports whether a member is one that each line has its own of.
func isOwn(name []byte) bool {
	switch string(name) {
	case "log", "message", "msg", "MESSAGE":
		return true
	}
	return isPart(name) || wire.IsOwn(name)
}

// isPart reports whether a member tells of parts of a line.
func isPart(name []byte) bool {
	switch string(name) {
	case "partial_message", "partial_id", "partial_ordinal", "partial_last", "logtag", "_p":
		return true
	}
	return false
}

// isOf reports whether two records are of one stream.
func (rec *record) isOf(o *record) bool { return rec.common() == o.common() }

// common returns the hash of what each line of the stream has, in any order.
func (rec *record) common() (sum uint64) {
	r := rec.pairs
	for range rec.n {
		name := r.next().data
		before := r
		r.skip(r.next())
		if !isOwn(name) {
			sum += wire.HashMember(name, wire.Hash(before.before(&r)))
		}
	}
	return sum
}

// line is the text of an event that several entries make.
type line struct {
	record
	count int  // of entries besides the first
	open  bool // parts of it are to come
	all   []byte
	sent  []byte // what the event was sent as, in one
}

// begin makes l the line of a record.
func (l *line) begin(rec *record) {
	*l = line{record: *rec, open: rec.part && !rec.last, all: l.all[:0], sent: l.sent[:0]}
	if cap(l.all) > textlog.KeepJoined {
		l.all, l.sent = nil, nil
	}
}

// join adds to l what follows. next returns the record after those that were taken, if it
// is known and may be one of its stream; take takes it.
func (l *line) join(c *receiver.Chunk, next func() (record, bool), take func()) {
	var joiner textlog.Joiner
	for begun := false; l.count < textlog.MaxJoined; l.count++ {
		most := c.Norm.MaxEventBytes()
		if !l.open {
			if most = c.Norm.MostJoined(); most == 0 || len(bytes.TrimSpace(l.text)) == 0 {
				return
			}
			if !begun {
				joiner.Next(l.text)
				begun = true
			}
		}
		more, is := next()
		if !is || len(l.text)+len(more.text) >= most || !l.follows(&joiner, &more) || !more.isOf(&l.record) || len(more.text) > textlog.KeepJoined && !c.Acquire(4*len(more.text)) {
			return
		}
		if l.count == 0 {
			l.all = append(l.all, l.text...)
		}
		if l.open {
			l.all = append(l.all, more.text...)
		} else {
			l.all = joiner.Append(l.all, more.text)
		}
		l.text = l.all
		l.open = l.open && more.part && !more.last
		take()
	}
}

// follows reports whether a record is the next part of a line, or a line that only continues
// it.
func (l *line) follows(joiner *textlog.Joiner, more *record) bool {
	if l.open {
		return bytes.Equal(l.id, more.id) && (more.ordinal == nil || !bytes.Equal(l.ordinal, more.ordinal))
	}
	return !more.part && joiner.Next(more.text)
}

// pairs adds the members of the record of an event with its whole text.
func (l *line) pairs(b *normalize.Builder, r *reader, n int) {
	for i := range n {
		var number [maxNumber]byte
		key := r.key(number[:0])
		switch {
		case i == l.at:
			r.skip(r.next())
			b.Field(key)
			binaryValue(b, l.text)
		case b.Failed(), !l.open && l.part && isPart(key):
			r.skip(r.next())
		default:
			b.Field(key)
			value(b, r)
		}
	}
}

// raw is what an event was sent as, with its whole text; it ends at end.
func (l *line) raw(start, end *reader) []byte {
	if l.count == 0 {
		return start.before(end)
	}
	l.sent = append(l.sent[:0], start.b[:len(start.b)-l.left[0]]...)
	l.sent = binary.BigEndian.AppendUint32(append(l.sent, 0xdb), uint32(len(l.text)))
	l.sent = append(l.sent, l.text...)
	return append(l.sent, start.b[len(start.b)-l.left[1]:len(start.b)-len(end.b)]...)
}

// found is an entry in a row of them.
type found struct {
	left int // bytes of the row from it on
	size int
	err  error
	rec  record
	is   bool // it has a record that may be a line of a stream
}

// wholeEntry returns the length of an entry of a message that is whole.
func wholeEntry(row []byte) (int, error) {
	r := reader{row}
	r.skip(r.next())
	return len(row) - len(r.b), nil
}

// packedEntry returns the length of an entry.
func (s *session) packedEntry(row []byte) (int, error) {
	s.inner.reset()
	return s.inner.value(row)
}

// find returns the entry at the beginning of a row. It is found once.
func (s *session) find(row []byte, size func([]byte) (int, error)) *found {
	f := &s.found
	if f.left == len(row) {
		return f
	}
	*f = found{left: len(row)}
	if f.size, f.err = size(row); f.err != nil {
		return f
	}
	r := reader{row[:f.size]}
	if head := r.next(); head.kind == isArray && head.n == 2 {
		f.rec, f.is = readRecord(r)
	}
	return f
}

// row adds the events of entries in a row, at most most of them.
func (s *session) row(c *receiver.Chunk, b *normalize.Builder, tag, row []byte, most int, size func([]byte) (int, error)) {
	s.found.left = -1
	for ; most > 0 && len(row) > 0 && !c.Batch.Overflowed(); most-- {
		f := s.find(row, size)
		if f.err != nil {
			b.Raw(row)
			b.Reject(normalize.ReasonSyntax, "the entries of a message end within one, or are not MessagePack")
			return
		}
		entry := row[:f.size]
		row = row[f.size:]
		s.line.count = 0
		if f.is {
			s.line.begin(&f.rec)
			s.line.join(c, func() (record, bool) {
				if len(row) == 0 || most == 1 {
					return record{}, false
				}
				f := s.find(row, size)
				return f.rec, f.is && f.err == nil
			}, func() {
				row = row[s.found.size:]
				most--
			})
		}
		s.entry(b, tag, entry)
	}
	s.line.count = 0
}

// joinFrames makes s.line that of a message of one entry, the first n bytes of data, and of
// such messages after it. It returns where the last of them ends; 0: what belongs to it may
// be yet to come.
func (s *session) joinFrames(c *receiver.Chunk, m *delivery, data []byte, n int) int {
	s.line.count = 0
	if !m.oneEvent || m.json != nil || m.chunk != nil {
		return n
	}
	rec, is := m.record()
	if !is {
		return n
	}
	short, size := false, 0
	s.line.begin(&rec)
	s.line.join(c, func() (rec record, is bool) {
		s.next.reset()
		var err error
		if size, err = s.next.value(data[n:]); err != nil {
			short = err == errShort
			return rec, false
		}
		after, err := readDelivery(data[n : n+size])
		if err != nil || !after.oneEvent || after.json != nil || after.chunk != nil || !bytes.Equal(after.tag, m.tag) {
			return rec, false
		}
		return after.record()
	}, func() { n += size })
	if short && (s.line.open && c.Waits() || c.Hold(len(data))) {
		return 0
	}
	return n
}

// record reads the record of a message of one entry.
func (m *delivery) record() (record, bool) {
	return readRecord(m.entries)
}
