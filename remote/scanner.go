package remote

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// A scanner walks over JSON. It accepts what encoding/json accepts, up to
// maxDepth, and allocates nothing.
type scanner struct {
	p []byte
	i int
}

// object calls member for each member of the object that begins at s.i, as far
// as it can be read and while member returns true; key is without its quotes.
func (s *scanner) object(member func(key, value []byte) bool) bool {
	return s.members(member, 1)
}

func (s *scanner) members(member func(key, value []byte) bool, depth int) bool {
	s.space()
	if !s.byte('{') {
		return false
	}
	if s.space(); s.byte('}') {
		return true
	}
	for {
		s.space()
		begin := s.i
		if !s.str() {
			return false
		}
		key := s.p[begin+1 : s.i-1]
		if s.space(); !s.byte(':') {
			return false
		}
		s.space()
		begin = s.i
		if !s.value(depth) || member != nil && !member(key, s.p[begin:s.i]) {
			return false
		}
		if s.space(); s.byte('}') {
			return true
		}
		if !s.byte(',') {
			return false
		}
	}
}

func (s *scanner) value(depth int) bool {
	if s.i == len(s.p) || depth > maxDepth {
		return false
	}
	switch s.p[s.i] {
	case '"':
		return s.str()
	case '{':
		return s.members(nil, depth+1)
	case '[':
		s.i++
		if s.space(); s.byte(']') {
			return true
		}
		for {
			if s.space(); !s.value(depth + 1) {
				return false
			}
			if s.space(); s.byte(']') {
				return true
			}
			if !s.byte(',') {
				return false
			}
		}
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	default:
		return s.number()
	}
}

func (s *scanner) str() bool {
	if !s.byte('"') {
		return false
	}
	for s.i < len(s.p) {
		c := s.p[s.i]
		s.i++
		switch {
		case c == '"':
			return true
		case c < ' ':
			return false
		case c == '\\':
			if s.i == len(s.p) {
				return false
			}
			c := s.p[s.i]
			s.i++
			if c == 'u' {
				if s.i+4 > len(s.p) {
					return false
				}
				if _, ok := hex4(s.p[s.i:]); !ok {
					return false
				}
				s.i += 4
			} else if bytes.IndexByte([]byte(`"\/bfnrt`), c) < 0 {
				return false
			}
		}
	}
	return false
}

func (s *scanner) number() bool {
	s.byte('-')
	if !s.byte('0') && !s.digits() {
		return false
	}
	if s.byte('.') && !s.digits() {
		return false
	}
	if s.byte('e') || s.byte('E') {
		if !s.byte('+') {
			s.byte('-')
		}
		return s.digits()
	}
	return true
}

func (s *scanner) digits() bool {
	begin := s.i
	for s.i < len(s.p) && '0' <= s.p[s.i] && s.p[s.i] <= '9' {
		s.i++
	}
	return s.i > begin
}

func (s *scanner) word(w string) bool {
	if !bytes.HasPrefix(s.p[s.i:], []byte(w)) {
		return false
	}
	s.i += len(w)
	return true
}

// byte takes c if it is next.
func (s *scanner) byte(c byte) bool {
	if s.i < len(s.p) && s.p[s.i] == c {
		s.i++
		return true
	}
	return false
}

func (s *scanner) space() {
	for s.i < len(s.p) {
		switch s.p[s.i] {
		case ' ', '\t', '\r', '\n':
			s.i++
		default:
			return
		}
	}
}

// appendText appends the text of a JSON string, whose quotes are off. Without
// raw, control bytes stay as their escapes, so that the text is one line.
// Everything that is not valid UTF-8 becomes U+FFFD.
func appendText(dst, s []byte, raw bool) []byte {
	for len(s) > 0 {
		c := s[0]
		switch {
		case c != '\\' && c < utf8.RuneSelf:
			if dst, s = append(dst, c), s[1:]; c == 0x7f && !raw {
				dst = append(dst[:len(dst)-1], `\u007f`...)
			}
		case c != '\\':
			r, n := utf8.DecodeRune(s)
			if 0x80 <= r && r < 0xa0 && !raw { // control characters of C1
				dst = appendHex(dst, r)
			} else {
				dst = utf8.AppendRune(dst, r)
			}
			s = s[n:]
		case len(s) < 2:
			return dst
		case s[1] == 'u':
			r, n := escapedRune(s)
			if (r < ' ' || 0x7f <= r && r < 0xa0) && !raw {
				dst = appendHex(dst, r)
			} else {
				dst = utf8.AppendRune(dst, r)
			}
			s = s[n:]
		default:
			if i := bytes.IndexByte([]byte("bfnrt"), s[1]); i < 0 {
				dst = append(dst, s[1])
			} else if raw {
				dst = append(dst, "\b\f\n\r\t"[i])
			} else {
				dst = append(dst, s[:2]...)
			}
			s = s[2:]
		}
	}
	return dst
}

func appendHex(dst []byte, r rune) []byte {
	dst = append(dst, `\u00`...)
	if r < 0x10 {
		dst = append(dst, '0')
	}
	return strconv.AppendInt(dst, int64(r), 16)
}

// escapedRune reads the \u at the beginning of s, and a second one if both
// make a pair.
func escapedRune(s []byte) (r rune, n int) {
	r, ok := hex4(s[2:])
	if !ok {
		return utf8.RuneError, min(6, len(s))
	}
	if !utf16.IsSurrogate(r) {
		return r, 6
	}
	if len(s) >= 12 && s[6] == '\\' && s[7] == 'u' {
		if low, ok := hex4(s[8:]); ok {
			if both := utf16.DecodeRune(r, low); both != utf8.RuneError {
				return both, 12
			}
		}
	}
	return utf8.RuneError, 6
}

func hex4(p []byte) (r rune, ok bool) {
	if len(p) < 4 {
		return 0, false
	}
	for _, c := range p[:4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
