package jsonwalk

import (
	"bytes"
	"slices"
	"strings"
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
	for {
		i := bytes.IndexByte(inner, '\\')
		if i < 0 {
			return append(dst, inner...)
		}
		dst = append(dst, inner[:i]...)
		r, n := Escape(inner[i:])
		dst = utf8.AppendRune(dst, r)
		inner = inner[i+n:]
	}
}

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
		if i := strings.IndexByte(`bfnrt"\/`, c); i >= 0 {
			return rune("\b\f\n\r\t\"\\/"[i]), 2
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
