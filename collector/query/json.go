package query

import (
	"encoding/binary"
	"math/bits"
)

// skipString returns the index behind the string whose quote is line[i], and
// whether it holds a backslash. ok is false if the string does not end.
func skipString(line []byte, i int) (end int, escaped, ok bool) {
	const (
		ones  = 0x0101010101010101
		highs = 0x8080808080808080
	)
	i++
	for {
		// Eight bytes at a time up to the first quote or backslash. As in a
		// search for a zero byte, the lowest bit found is always right.
		for i+8 <= len(line) {
			w := binary.LittleEndian.Uint64(line[i:])
			quote, slash := w^ones*'"', w^ones*'\\'
			found := ((quote-ones)&^quote | (slash-ones)&^slash) & highs
			if found != 0 {
				i += bits.TrailingZeros64(found) / 8
				break
			}
			i += 8
		}
		for i < len(line) && line[i] != '"' && line[i] != '\\' {
			i++
		}
		if i >= len(line) {
			return len(line), escaped, false
		}
		if line[i] == '"' {
			return i + 1, escaped, true
		}
		escaped = true
		i += 2
		if i > len(line) {
			return len(line), escaped, false
		}
	}
}

// skipValue returns the index behind the value at line[i], or i if there is
// none. It does not check what is inside.
func skipValue(line []byte, i int) int {
	if i >= len(line) {
		return i
	}
	switch line[i] {
	case '"':
		end, _, _ := skipString(line, i)
		return end
	case '{', '[':
		depth := 0
		for i < len(line) {
			switch line[i] {
			case '"':
				i, _, _ = skipString(line, i)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
			i++
		}
		return i
	}
	return skipScalar(line, i)
}

// skipScalar returns the index behind the number or the word at line[i].
func skipScalar(line []byte, i int) int {
	for i < len(line) {
		switch line[i] {
		case ',', ':', '}', ']', '{', '[', '"', '\n':
			return i
		}
		i++
	}
	return i
}

// values walks the scalars of one value, in order and without recursion.
type values struct {
	line    []byte // up to the end of the value
	at      int    // where to go on
	objects bool   // look into objects; otherwise only lists are looked into
}

// next returns the next scalar: the inside of a string, or a number, true,
// false or null. Keys are left out.
func (v *values) next() (raw []byte, isString, escaped, ok bool) {
	line := v.line
	for v.at < len(line) {
		start := v.at
		switch line[start] {
		case '"':
			end, escaped, ok := skipString(line, start)
			v.at = end
			if !ok {
				return nil, false, false, false
			}
			if end < len(line) && line[end] == ':' {
				v.at++
				continue
			}
			return line[start+1 : end-1], true, escaped, true
		case '{':
			if !v.objects {
				v.at = skipValue(line, start)
				continue
			}
			v.at++
		case '[', ']', '}', ',', ':', '\n':
			v.at++
		default:
			v.at = skipScalar(line, start)
			return line[start:v.at], false, false, true
		}
	}
	return nil, false, false, false
}
