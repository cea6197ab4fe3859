package query

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rollway/rollway/collector/pool"
	"github.com/rollway/rollway/internal/jsonwalk"
)

// A decoded is memory for the text of a string that has escapes, and for a text in one case.
type decoded struct{ text, folded []byte }

// Memory is for the pool.
func (d *decoded) Memory() pool.Memory { return pool.Memory{d.text, d.folded} }

var decodeds = pool.Pool[*decoded]{New: func() *decoded { return new(decoded) }}

// text returns the text between the quotes of a JSON string, valid until the next call.
func (s *scan) text(raw []byte, escaped bool) []byte {
	if !escaped {
		return raw
	}
	d := s.memory()
	d.text = jsonwalk.AppendText(d.text[:0], raw)
	return d.text
}

// fold returns text in one case, valid until the next call.
func (s *scan) fold(text []byte) []byte {
	d := s.memory()
	d.folded = appendFolded(d.folded[:0], text)
	return d.folded
}

func (s *scan) memory() *decoded {
	if s.decoded == nil {
		s.decoded = decodeds.Get()
	}
	return s.decoded
}

// appendFolded appends text with each character folded by foldRune. It is not longer than
// text. What is not UTF-8 stays as it is.
func appendFolded(dst, text []byte) []byte {
	for i := 0; i < len(text); {
		if c := text[i]; c < utf8.RuneSelf {
			dst = append(dst, upper[c])
			i++
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		if f := foldRune(r); f != r {
			dst = utf8.AppendRune(dst, f)
		} else {
			dst = append(dst, text[i:i+size]...)
		}
		i += size
	}
	return dst
}

// upper has the ASCII characters, small letters as capitals.
var upper = func() (table [utf8.RuneSelf]byte) {
	for i := range table {
		table[i] = byte(unicode.ToUpper(rune(i)))
	}
	return table
}()

// foldRune returns the first of the characters that Unicode's simple case folding takes for
// r; of iota, whose first is a mark, the first letter.
func foldRune(r rune) rune {
	if 0x2e80 <= r && r < 0xa640 { // most of Chinese, Japanese and Korean: no case
		return r
	}
	first := r
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		first = min(first, f)
	}
	if first == '\u0345' {
		return 'Ι'
	}
	return first
}

// caseless returns the longest part of text in which no character has another case.
func caseless(text string) string {
	longest := ""
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == utf8.RuneError || unicode.SimpleFold(r) != r }) {
		if len(part) > len(longest) {
			longest = part
		}
	}
	return longest
}

// containsWord tells whether needle is somewhere in text without a letter, a digit or an
// underscore right before or after it.
func containsWord(text, needle []byte) bool {
	for at := 0; ; {
		i := bytes.Index(text[at:], needle)
		if i < 0 {
			return false
		}
		start, end := at+i, at+i+len(needle)
		before, _ := utf8.DecodeLastRune(text[:start])
		after, _ := utf8.DecodeRune(text[end:])
		if !isWordRune(before) && !isWordRune(after) {
			return true
		}
		_, size := utf8.DecodeRune(text[start:])
		at = start + size
	}
}

func isWordRune(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// values walks the scalars of one value, in order and without recursion.
type values struct {
	scan    *scan
	end     int  // of the value in the line
	at      int  // where to go on
	objects bool // look into objects; otherwise only lists are looked into
}

// next returns the next scalar: the text of a string, or a number, true, false or null.
// Keys are left out. It is valid until the next call.
func (v *values) next() (text []byte, isString, ok bool) {
	line := v.scan.line[:v.end]
	for v.at < len(line) {
		start := v.at
		switch line[start] {
		case '"':
			end, escaped := jsonwalk.SkipString(line, start)
			if end < 0 {
				return nil, false, false
			}
			v.at = end
			if end < len(line) && line[end] == ':' {
				v.at++
				continue
			}
			return v.scan.text(line[start+1:end-1], escaped), true, true
		case '{':
			if !v.objects {
				if v.at = jsonwalk.SkipValue(line, start); v.at < 0 {
					return nil, false, false
				}
				continue
			}
			v.at++
		case '[', ']', '}', ',', ':', ' ', '\n', '\r', '\t':
			v.at++
		default:
			v.at = jsonwalk.SkipScalar(line, start)
			return line[start:v.at], false, true
		}
	}
	return nil, false, false
}
