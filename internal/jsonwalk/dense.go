package jsonwalk

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// JSON within a string has a backslash every few bytes. From the first one on a string is
// read in blocks. Masks tell what is where in a block: bit n is byte n.

const (
	block  = 64
	beyond = block + 32 // a block and what words may read after it
	evens  = 0x5555555555555555
	sevens = 0x7f7f7f7f7f7f7f7f
)

// gather moves the highest bits of the bytes of w together.
func gather(w uint64) uint64 { return w >> 7 * 0x0102040810204080 >> 56 }

// zeros has the highest bit of each byte of w that is zero.
func zeros(w uint64) uint64 { return ^(w&sevens + sevens | w | sevens) }

// controls returns where control characters are in a block.
func controls(b *[block]byte) (m uint64) {
	for n := 0; n < block; n += 8 {
		w := word(b, n)
		m |= gather(^(w&sevens+ones*(0x80-' ')|w)&highs) << n
	}
	return m
}

func word(b *[block]byte, n int) uint64 { return binary.LittleEndian.Uint64(b[n : n+8]) }

// marks returns where escapes begin in a block that does not begin within one, those of them
// that may mean another byte than their second one, and where the block has to be stopped at:
// quotes and control characters that no escape has.
func marks(b *[block]byte) (starts, odd, stops uint64) {
	slashes, quotes, ctrls := masks(b)
	escaped := escapedIn(slashes)
	starts = slashes &^ escaped
	return starts, starts &^ ((slashes | quotes) >> 1), (quotes | ctrls) &^ escaped
}

// masksOf returns where backslashes, quotes and control characters are in a block.
func masksOf(b *[block]byte) (slashes, quotes, ctrls uint64) {
	some := uint64(0)
	for n := 0; n < block; n += 8 {
		w := word(b, n)
		slashes = slashes>>8 | gathered(zeros(w^ones*'\\'))
		quotes = quotes>>8 | gathered(zeros(w^ones*'"'))
		some |= (w - ones*' ') &^ w // a borrow may mark bytes after one that is marked, none without one
	}
	if some&highs != 0 {
		ctrls = controls(b)
	}
	return slashes, quotes, ctrls
}

// gathered is gather, in the highest byte.
func gathered(w uint64) uint64 { return w >> 7 * 0x0102040810204080 & (0xff << 56) }

// escapedIn returns the bytes after a backslash that is not escaped itself: those that end
// an odd number of backslashes in a row. A row that begins at an odd byte carries its bits
// over to the byte after it, so that even and odd bytes change places there.
func escapedIn(slashes uint64) uint64 {
	if slashes == 0 {
		return 0
	}
	after := slashes << 1
	odd := slashes &^ (evens | after)
	return (evens ^ (odd+slashes)<<1) & after
}

// checkDense is CheckString from b[i] on, within the string. It returns where the string
// ends, or where whole blocks do, with done false.
func checkDense(b []byte, i int) (end int, done bool) {
	for len(b)-i >= block {
		_, odd, stops := marks((*[block]byte)(b[i:]))
		size, ended := block, stops != 0
		if ended {
			size = bits.TrailingZeros64(stops)
			odd &= 1<<size - 1
		}
		for ; odd != 0; odd &= odd - 1 {
			p := bits.TrailingZeros64(odd)
			if p == block-1 {
				size = p
			} else if escapes[b[i+p+1]] == 0 {
				if end = checkEscape(b, i+p); end < 0 {
					return -1, true
				}
				size, ended = end-i, false
				break
			}
		}
		if ended {
			if b[i+size] == '"' {
				return i + size + 1, true
			}
			return -1, true
		}
		i += size
	}
	return i, false
}

// AppendChecked is CheckString and AppendExact in one: it appends the text of the string
// whose first quote is b[i], and returns the end of the string, or -1. It may read what is after b
// in its memory.
func AppendChecked(dst, b []byte, i int) (text []byte, end int, exact bool) {
	out, at := dst[:cap(dst)], len(dst)
	for i++; ; {
		if len(out)-at < beyond {
			out = slices.Grow(out[:at], max(len(out), 4*beyond))
			out = out[:cap(out)]
		}
		var part *[beyond]byte
		if cap(b)-i >= beyond {
			part = (*[beyond]byte)(b[i : i+beyond])
		} else {
			part = new([beyond]byte) // on the stack
			copy(part[:], b[i:])
			part[len(b)-i] = '"'
		}
		starts, odd, stops := marks((*[block]byte)(part[:]))
		n, size, why := appendBlock((*[beyond]byte)(out[at:]), part, starts, odd, stops)
		switch {
		case i+size >= len(b), why == atStop && b[i+size] != '"':
			return out[:len(dst)], -1, false
		case why == atStop:
			return out[:at+n], i + size + 1, true
		}
		if at, i = at+n, i+size; why == atEscape {
			break
		}
	}
	if end = CheckString(b, i-1); end < 0 {
		return out[:len(dst)], -1, false
	}
	text, exact = AppendExact(out[:at], b[i:end-1])
	return text, end, exact
}

// Why a block was not read any further.
const (
	atEnd    = iota // of it, or before an escape that goes on in the next one
	atStop          // see marks
	atEscape        // that is not of one byte
)

// appendBlock appends the text of a block, whose marks are given, to what is before out. It
// returns how much text that is, and of how much of the block. All numbers are below block,
// or the number of bytes to copy is 0: so indexes need no checks.
func appendBlock(out, b *[beyond]byte, starts, odd, stops uint64) (n, size, why int) {
	size = block
	if stops != 0 {
		size, why = bits.TrailingZeros64(stops), atStop
	}
	for m := odd & (1<<size - 1); m != 0; m &= m - 1 {
		if p := bits.TrailingZeros64(m) & last; p == last || escapes[b[p+1]] == 0 {
			if size, why = p, atEscape; p == last {
				why = atEnd
			}
			break
		}
	}
	starts &= 1<<size - 1
	drop(out, b, starts)
	for m := odd & starts; m != 0; m &= m - 1 {
		p := bits.TrailingZeros64(m) & last
		out[(p-bits.OnesCount64(starts&(1<<p-1)))&last] = escapes[b[p+1]]
	}
	return size - bits.OnesCount64(starts), size, why
}

// dropEach copies a block without the bytes of a mask.
func dropEach(out, b *[beyond]byte, m uint64) {
	n, start := 0, 0
	for ; m != 0; m &= m - 1 {
		p := bits.TrailingZeros64(m) & last
		n = copyWords(out, n, b, start, p-start)
		start = p + 1
	}
	copyWords(out, n, b, start, block-start)
}

// last is the last byte of a block, and masks the number of a byte.
const last = block - 1

// copyWords copies k bytes, and up to 16 after them, and returns where they end.
func copyWords(out *[beyond]byte, n int, from *[beyond]byte, i, k int) int {
	*(*[16]byte)(out[n&last:]) = *(*[16]byte)(from[i&last:])
	if k > 16 {
		copy(out[n+16:n+k], from[i+16:])
	}
	return n + k
}

// appendDense is AppendExact for whole blocks of inner[i:], up to an escape that is not of
// one byte. It returns where it has come in both.
func appendDense(out []byte, at int, inner []byte, i int) (newAt, newI int) {
	for len(inner)-i >= beyond {
		part := (*[beyond]byte)(inner[i:])
		starts, odd, _ := marks((*[block]byte)(part[:]))
		n, size, why := appendBlock((*[beyond]byte)(out[at:]), part, starts, odd, 0)
		if at, i = at+n, i+size; why == atEscape {
			break
		}
	}
	return at, i
}
