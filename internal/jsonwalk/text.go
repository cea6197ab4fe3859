package jsonwalk

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// Text returns the text of a JSON string, whose quotes raw has: a part of raw, or,
// if it has escapes, in buf, which it returns grown. What is not a valid escape
// becomes U+FFFD, half of a surrogate pair included. Bytes that are not UTF-8 stay.
func Text(raw, buf []byte) (text, newBuf []byte) {
	inner := raw[1 : len(raw)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return inner, buf
	}
	buf = AppendText(buf[:0], inner)
	return buf, buf
}

// AppendText appends the text that inner, which is between the quotes of a JSON
// string, stands for; see Text.
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
	if len(inner) <= len(s) || bytes.IndexByte(inner, '\\') < 0 {
		return string(inner) == s
	}
	u := Unescape(inner)
	for i := range len(s) {
		if c, ok := u.Next(); !ok || c != s[i] {
			return false
		}
	}
	_, more := u.Next()
	return !more
}

// Escape returns the character of the escape that b begins with, and its length.
// Two escapes that are a surrogate pair are one character. What is not valid is
// U+FFFD.
func Escape(b []byte) (r rune, n int) {
	if len(b) < 2 {
		return utf8.RuneError, len(b)
	}
	switch c := b[1]; c {
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case '"', '\\', '/':
		return rune(c), 2
	case 'u':
	default:
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

// An Unescaper gives the text of a JSON string byte by byte, as Text has it.
type Unescaper struct {
	inner   []byte
	pending [utf8.UTFMax]byte
	at, end int // pending[at:end] comes next
}

// Unescape returns an Unescaper of what is between the quotes of a JSON string.
func Unescape(inner []byte) Unescaper { return Unescaper{inner: inner} }

// Next returns the next byte, if there is one.
func (u *Unescaper) Next() (byte, bool) {
	if u.at < u.end {
		c := u.pending[u.at]
		u.at++
		return c, true
	}
	if len(u.inner) == 0 {
		return 0, false
	}
	c := u.inner[0]
	if c != '\\' {
		u.inner = u.inner[1:]
		return c, true
	}
	r, n := Escape(u.inner)
	u.inner = u.inner[n:]
	u.at, u.end = 1, utf8.EncodeRune(u.pending[:], r)
	return u.pending[0], true
}
