package columns

import (
	"bytes"
	"hash/maphash"
	"slices"
)

// A Set numbers different byte strings, from 0 on, in the order in which they come. Its zero value
// is empty.
type Set struct {
	slots  []uint64 // a power of two of them: index plus 1 of a string, and the upper half of its hash
	hashes []uint64 // or the words of Skip
	ends   []int    // in text
	text   []byte
	skips  int
	seen   uint64 // nobody needs it
}

var seed = maphash.MakeSeed()

// Reset makes s empty. It keeps memory for the next strings.
func (s *Set) Reset() {
	clear(s.slots)
	s.hashes, s.ends, s.text, s.skips = s.hashes[:0], s.ends[:0], s.text[:0], 0
}

// Len returns how many strings there are.
func (s *Set) Len() int { return len(s.ends) }

// At returns string i, valid until Reset.
func (s *Set) At(i int) []byte {
	start := 0
	if i > 0 {
		start = s.ends[i-1]
	}
	return s.text[start:s.ends[i]:s.ends[i]]
}

// Add returns the number of b.
func (s *Set) Add(b []byte) int { return s.add(b, maphash.Bytes(seed, b)) }

// Skip gives the next number to a string that the caller knows by a word. Of that, At is empty and
// Word returns the word. The other strings are not empty then, and none is that string.
func (s *Set) Skip(word uint64) {
	if s.skips++; len(s.ends) == cap(s.ends) {
		s.ends, s.hashes = slices.Grow(s.ends, len(s.ends)/2+1), slices.Grow(s.hashes, len(s.hashes)/2+1)
	}
	s.ends, s.hashes = append(s.ends, len(s.text)), append(s.hashes, word)
}

// Word returns what Skip got for number i.
func (s *Set) Word(i int) uint64 { return s.hashes[i] }

// AddAll appends to dst the numbers of the strings from to before to of another set, which skips none.
func (s *Set) AddAll(dst []int32, other *Set, from, to int) []int32 {
	for (len(s.ends)-s.skips+to-from)*2 > len(s.slots) {
		s.grow()
	}
	mask, seen := uint64(len(s.slots)-1), uint64(0)
	for _, hash := range other.hashes[from:to] {
		seen |= s.slots[hash&mask] // all are on their way from memory before one is waited for
	}
	s.seen = seen
	for i := from; i < to; i++ {
		dst = append(dst, int32(s.add(other.At(i), other.hashes[i])))
	}
	return dst
}

const upperHalf = 0xffffffff << 32

func (s *Set) add(b []byte, hash uint64) int {
	if (len(s.ends)-s.skips)*2 >= len(s.slots) {
		s.grow()
	}
	mask := uint64(len(s.slots) - 1)
	for at := hash & mask; ; at = (at + 1) & mask {
		slot := s.slots[at]
		if slot == 0 {
			s.text = append(s.text, b...)
			s.ends, s.hashes = append(s.ends, len(s.text)), append(s.hashes, hash)
			s.slots[at] = hash&upperHalf | uint64(len(s.ends))
			return len(s.ends) - 1
		}
		if i := int(uint32(slot)) - 1; slot&upperHalf == hash&upperHalf && bytes.Equal(s.At(i), b) {
			return i
		}
	}
}

func (s *Set) grow() {
	s.slots = make([]uint64, max(64, 2*len(s.slots)))
	s.hashes, s.ends, s.text = slices.Grow(s.hashes, len(s.ends)), slices.Grow(s.ends, len(s.ends)), slices.Grow(s.text, len(s.text))
	mask := uint64(len(s.slots) - 1)
	for i, hash := range s.hashes {
		if s.skips > 0 && len(s.At(i)) == 0 {
			continue
		}
		at := hash & mask
		for s.slots[at] != 0 {
			at = (at + 1) & mask
		}
		s.slots[at] = hash&upperHalf | uint64(i+1)
	}
}
