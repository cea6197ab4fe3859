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
	beyond = block + 8 // a block and what a word may read after it
	sevens = 0x7f7f7f7f7f7f7f7f
)

// gather moves the highest bits of the bytes of w together.
func gather(w uint64) uint64 { return w >> 7 * 0x0102040810204080 >> 56 }

// zeros has the highest bit of each byte of w that is zero.
func zeros(w uint64) uint64 { return ^(w&sevens + sevens | w | sevens) }

// slashes returns where backslashes are in a block.
func slashes(b *[block]byte) uint64 {
	const c = ones * '\\'
	return gather(zeros(word(b, 0)^c)) | gather(zeros(word(b, 8)^c))<<8 | gather(zeros(word(b, 16)^c))<<16 | gather(zeros(word(b, 24)^c))<<24 |
		gather(zeros(word(b, 32)^c))<<32 | gather(zeros(word(b, 40)^c))<<40 | gather(zeros(word(b, 48)^c))<<48 | gather(zeros(word(b, 56)^c))<<56
}

// stops returns where quotes and control characters are in a block.
func stops(b *[block]byte) uint64 {
	return gather(stop(word(b, 0))) | gather(stop(word(b, 8)))<<8 | gather(stop(word(b, 16)))<<16 | gather(stop(word(b, 24)))<<24 |
		gather(stop(word(b, 32)))<<32 | gather(stop(word(b, 40)))<<40 | gather(stop(word(b, 48)))<<48 | gather(stop(word(b, 56)))<<56
}

func word(b *[block]byte, n int) uint64 { return binary.LittleEndian.Uint64(b[n : n+8]) }

// stop has the highest bit of each byte of w that is a quote or a control character.
func stop(w uint64) uint64 {
	return zeros(w^ones*'"') | ^(w&sevens+ones*(0x80-' ')|w)&highs
}

// checkDense is CheckString from b[i] on, within the string. It returns where the string
// ends, or where whole blocks do, with done false.
func checkDense(b []byte, i int) (end int, done bool) {
	for len(b)-i >= block {
		part := (*[block]byte)(b[i:])
		stop, size := stops(part), block
		for m := slashes(part); m != 0; {
			p := bits.TrailingZeros64(m)
			if stop&(1<<p-1) != 0 {
				break
			}
			if p == block-1 {
				size = p
				break
			}
			if escapes[b[i+p+1]] == 0 {
				if end = checkEscape(b, i+p); end < 0 {
					return -1, true
				}
				size, stop = end-i, 0
				break
			}
			m &^= 3 << p
			stop &^= 3 << p
		}
		if p := bits.TrailingZeros64(stop); p < size && stop != 0 {
			if b[i+p] == '"' {
				return i + p + 1, true
			}
			return -1, true
		}
		i += size
	}
	return i, false
}

// AppendChecked is CheckString and AppendExact in one: it appends the text of the string
// whose first quote is b[i], and returns the end of the string, or -1.
func AppendChecked(dst, b []byte, i int) (text []byte, end int, exact bool) {
	out, at := dst[:cap(dst)], len(dst)
	var last [2 * block]byte
	for i++; ; {
		if len(out)-at < beyond {
			out = slices.Grow(out[:at], max(len(out), 4*beyond))
			out = out[:cap(out)]
		}
		from, k := b, i
		if len(b)-i < beyond { // with quotes after it
			for n := copy(last[:], b[i:]); n < beyond; n++ {
				last[n] = '"'
			}
			from, k = last[:], 0
		}
		part := (*[block]byte)(from[k:])
		newAt, size, m, ended := appendBlock(out, at, from, k, slashes(part), stops(part))
		switch {
		case ended && i+size < len(b) && b[i+size] == '"':
			return out[:newAt], i + size + 1, true
		case ended:
			return out[:len(dst)], -1, false
		case i+size >= len(b):
			return out[:len(dst)], -1, false
		}
		at, i = newAt, i+size
		if m != 0 && size < block-1 {
			break
		}
	}
	if end = CheckString(b, i-1); end < 0 {
		return out[:len(dst)], -1, false
	}
	text, exact = AppendExact(out[:at], b[i:end-1])
	return text, end, exact
}

// appendBlock appends the text of a block of b, with escapes of one byte where m has them,
// up to a stop, another escape or the last byte. It returns where it has come in out, how
// much of the block that is, what is left of m, and whether it is at a stop. A byte that is
// escaped is not a stop.
func appendBlock(out []byte, at int, b []byte, i int, m, stop uint64) (newAt, size int, rest uint64, ended bool) {
	start, size := 0, block
	for m != 0 {
		p := bits.TrailingZeros64(m)
		if stop&(1<<p-1) != 0 {
			break
		}
		c := escapes[b[i+p+1]]
		if p == block-1 || c == 0 {
			size = p
			break
		}
		at = copyWords(out, at, b, i+start, p-start)
		out[at] = c
		at, start = at+1, p+2
		m &^= 3 << p
		stop &^= 3 << p
	}
	if p := bits.TrailingZeros64(stop); p < size {
		size, ended = p, true
	}
	return copyWords(out, at, b, i+start, size-start), size, m, ended
}

// appendDense is AppendExact for whole blocks of inner[i:], up to an escape that is not of
// one byte. It returns where it has come in both.
func appendDense(out []byte, at int, inner []byte, i int) (newAt, newI int) {
	for len(inner)-i >= beyond {
		var size int
		var m uint64
		at, size, m, _ = appendBlock(out, at, inner, i, slashes((*[block]byte)(inner[i:])), 0)
		if i += size; m != 0 && size < block-1 {
			break
		}
	}
	return at, i
}

// copyWords copies n bytes, and up to eight after them, and returns where they end.
func copyWords(out []byte, at int, from []byte, i, n int) int {
	binary.LittleEndian.PutUint64(out[at:], binary.LittleEndian.Uint64(from[i:]))
	if n > 8 {
		copy(out[at+8:at+n], from[i+8:])
	}
	return at + n
}
