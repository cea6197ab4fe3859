package normalize

import (
	"encoding/binary"
	"math/bits"
)

// What is below finds where values end in text that is UTF-8, and knows valid
// JSON only: at all else, and at more than maxNested levels, it gives up with
// -1. It accepts nothing that the decoder rejects.

// maxNested is how many levels of objects and arrays are followed.
const maxNested = 100

// shape is what skipValue tells of an object or array beside its end.
type shape struct {
	levels int  // of objects and arrays in each other, itself included
	spaced bool // there is white space between its tokens
}

// skipSpace returns the index of the next byte that is not white space.
func skipSpace(b []byte, i int) int {
	for i < len(b) && isSpace(b[i]) {
		i++
	}
	return i
}

// skipString returns the index behind the string whose first quote is b[i].
func skipString(b []byte, i int) int {
	for i++; ; {
		i = special(b, i)
		switch {
		case i >= len(b):
			return -1
		case b[i] == '"':
			return i + 1
		case b[i] == '\\':
			if i = skipEscape(b, i); i < 0 {
				return -1
			}
		default: // a control byte
			return -1
		}
	}
}

// special returns the index of the next quote, backslash or control byte.
func special(b []byte, i int) int {
	const (
		ones  = 0x0101010101010101
		highs = 0x8080808080808080
	)
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		quote, slash := w^ones*'"', w^ones*'\\'
		// A borrow may mark bytes behind the first that is marked, none before.
		if marks := ((quote-ones)&^quote | (slash-ones)&^slash | (w-ones*' ')&^w) & highs; marks != 0 {
			return i + bits.TrailingZeros64(marks)/8
		}
	}
	for i < len(b) && b[i] != '"' && b[i] != '\\' && b[i] >= ' ' {
		i++
	}
	return i
}

// skipEscape returns the index behind the escape that begins at b[i].
func skipEscape(b []byte, i int) int {
	if i+1 >= len(b) {
		return -1
	}
	switch b[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2
	case 'u':
		if i+6 > len(b) {
			return -1
		}
		for _, c := range b[i+2 : i+6] {
			if low := c | 0x20; !isDigit(c) && (low < 'a' || low > 'f') {
				return -1
			}
		}
		return i + 6
	}
	return -1
}

func isDigit(c byte) bool { return c-'0' <= 9 }

// skipValue returns the index behind the value that begins at b[i], and adds to
// s what it is like. It is levels deep already.
func skipValue(b []byte, i, levels int, s *shape) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		return skipNested(b, i, levels+1, s)
	case 't':
		return skipWord(b, i, "true")
	case 'f':
		return skipWord(b, i, "false")
	case 'n':
		return skipWord(b, i, "null")
	}
	return skipNumber(b, i)
}

func skipWord(b []byte, i int, word string) int {
	if end := i + len(word); end <= len(b) && string(b[i:end]) == word {
		return end
	}
	return -1
}

// skipNumber returns the index behind the number that begins at b[i]. What
// follows it is for the caller to look at.
func skipNumber(b []byte, i int) int {
	if b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else if i = skipDigits(b, i); i < 0 {
		return -1
	}
	if i < len(b) && b[i] == '.' {
		if i = skipDigits(b, i+1); i < 0 {
			return -1
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		i = skipDigits(b, i)
	}
	return i
}

// skipDigits wants one digit or more.
func skipDigits(b []byte, i int) int {
	start := i
	for i < len(b) && isDigit(b[i]) {
		i++
	}
	if i == start {
		return -1
	}
	return i
}

// skipNested is skipValue for the object or array that begins at b[i], at a
// level of levels.
func skipNested(b []byte, i, levels int, s *shape) int {
	if levels > maxNested {
		return -1
	}
	s.levels = max(s.levels, levels)
	object := b[i] == '{'
	end := byte(']')
	if object {
		end = '}'
	}
	i = s.skipSpace(b, i+1)
	if i < len(b) && b[i] == end {
		return i + 1
	}
	for {
		if object {
			if _, i = s.skipName(b, i); i < 0 {
				return -1
			}
		}
		if i = skipValue(b, i, levels, s); i < 0 {
			return -1
		}
		i = s.skipSpace(b, i)
		if i >= len(b) {
			return -1
		}
		switch b[i] {
		case end:
			return i + 1
		case ',':
			i = s.skipSpace(b, i+1)
		default:
			return -1
		}
	}
}

// skipName returns the end of the name that begins at b[i], and the index of its
// value, or -1.
func (s *shape) skipName(b []byte, i int) (end, value int) {
	if i >= len(b) || b[i] != '"' {
		return -1, -1
	}
	if end = skipString(b, i); end < 0 {
		return -1, -1
	}
	i = s.skipSpace(b, end)
	if i >= len(b) || b[i] != ':' {
		return -1, -1
	}
	return end, s.skipSpace(b, i+1)
}

// skipSpace notes what it skips.
func (s *shape) skipSpace(b []byte, i int) int {
	if i >= len(b) || b[i] > ' ' {
		return i
	}
	end := skipSpace(b, i)
	s.spaced = s.spaced || end > i
	return end
}
