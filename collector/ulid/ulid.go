// Package ulid makes identifiers that sort by the time at which they were made:
// ULIDs as github.com/ulid/spec has them, 48 bits of milliseconds since 1970 and
// 80 bits that nobody can guess, in 26 characters.
package ulid

import (
	"crypto/rand"
	"encoding/binary"
	"sync"
	"time"
)

// Len is the length of an identifier as text.
const Len = 26

// A Source makes identifiers. Each is greater than all that the Source made before it:
// within a millisecond, and while the clock is set back, the 80 bits count up from a
// random number. The zero value is ready. It is safe for concurrent use.
type Source struct {
	mu        sync.Mutex
	next      uint64 // the millisecond that follows the one of high and low
	high, low uint64 // the 80 bits
	random    [10]byte
}

// Append appends the text of a new identifier for the time now.
func (s *Source) Append(dst []byte, now time.Time) []byte {
	ms := uint64(max(0, now.UnixMilli()))
	s.mu.Lock()
	if ms >= s.next {
		s.next = ms + 1
		rand.Read(s.random[:]) // never fails
		// Without its topmost bit the number has room to count up.
		s.high, s.low = uint64(binary.BigEndian.Uint16(s.random[:])&0x7FFF), binary.BigEndian.Uint64(s.random[2:])
	} else if s.low++; s.low == 0 {
		s.high++
	}
	high, low := (s.next-1)<<16|s.high, s.low
	s.mu.Unlock()
	return appendText(dst, high, low)
}

// alphabet is Crockford's base 32.
const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// appendText appends 128 bits; 2 of them are the first character's padding, in
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
