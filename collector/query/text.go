package query

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// compareBytes is bytes.Compare against a string.
func compareBytes(a []byte, b string) int {
	switch {
	case string(a) < b:
		return -1
	case string(a) > b:
		return 1
	}
	return 0
}

// compareText compares the text between a JSON string's quotes with want, byte
// by byte, and tells whether it begins with want. escaped tells that raw may
// hold escapes.
func compareText(raw []byte, escaped bool, want string) (order int, prefix bool) {
	if !escaped {
		return compareBytes(raw, want), len(raw) >= len(want) && string(raw[:len(want)]) == want
	}
	u := unescaper{raw: raw}
	for i := range len(want) {
		c, ok := u.next()
		if !ok || c < want[i] {
			return -1, false
		}
		if c > want[i] {
			return 1, false
		}
	}
	if _, more := u.next(); more {
		return 1, true
	}
	return 0, true
}

// in tells whether the text between a JSON string's quotes contains t.text.
func (t *term) in(raw []byte, escaped bool) bool {
	if !escaped {
		return bytes.Contains(raw, t.needle)
	}
	// Knuth, Morris and Pratt: no byte of the line is looked at twice, however
	// the text and the line repeat themselves.
	u := unescaper{raw: raw}
	n := 0
	for {
		c, ok := u.next()
		if !ok {
			return false
		}
		for n > 0 && t.text[n] != c {
			n = int(t.next[n-1])
		}
		if t.text[n] == c {
			n++
		}
		if n == len(t.text) {
			return true
		}
	}
}

// failureLinks returns, for each prefix of s that ends at i, the length of its
// longest proper prefix that is also its suffix. s has at most MaxLength bytes.
func failureLinks(s string) []uint16 {
	next := make([]uint16, len(s))
	n := 0
	for i := 1; i < len(s); i++ {
		for n > 0 && s[i] != s[n] {
			n = int(next[n-1])
		}
		if s[i] == s[n] {
			n++
		}
		next[i] = uint16(n)
	}
	return next
}

// unescaper gives the decoded bytes of a JSON string's inside, one by one. What
// is no valid escape comes out as U+FFFD, as encoding/json does it.
type unescaper struct {
	raw     []byte
	pending [utf8.UTFMax]byte
	at, end int // pending[at:end] comes next
}

func (u *unescaper) next() (byte, bool) {
	if u.at < u.end {
		c := u.pending[u.at]
		u.at++
		return c, true
	}
	if len(u.raw) == 0 {
		return 0, false
	}
	c := u.raw[0]
	if c != '\\' {
		u.raw = u.raw[1:]
		return c, true
	}
	if len(u.raw) < 2 {
		u.raw = nil
		return u.rune(utf8.RuneError)
	}
	c = u.raw[1]
	if c != 'u' {
		u.raw = u.raw[2:]
		return simpleEscape(c), true
	}
	r, ok := hex4(u.raw[2:])
	if !ok {
		u.raw = u.raw[2:]
		return u.rune(utf8.RuneError)
	}
	u.raw = u.raw[6:]
	if utf16.IsSurrogate(r) {
		low := rune(utf8.RuneError)
		if len(u.raw) >= 6 && u.raw[0] == '\\' && u.raw[1] == 'u' {
			low, _ = hex4(u.raw[2:])
		}
		if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
			u.raw = u.raw[6:]
		}
	}
	return u.rune(r)
}

// rune queues r and returns its first byte.
func (u *unescaper) rune(r rune) (byte, bool) {
	u.at, u.end = 1, utf8.EncodeRune(u.pending[:], r)
	return u.pending[0], true
}

func simpleEscape(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}

// hex4 reads the four digits behind \u.
func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return utf8.RuneError, false
	}
	var r rune
	for _, c := range b[:4] {
		d, ok := hexDigit(c)
		if !ok {
			return utf8.RuneError, false
		}
		r = r<<4 | d
	}
	return r, true
}

func hexDigit(c byte) (rune, bool) {
	switch {
	case isDigit(c):
		return rune(c - '0'), true
	case 'a' <= c && c <= 'f':
		return rune(c-'a') + 10, true
	case 'A' <= c && c <= 'F':
		return rune(c-'A') + 10, true
	}
	return 0, false
}
