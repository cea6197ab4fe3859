package normalize

import (
	"hash/maphash"
	"strconv"
)

// nameSet holds the names in attrs of one event, unescaped, and finds the
// suffix for one that is there already. Few names are searched in a row, many
// through a hash table, so that a thousand members cost no more each than ten.
type nameSet struct {
	seed  maphash.Seed
	text  []byte  // all names, end to end
	list  []entry // in the order of arrival
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

func (s *nameSet) len() int { return len(s.list) }

func (s *nameSet) reset() {
	s.text, s.list = s.text[:0], s.list[:0]
	if len(s.table) > 0 {
		clear(s.table)
		s.table = s.table[:0]
	}
}

// shrink gives up memory that an unusual event has made grow.
func (s *nameSet) shrink() {
	if cap(s.text) > keepScratch {
		s.text = nil
	}
	if cap(s.try) > keepScratch {
		s.try = nil
	}
}

// add adds name to the set and returns the suffix that makes it unique there,
// usually none. The suffix is valid until the next call.
func (s *nameSet) add(name []byte) (suffix []byte) {
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
		for i := range s.list {
			if s.is(i, name) {
				return i, 0
			}
		}
		return -1, 0
	}
	mask := len(s.table) - 1
	slot = int(maphash.Bytes(s.seed, name)) & mask
	for s.table[slot] != 0 {
		if i := int(s.table[slot]) - 1; s.is(i, name) {
			return i, slot
		}
		slot = (slot + 1) & mask
	}
	return -1, slot
}

func (s *nameSet) is(i int, name []byte) bool {
	e := &s.list[i]
	return e.end-e.start == len(name) && string(s.text[e.start:e.end]) == string(name)
}

func (s *nameSet) insert(name []byte, slot int) {
	start := len(s.text)
	s.text = append(s.text, name...)
	s.list = append(s.list, entry{start: start, end: len(s.text)})
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
	for i, e := range s.list {
		slot := int(maphash.Bytes(s.seed, s.text[e.start:e.end])) & mask
		for s.table[slot] != 0 {
			slot = (slot + 1) & mask
		}
		s.table[slot] = int32(i + 1)
	}
}
