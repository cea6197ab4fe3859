// Package ulid makes identifiers that sort by the time at which they were made:
// ULIDs as github.com/ulid/spec has them, 48 bits of milliseconds since 1970 and
// 80 bits that nobody can guess, in 26 characters.
package ulid

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"sync/atomic"
	"time"
)

// Len is the length of an identifier as text.
const Len = 26

// A Source makes identifiers. Each is greater than all that the Source made
// before it, on any goroutine: within a millisecond the 80 bits count up from a
// random number, and a clock that is set back is waited for in that way too. It
// is safe for concurrent use and takes no lock.
//
// The number that a millisecond begins with is the encryption of the millisecond
// under a key that is random for each Source. So goroutines that meet in a
// millisecond agree on it without a word, and whoever sees identifiers learns
// nothing of those of other milliseconds.
type Source struct {
	block cipher.Block
	// last is the millisecond and, in its lowest seqBits, the number within it
	// of the identifier made last.
	last atomic.Uint64
}

// seqBits leaves 48 bits for the millisecond. A millisecond that has used up its
// numbers goes on in the next.
const seqBits = 16

// NewSource returns a Source.
func NewSource() *Source {
	var key [16]byte
	rand.Read(key[:]) // never fails
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // 16 bytes are a key
	}
	return &Source{block: block}
}

// A Maker makes identifiers of a Source for one goroutine at a time. The zero
// value is of none and makes none.
type Maker struct {
	source *Source
	ms     uint64 // that base belongs to, plus 1; 0: none
	base   [10]byte
	block  [aes.BlockSize]byte
}

// Maker returns a Maker, which needs no closing.
func (s *Source) Maker() Maker { return Maker{source: s} }

// Of reports whether m is a Maker of s.
func (m *Maker) Of(s *Source) bool { return m.source == s }

// Append appends the text of a new identifier for the time now.
func (m *Maker) Append(dst []byte, now time.Time) []byte {
	n := m.source.next(uint64(max(0, now.UnixMilli())))
	ms, seq := n>>seqBits, n&(1<<seqBits-1)
	if m.ms != ms+1 {
		m.begin(ms)
	}
	low := binary.BigEndian.Uint64(m.base[2:])
	high := uint64(binary.BigEndian.Uint16(m.base[:2]))
	if low+seq < low {
		high++ // the topmost bit of base is 0, so there is room
	}
	return appendText(dst, ms<<16|high, low+seq)
}

// next returns a number that is greater than all before.
func (s *Source) next(ms uint64) uint64 {
	for {
		last := s.last.Load()
		n := max(last+1, ms<<seqBits)
		if s.last.CompareAndSwap(last, n) {
			return n
		}
	}
}

// begin finds the number that a millisecond begins with.
func (m *Maker) begin(ms uint64) {
	clear(m.block[:])
	binary.BigEndian.PutUint64(m.block[:], ms)
	m.source.block.Encrypt(m.block[:], m.block[:])
	copy(m.base[:], m.block[:])
	m.base[0] &= 0x7F
	m.ms = ms + 1
}

// alphabet is Crockford's base 32.
const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// appendText appends 128 bits, 2 of which are the first character's padding, in
// 26 characters of 5 bits.
func appendText(dst []byte, high, low uint64) []byte {
	var text [Len]byte
	for i := Len - 1; i >= 0; i-- {
		text[i] = alphabet[low&31]
		low = low>>5 | high<<59
		high >>= 5
	}
	return append(dst, text[:]...)
}
