package encode

import (
	"strconv"
	"unicode"
	"unicode/utf8"
)

// Classes of bytes in a text line.
const (
	classPlain  = iota // printable ASCII that needs no quotes
	classQuoted        // a space, a quote, a backslash, an equals sign
	classEscape        // a control byte
	classWide          // not ASCII
)

var textClass = func() (t [256]uint8) {
	for c := range t {
		switch {
		case c < ' ' || c == 0x7f:
			t[c] = classEscape
		case c >= utf8.RuneSelf:
			t[c] = classWide
		case c == ' ' || c == '"' || c == '\\' || c == '=':
			t[c] = classQuoted
		}
	}
	return t
}()

// needsEscape reports whether r could end a line, move the cursor or reorder text, or
// is not text at all.
func needsEscape(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' || r == 0x7f
	}
	return r == utf8.RuneError || !unicode.IsPrint(r)
}

// isPlain reports whether s can be written as it is, and a reader sees its end.
func isPlain(s string) bool {
	for i := 0; i < len(s); {
		switch textClass[s[i]] {
		case classPlain:
			i++
		case classWide:
			r, size := utf8.DecodeRuneInString(s[i:])
			if needsEscape(r) {
				return false
			}
			i += size
		default:
			return false
		}
	}
	return true
}

// escapeStyle is the form of escapes.
type escapeStyle uint8

const (
	escapeJSON   escapeStyle = iota // between quotes, as in JSON
	escapeGo                        // between quotes, as in Go, with \x1b for ESC
	escapeNested                    // in a JSON text: quotes and backslashes stay
	escapeBare                      // not between quotes, as in Go: quotes and backslashes stay
)

// appendPrintable appends s with escapes for everything that is not printable. A byte
// that is not part of valid UTF-8 becomes U+FFFD.
func appendPrintable(dst []byte, s string, style escapeStyle) []byte {
	start := 0
	for i := 0; i < len(s); {
		r, size := rune(s[i]), 1
		switch textClass[s[i]] {
		case classPlain:
			i++
			continue
		case classQuoted:
			if style >= escapeNested || r == ' ' || r == '=' {
				i++
				continue
			}
		case classWide:
			r, size = utf8.DecodeRuneInString(s[i:])
			if size > 1 && (r == utf8.RuneError || unicode.IsPrint(r)) {
				i += size
				continue
			}
		}
		dst = append(dst, s[start:i]...)
		dst = appendEscape(dst, r, style)
		i += size
		start = i
	}
	return append(dst, s[start:]...)
}

func appendEscape(dst []byte, r rune, style escapeStyle) []byte {
	switch r {
	case utf8.RuneError:
		return append(dst, "\uFFFD"...)
	case '"', '\\':
		return append(dst, '\\', byte(r))
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	}
	if style == escapeJSON || style == escapeNested {
		switch r {
		case '\b':
			return append(dst, `\b`...)
		case '\f':
			return append(dst, `\f`...)
		}
		return appendUnicodeEscape(dst, r)
	}
	mark := len(dst)
	dst = strconv.AppendQuoteRuneToASCII(dst, r) // 'x'
	return append(dst[:mark], dst[mark+1:len(dst)-1]...)
}

// appendUnicodeEscape appends \uXXXX, twice for a rune beyond 16 bits.
func appendUnicodeEscape(dst []byte, r rune) []byte {
	if r > 0xFFFF {
		r -= 0x10000
		dst = appendUnicodeEscape(dst, 0xD800+r>>10)
		r = 0xDC00 + r&0x3FF
	}
	const digits = "0123456789abcdef"
	return append(dst, '\\', 'u', digits[r>>12&0xF], digits[r>>8&0xF], digits[r>>4&0xF], digits[r&0xF])
}

// appendKey appends the key of a text line. The console quotes one that could be
// mistaken for something else. Logfmt has no quotes in keys; a character that a key
// cannot contain becomes _.
func (f *Format) appendKey(dst []byte, prefix, key string) []byte {
	switch {
	case key == "" && prefix == "":
		if f.Kind == Logfmt {
			return append(dst, '_')
		}
		return append(dst, `""`...)
	case isPlain(prefix) && isPlain(key):
		return append(append(dst, prefix...), key...)
	case f.Kind == Logfmt:
		return appendLogfmtKey(appendLogfmtKey(dst, prefix), key)
	}
	dst = append(dst, '"')
	dst = appendPrintable(dst, prefix, escapeGo)
	dst = appendPrintable(dst, key, escapeGo)
	return append(dst, '"')
}

func appendLogfmtKey(dst []byte, key string) []byte {
	for _, r := range key {
		if r == ' ' || r == '=' || r == '"' || needsEscape(r) {
			r = '_'
		}
		dst = utf8.AppendRune(dst, r)
	}
	return dst
}

// appendWord appends s, in quotes if it is empty or contains a space, a quote, a
// backslash, an equals sign or anything that is not printable: in logfmt as a JSON string.
func (f *Format) appendWord(dst []byte, s string) []byte {
	if s != "" && isPlain(s) {
		return append(dst, s...)
	}
	style := escapeGo
	if f.Kind == Logfmt {
		style = escapeJSON
	}
	dst = append(dst, '"')
	dst = appendPrintable(dst, s, style)
	return append(dst, '"')
}
