// Package forward takes events by the Fluent forward protocol, version 1: that
// of Fluentd, Fluent Bit, Docker's fluentd driver and the fluent-logger
// libraries.
//
// A message is one array of MessagePack, in one of four modes:
//
//	[tag, time, record, option?]         Message
//	[tag, [[time, record], …], option?]  Forward
//	[tag, bin, option?]                  PackedForward: entries in a row
//	[tag, bin, {"compressed":"gzip"}]    CompressedPackedForward, or "zstd"
//
// The first two may be JSON as well, as Monolog and fluent-logger-php write it.
//
// The value of the option "chunk" is acknowledged once the events of the message are
// stored, as {"ack": chunk}. A message is taken when all of it has arrived. Nil, which
// some senders use as a heartbeat, is passed over. Bytes that are not such a message close
// the connection: what follows them cannot be found.
//
// A chunk that is the base64 of 16 bytes, as the specification has it, is the unique
// id of a message, which is stored once, see receiver.Chunk.SetKey. Fluent Bit makes its
// ids of the content, so that two chunks of equal lines have one: by them nothing is known
// to have come again. It is told by its option "fluent_signal", before 2.0 by hexadecimal
// digits.
//
// A record's members go where the table of known keys in package normalize says; a record
// that is text is the message. The tag is attrs.tag, the time that of the entry, seconds or
// EventTime. Strings that are not UTF-8, and binary values that are text, have U+FFFD in
// place of what is not; other binary values are base64. An EventTime among the members is written as a time, any
// other extension as {"type":…,"data":base64}. Entries that are one line, or that only
// continue the one before them, are one event, see join.go. The message of an entry that is rejected is
// acknowledged all the same, as sending it again would change nothing.
package forward

import (
	"errors"
	"fmt"
	"math"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/wire"
)

// Protocol is a receiver.StreamProtocol.
type Protocol struct {
	// MaxUnpacked is how many bytes the entries of a compressed message may
	// have. Default 64 MiB.
	MaxUnpacked int
	// Security asks clients for a secret; nil: everybody may send.
	Security *Security
}

// Name is for the log.
func (Protocol) Name() string { return "Fluent forward" }

// MaxFrame is the longest message.
func (Protocol) MaxFrame(_, maxBody int) int { return maxBody }

// Open begins a connection.
func (p Protocol) Open() receiver.Session {
	if p.MaxUnpacked <= 0 {
		p.MaxUnpacked = 64 << 20
	}
	return &session{Protocol: p}
}

// session is one connection.
type session struct {
	Protocol
	hands    handshake
	walk     walker // through the message that is not whole yet
	inner    walker // through entries that are packed
	next     walker // through the message after one
	found    found  // the entry after the one that is being read
	line     line   // of the event
	text     jsonEnd
	inJSON   wire.Event
	inflater receiver.Inflater
}

// Decode takes whole messages.
func (s *session) Decode(c *receiver.Chunk) (taken int, err error) {
	if s.Security != nil && !s.hands.over {
		if taken, err = s.shake(c); err != nil || !s.hands.over {
			return taken, err
		}
	}
	for taken < len(c.Data) {
		data := c.Data[taken:]
		n, err := s.value(data)
		if err == errShort {
			return taken, nil
		}
		if err == nil {
			if c.Full(n) {
				return taken, nil
			}
			var m delivery
			if m, err = readDelivery(data[:n]); err == nil {
				if m.named && c.Alone() {
					return taken, nil
				}
				if n = s.joinFrames(c, &m, data, n); n == 0 {
					return taken, nil
				}
				err = s.take(c, &m)
			}
			if c.Batch.Overflowed() { // with what was there before
				c.Batch.Reset()
				c.Reply = c.Reply[:0]
				err = receiver.ErrInflateMemory
			}
			if err == nil && c.HasKey() {
				return taken + n, nil
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, receiver.ErrInflateMemory): // it will be sent again
			return taken, err
		case errors.Is(err, receiver.ErrInflateLarge):
			c.RejectRaw(normalize.ReasonTooLarge, err.Error(), data[:n])
			return taken, err
		default:
			c.RejectRaw(normalize.ReasonSyntax, err.Error(), data)
			return taken, err
		}
		taken += n
	}
	return taken, nil
}

// value returns the length of the value at the beginning of data, once it is whole.
func (s *session) value(data []byte) (n int, err error) {
	if beginsJSON(data[0]) {
		return s.text.value(data)
	}
	if n, err = s.walk.value(data); err == nil {
		s.walk.reset()
	}
	return n, err
}

// A delivery is a message that has been found whole.
type delivery struct {
	tag      []byte
	json     []byte // all of a message in JSON; nil: it is not
	entries  reader // at the second element, in MessagePack; without bytes: a heartbeat
	oneEvent bool   // it is a time and then a record
	option
}

// readDelivery reads a message except for its entries.
func readDelivery(data []byte) (m delivery, err error) {
	if beginsJSON(data[0]) {
		return readJSON(data)
	}
	r := reader{b: data}
	head := r.next()
	if head.kind == isNil {
		return m, nil
	}
	if head.kind != isArray || head.n < 2 || head.n > 4 {
		return m, fmt.Errorf("not a message of the forward protocol: found %s, expected an array of two to four", head)
	}
	tag := r.next()
	if tag.kind != isString && tag.kind != isBinary {
		return m, fmt.Errorf("not a message of the forward protocol: its tag is %s", tag)
	}
	m.tag, m.entries = tag.data, r
	second := r.next()
	m.oneEvent = second.kind != isArray && second.kind != isString && second.kind != isBinary
	r.skip(second)
	if m.oneEvent {
		if head.n < 3 {
			return m, errors.New("not a message of the forward protocol: it has a time and no record")
		}
		r.skip(r.next())
	}
	m.entries.b = m.entries.before(&r)
	if has := head.n == 4 || head.n == 3 && !m.oneEvent; has {
		m.option.read(&r)
	}
	return m, nil
}

// take takes a message.
func (s *session) take(c *receiver.Chunk, m *delivery) error {
	if len(m.entries.b) == 0 && m.json == nil {
		return nil
	}
	content, err := s.entries(c, m)
	if err != nil {
		return err
	}
	if m.named && !c.Batch.Overflowed() {
		c.SetKey(m.key(c.Batch, content))
	}
	if len(m.packed) > 0 {
		s.inflater.Overwrite()
	}
	switch {
	case m.chunk == nil:
	case m.json != nil:
		c.Reply = append(append(append(c.Reply, `{"ack":`...), m.chunk...), '}')
	default:
		c.Reply = append(append(c.Reply, "\x81\xa3ack"...), m.chunk...)
	}
	return nil
}

// entries adds the events of a message and returns the bytes that they are, unpacked.
func (s *session) entries(c *receiver.Chunk, m *delivery) (content []byte, err error) {
	if m.json != nil {
		return m.json, s.jsonEntries(c, m)
	}
	b := c.Norm.Build(c.Batch, c.Received)
	defer b.Done()
	r := m.entries
	if m.oneEvent {
		s.event(b, m.tag, &r)
		return m.entries.b, nil
	}
	list := r.next()
	if list.kind == isArray {
		if s.row(c, b, m.tag, r.b, list.n, wholeEntry); c.Batch.Overflowed() {
			return nil, receiver.ErrInflateMemory
		}
		return m.entries.b, nil
	}
	content = list.data
	if len(m.packed) > 0 {
		if content, err = s.inflater.Unpack(c, m.packed, content, s.MaxUnpacked); err != nil {
			return nil, fmt.Errorf("the entries of a message: %w", err)
		}
	}
	s.row(c, b, m.tag, content, math.MaxInt, s.packedEntry)
	return content, nil
}

// entry adds the event of one [time, record].
func (s *session) entry(b *normalize.Builder, tag, whole []byte) {
	r := reader{whole}
	head := r.next()
	if head.kind != isArray || head.n != 2 {
		b.Raw(whole)
		rejectKind(b, "an entry", head, "an array of a time and a record")
		return
	}
	s.event(b, tag, &r)
}

// rejectKind rejects an event because what it should be is of another kind.
func rejectKind(b *normalize.Builder, what string, is token, expected string) {
	detail := ""
	if b.Describes() {
		detail = fmt.Sprintf("%s is %v, expected %s", what, is, expected)
	}
	b.Reject(normalize.ReasonNotObject, detail)
}

var (
	nameTag      = []byte("tag")
	nameMetadata = []byte("metadata")
)

// event adds the event of a time and a record, whose message is that of s.line.
func (s *session) event(b *normalize.Builder, tag []byte, r *reader) {
	start := *r
	at := r.next()
	pair := at.kind == isArray && at.n == 2 // of Fluent Bit: a time and metadata
	if pair {
		at = r.next()
	}
	sec, nsec, timed := at.time()
	if timed = timed && sec != 0; !timed { // as for Fluentd
		r.skip(at)
	}
	metadata := *r
	if pair {
		r.skip(r.next())
	}
	record := r.next()
	isText := record.kind == isString || record.kind == isBinary
	if record.kind != isMap && !isText {
		r.skip(record)
		b.Raw(start.before(r))
		rejectKind(b, "a record", record, "a map")
		return
	}
	b.Begin()
	if timed {
		b.SetTime(sec, nsec)
	}
	b.Attr(nameTag)
	b.String(tag)
	if ahead := metadata; pair {
		if m := ahead.next(); m.kind != isMap || m.n > 0 {
			b.Attr(nameMetadata)
			value(b, &metadata)
		}
	}
	switch {
	case isText:
		b.Slot(normalize.Message)
		binaryValue(b, record.data)
	case s.line.count > 0:
		s.line.pairs(b, r, record.n)
	default:
		pairs(b, r, record.n, true)
	}
	b.Raw(s.line.raw(&start, r))
	if !b.End() {
		keepTag(b, tag)
	}
}

// noName replaces a key that is an array, a map or an extension.
var noName = []byte("?")

// key reads the key of a map as text, in buf if it is a number.
func (r *reader) key(buf []byte) []byte {
	key := r.next()
	text, ok := key.text(buf)
	if !ok {
		r.skip(key)
		return noName
	}
	return text
}

// value adds the next value. Of an event that has failed it only passes over it.
func value(b *normalize.Builder, r *reader) {
	v := r.next()
	switch v.kind {
	case isNil:
		b.Null()
	case isBool:
		b.Bool(v.n != 0)
	case isInt:
		b.Int(v.int)
	case isUint:
		b.Uint(v.uint)
	case isFloat:
		b.Float(v.float)
	case isString:
		b.String(v.data)
	case isBinary:
		binaryValue(b, v.data)
	case isExtension:
		extension(b, &v)
	case isArray:
		b.BeginArray()
		for i := range v.n {
			if b.Failed() {
				r.skipValues(v.n - i)
				break
			}
			value(b, r)
		}
		b.EndArray()
	case isMap:
		b.BeginObject()
		pairs(b, r, v.n, false)
		b.EndObject()
	}
}

// pairs adds the next n pairs of a map, which are fields of the event or members of an
// object.
func pairs(b *normalize.Builder, r *reader, n int, fields bool) {
	for ; n > 0; n-- {
		if b.Failed() {
			r.skipValues(2 * n)
			return
		}
		var number [maxNumber]byte
		if key := r.key(number[:0]); fields {
			b.Field(key)
		} else {
			b.Name(key)
		}
		value(b, r)
	}
}

// Reread puts the event of c.Data, a time and a record as they are kept of one
// that was rejected, into c.Batch; context is its tag.
func Reread(c *receiver.Chunk, context []byte) error {
	if len(c.Data) > 0 && beginsJSON(c.Data[0]) {
		return rereadJSON(c, context)
	}
	var w walker
	rest := c.Data
	for range 2 {
		w.reset()
		n, err := w.value(rest)
		if err != nil {
			return fmt.Errorf("not a time and a record: %w", err)
		}
		rest = rest[n:]
	}
	if len(rest) > 0 {
		return fmt.Errorf("not a time and a record: %d bytes follow", len(rest))
	}
	b := c.Norm.Build(c.Batch, c.Received)
	defer b.Done()
	new(session).event(b, context, &reader{b: c.Data})
	return nil
}
