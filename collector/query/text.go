package query

import (
	"bytes"

	"github.com/rollway/rollway/internal/jsonwalk"
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
	u := jsonwalk.Unescape(raw)
	for i := range len(want) {
		c, ok := u.Next()
		if !ok || c < want[i] {
			return -1, false
		}
		if c > want[i] {
			return 1, false
		}
	}
	if _, more := u.Next(); more {
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
	u := jsonwalk.Unescape(raw)
	n := 0
	for {
		c, ok := u.Next()
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
