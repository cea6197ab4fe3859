package jsonwalk

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// Text returns the text of raw, a JSON string with its quotes. The text is a part of raw
// or, if there are escapes, in buf, which is returned grown. What is not a valid escape
// becomes U+FFFD, half of a surrogate pair included. Bytes that are not UTF-8 stay.
func Text(raw, buf []byte) (text, newBuf []byte) {
	inner := raw[1 : len(raw)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return inner, buf
	}
	buf = AppendText(slices.Grow(buf[:0], len(inner)), inner)
	return buf, buf
}

// AppendText appends the text of what is between the quotes of a JSON string; see Text.
func AppendText(dst, inner []byte) []byte {
	dst, _ = AppendExact(dst, inner)
	return dst
}

// AppendExact is AppendText, and reports whether there was text for every escape.
func AppendExact(dst, inner []byte) (text []byte, exact bool) {
	exact = true
	at := len(dst)
	out := slices.Grow(dst, len(inner))
	out = out[:cap(out)]
	for i := 0; i < len(inner); { // of out as many bytes are left as of inner, or more
		if i+8 <= len(inner) {
			w := binary.LittleEndian.Uint64(inner[i:])
			binary.LittleEndian.PutUint64(out[at:], w)
			slash := w ^ ones*'\\'
			marks := (slash - ones) &^ slash & highs
			if marks == 0 {
				i, at = i+8, at+8
				continue
			}
			n := bits.TrailingZeros64(marks) / 8
			i, at = i+n, at+n
		} else if inner[i] != '\\' {
			out[at] = inner[i]
			i, at = i+1, at+1
			continue
		}
		if i+1 < len(inner) {
			if c := escapes[inner[i+1]]; c != 0 {
				out[at] = c
				at, i = appendDense(out, at+1, inner, i+2)
				continue
			}
		}
		r, n := Escape(inner[i:])
		if r == utf8.RuneError {
			given, is := Hex4(inner[min(i+2, len(inner)):])
			exact = exact && is && given == r
			if n < utf8.RuneLen(r) {
				out = slices.Grow(out[:at], len(inner)-i+utf8.UTFMax)
				out = out[:cap(out)]
			}
		}
		at += utf8.EncodeRune(out[at:], r)
		i += n
	}
	return out[:at], exact
}

// escapes are the characters that a byte after a backslash means; 0: none.
var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// Equal reports whether raw is a JSON string of the text s, in which there is no
// backslash.
func Equal(raw []byte, s string) bool {
	if len(raw) < len(`""`) || raw[0] != '"' {
		return false
	}
	inner := raw[1 : len(raw)-1]
	if string(inner) == s {
		return true
	}
	const longest = len(`\u0041`) // escape of one byte
	if len(inner) <= len(s) || len(inner) > longest*len(s) || bytes.IndexByte(inner, '\\') < 0 {
		return false
	}
	var buf [64]byte
	return string(AppendText(buf[:0], inner)) == s
}

// Escape returns the character of the escape that b begins with, and its length.
// Two escapes that are a surrogate pair are one character. What is not valid is
// U+FFFD.
func Escape(b []byte) (r rune, n int) {
	if len(b) < 2 {
		return utf8.RuneError, len(b)
	}
	if c := b[1]; c != 'u' {
		if escapes[c] != 0 {
			return rune(escapes[c]), 2
		}
		return utf8.RuneError, 2
	}
	const length = len(`\u0000`)
	r, ok := Hex4(b[2:])
	if !ok {
		return utf8.RuneError, 2
	}
	if !utf16.IsSurrogate(r) {
		return r, length
	}
	if len(b) > length+1 && b[length] == '\\' && b[length+1] == 'u' {
		if low, ok := Hex4(b[length+2:]); ok {
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				return pair, 2 * length
			}
		}
	}
	return utf8.RuneError, length
}

// Hex4 reads the four hexadecimal digits that b begins with.
func Hex4(b []byte) (r rune, ok bool) {
	if len(b) < 4 {
		return 0, false
	}
	for _, c := range b[:4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
