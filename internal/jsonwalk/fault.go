package jsonwalk

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// TooDeep is the problem of objects and arrays that are nested deeper than they may be.
const TooDeep = "objects and arrays are nested too deep"

// Fault returns where text that is not valid stops being JSON values in a row, and the
// problem there: what was found and what was expected, or TooDeep. Without a problem the
// text ends inside a value. It takes about as long as a Checker does.
func Fault(b []byte, maxDepth int) (at int, problem string) {
	const (
		value = iota // is to come
		first        // name or element, or the end of what is empty
		name
		colon
		after // a value
	)
	var open []byte // brackets
	for i, next := SkipSpace(b, 0), value; i < len(b); i = SkipSpace(b, i) {
		c, in := b[i], byte(0)
		if len(open) > 0 {
			in = open[len(open)-1]
		}
		switch {
		case in != 0 && c == in+2 && (next == first || next == after): // the bracket that closes it
			open = open[:len(open)-1]
			i, next = i+1, after
			continue
		case next == after && in != 0:
			if c != ',' {
				return i, unexpected(b, i, map[byte]string{'{': "after object value (expecting ',' or '}')", '[': "after array element (expecting ',' or ']')"}[in])
			}
			if i, next = i+1, value; in == '{' {
				next = name
			}
			continue
		case next == colon:
			if c != ':' {
				return i, unexpected(b, i, "after object name (expecting ':')")
			}
			i, next = i+1, value
			continue
		case (next == name || next == first && in == '{') && c != '"':
			return i, unexpected(b, i, `at start of string (expecting '"')`)
		case c == '{' || c == '[':
			if len(open) == maxDepth {
				return i, TooDeep
			}
			open = append(open, c)
			i, next = i+1, first
			continue
		}
		end := (&Checker{}).Value(b, i)
		if end < 0 {
			return scalarFault(b, i)
		}
		if i = end; next == name || next == first && in == '{' {
			next = colon
		} else {
			next = after
		}
	}
	return len(b), ""
}

// scalarFault is Fault for what begins at b[i], which is no valid scalar.
func scalarFault(b []byte, i int) (at int, problem string) {
	for _, word := range [...]string{"true", "false", "null"} {
		for k := 0; b[i] == word[0] && i+k < len(b); k++ {
			if b[i+k] != word[k] {
				return i + k, unexpected(b, i+k, fmt.Sprintf("in literal %s (expecting %q)", word, word[k]))
			}
		}
	}
	switch c := b[i]; {
	case c == 't' || c == 'f' || c == 'n':
		return len(b), ""
	case c != '"' && c != '-' && !IsDigit(c):
		return i, unexpected(b, i, "at start of value")
	case c != '"':
		for i++; i < len(b); i++ {
			if before := b[i-1]; !IsDigit(b[i]) && !IsDigit(before) && (before|0x20 != 'e' || b[i] != '+' && b[i] != '-') {
				return i, unexpected(b, i, "in number (expecting digit)")
			}
		}
		return i, ""
	}
	for i++; i < len(b); i++ {
		if b[i] < ' ' {
			return i, unexpected(b, i, "in string (expecting non-control character)")
		}
		if b[i] != '\\' {
			continue
		}
		escape := b[i:min(len(b), i+len(`\u0000`))]
		end := checkEscape(b, i)
		switch digits := bytes.TrimPrefix(escape[1:], []byte("u")); {
		case end >= 0:
			i = end - 1
		case len(escape) == 1, escape[1] == 'u' && i+len(escape) == len(b) && len(bytes.Trim(digits, "0123456789abcdefABCDEF")) == 0:
			return len(b), ""
		default:
			return i, fmt.Sprintf("invalid escape sequence %q in string", escape[:2])
		}
	}
	return len(b), ""
}

func unexpected(b []byte, i int, where string) string {
	r, size := utf8.DecodeRune(b[i:])
	found := strconv.QuoteRune(r)
	if r == utf8.RuneError && size == 1 {
		found = fmt.Sprintf(`'\x%02x'`, b[i])
	}
	return "invalid character " + found + " " + where
}
