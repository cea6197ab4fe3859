package normalize

import (
	"hash/maphash"
	"strconv"

	"github.com/rollway/rollway/internal/jsonwalk"
)

// newEvent makes attrs those of an event that has said nothing yet.
func (n *Normalizer) newEvent() {
	n.attrs = n.attrs[:0]
	n.names.reset()
	n.known.Nested = n.known.Nested[:0]
	n.dropped = false
	n.service, n.ready = jsonwalk.Span{}, jsonwalk.Span{}
	n.late.n, n.late.seen = 0, 0
	n.failure.names[0], n.failure.value, n.failure.inMessage = jsonwalk.Span{}, n.failure.value[:0], false
	if n.extras != nil {
		n.beginWith(n.extras)
	}
	if n.enricher != nil {
		n.beginWith(&n.fixed)
		n.attrs = n.enricher.Own(n.attrs, n.body.received, &n.scratch)
	}
}

func (n *Normalizer) beginWith(x *Extras) {
	for _, name := range x.names {
		n.names.add(name)
	}
	n.attrs = append(n.attrs, x.text...)
}

// addAttr appends a member to attrs. compact tells that it is already as it
// belongs there: without white space, and not nested too deep.
func (n *Normalizer) addAttr(name, value jsonwalk.Span, compact bool) reason {
	text := n.body.text
	raw := name.Of(text)
	if !compact {
		return n.addAttrAs(raw, value)
	}
	if !n.roomFor(len(n.attrs) + len(raw) + value.Len()) {
		return tooLarge
	}
	suffix, fault := n.uniqueSuffix(raw, nil)
	if fault != ok {
		return fault
	}
	if len(suffix) == 0 && len(n.attrs)+value.End-name.Start <= n.limits.MaxEventBytes {
		n.attrs = append(n.attrs, text[name.Start:value.End]...)
		n.noteNested(len(n.attrs)-value.Len(), len(n.attrs))
		n.attrs = append(n.attrs, ',')
		return ok
	}
	return n.appendAttr(raw, suffix, value)
}

// addAttrAs is addAttr under another name, a JSON string.
func (n *Normalizer) addAttrAs(name []byte, value jsonwalk.Span) reason {
	if !n.roomFor(len(n.attrs) + len(name) + value.Len()) {
		return tooLarge
	}
	suffix, fault := n.uniqueSuffix(name, nil)
	if fault != ok {
		return fault
	}
	return n.appendAttr(name, suffix, value)
}

// appendAttr appends a member whose name is counted.
func (n *Normalizer) appendAttr(name, suffix []byte, value jsonwalk.Span) (fault reason) {
	n.appendName(name, suffix)
	start := len(n.attrs)
	n.attrs, fault = appendValue(n.attrs, value.Of(n.body.text), n.limits.MaxEventBytes, n.limits.MaxDepth-2)
	n.noteNested(start, len(n.attrs))
	n.attrs = append(n.attrs, ',')
	return fault
}

// noteNested notes the value attrs[start:end] if it is an object or array.
func (n *Normalizer) noteNested(start, end int) {
	if n.enricher != nil && start < end && !isScalar(n.attrs[start:]) {
		n.known.Nested = append(n.known.Nested, jsonwalk.Span{Start: start, End: end})
	}
}

// uniqueSuffix counts the name of a member of attrs, a JSON string, and returns what
// makes it the only one there. plain is its text, if the caller has it.
func (n *Normalizer) uniqueSuffix(raw, plain []byte) ([]byte, reason) {
	if n.names.len() >= n.limits.MaxFields {
		return nil, tooManyFields
	}
	n.ev.got = len(raw) - len(`""`)
	if n.ev.got > n.limits.MaxKeyBytes {
		return nil, keyTooLong
	}
	if len(plain) != n.ev.got { // raw has escapes, or plain is not UTF-8
		plain = n.unquoted(raw)
	}
	suffix := n.names.add(plain)
	if n.ev.got += len(suffix); n.ev.got > n.limits.MaxKeyBytes {
		return nil, keyTooLong
	}
	return suffix, ok
}

func (n *Normalizer) appendName(raw, suffix []byte) {
	n.attrs = append(n.attrs, raw[:len(raw)-1]...)
	n.attrs = append(n.attrs, suffix...)
	n.attrs = append(n.attrs, `":`...)
}

// nameSet holds the names in attrs of one event, unescaped, and finds the
// suffix for one that is there already. Few names are searched in a row, many
// through a hash table, so that a thousand members cost no more each than ten.
// Events mostly have the names of the one before in the same order: those are
// compared with it, and neither searched nor copied.
type nameSet struct {
	seed  maphash.Seed
	text  []byte  // all names, end to end
	list  []entry // in the order of arrival; after n those of the event before, until one differs
	n     int     // names of this event
	table []int32 // open addressing, index in list + 1; empty while few
	try   []byte  // a name with a suffix; its tail is returned by add
}

type entry struct {
	start, end int // in text
	next       int // suffix to try for the next equal name; 0 means 2
}

// few is how many names are searched without a table.
const few = 16

func (s *nameSet) init() { s.seed = maphash.MakeSeed() }

func (s *nameSet) len() int { return s.n }

func (s *nameSet) reset() { s.n = 0 }

// shrink gives up memory that an unusual event has made grow.
func (s *nameSet) shrink(keep int) {
	if max(cap(s.text), cap(s.try)) > keep {
		*s = nameSet{seed: s.seed}
	}
}

// add adds name to the set and returns the suffix that makes it unique there,
// usually none. The suffix is valid until the next call.
func (s *nameSet) add(name []byte) (suffix []byte) {
	if s.n < len(s.list) {
		if s.is(s.n, name) {
			s.list[s.n].next = 0
			s.n++
			return nil
		}
		s.cut()
	}
	found, slot := s.find(name)
	if found < 0 {
		s.insert(name, slot)
		return nil
	}
	k := max(s.list[found].next, 2)
	s.try = append(s.try[:0], name...)
	for ; ; k++ {
		s.try = append(s.try[:len(name)], '_')
		s.try = strconv.AppendInt(s.try, int64(k), 10)
		if other, slot := s.find(s.try); other < 0 {
			s.insert(s.try, slot)
			break
		}
	}
	s.list[found].next = k + 1
	return s.try[len(name):]
}

// find returns the place of name in list, or -1 and its free place in table.
func (s *nameSet) find(name []byte) (index, slot int) {
	if len(s.table) == 0 {
		for i := range s.n {
			if s.is(i, name) {
				return i, 0
			}
		}
		return -1, 0
	}
	mask := len(s.table) - 1
	slot = int(maphash.Bytes(s.seed, name)) & mask
	for s.table[slot] != 0 {
		if i := int(s.table[slot]) - 1; i < s.n && s.is(i, name) {
			return i, slot
		}
		slot = (slot + 1) & mask
	}
	return -1, slot
}

func (s *nameSet) is(i int, name []byte) bool { return string(s.at(i)) == string(name) }

// at returns the name at a place in list.
func (s *nameSet) at(i int) []byte {
	e := &s.list[i]
	return s.text[e.start:e.end]
}

func (s *nameSet) insert(name []byte, slot int) {
	start := len(s.text)
	s.text = append(s.text, name...)
	s.list = append(s.list, entry{start: start, end: len(s.text)})
	s.n++
	if len(s.table) > 0 {
		s.table[slot] = int32(len(s.list))
	}
	if len(s.list) > few && len(s.list)*2 > len(s.table) {
		s.grow()
	}
}

// grow gives the table twice the room that it needs, or more, and fills it.
func (s *nameSet) grow() {
	size := 8 * few
	for size < 4*len(s.list) {
		size *= 2
	}
	if cap(s.table) < size {
		s.table = make([]int32, size)
	} else {
		s.table = s.table[:size]
		clear(s.table)
	}
	mask := size - 1
	for i := range s.list {
		slot := int(maphash.Bytes(s.seed, s.at(i))) & mask
		for s.table[slot] != 0 {
			slot = (slot + 1) & mask
		}
		s.table[slot] = int32(i + 1)
	}
}

// truncate takes out all names but the first k.
func (s *nameSet) truncate(k int) {
	for i := range k {
		s.list[i].next = 0
	}
	s.n = k
}

// cut forgets the names of the event before that come after those of this one.
func (s *nameSet) cut() {
	s.text, s.list = s.text[:s.list[s.n].start], s.list[:s.n]
	switch {
	case len(s.table) == 0:
	case s.n > few:
		s.grow()
	default:
		clear(s.table)
		s.table = s.table[:0]
	}
}
