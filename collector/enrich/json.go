package enrich

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"github.com/go-json-experiment/json/jsontext"
)

// What is below walks through canonical lines: valid JSON without white space.

// stringEnd returns the index behind the string whose first quote is b[i]. Most
// strings are too short for a call of bytes.IndexByte to pay.
func stringEnd(b []byte, i int) int {
	for i++; ; i += 2 { // past an escape
		for i+8 <= len(b) {
			marks := quotesAndSlashes(binary.LittleEndian.Uint64(b[i:]))
			if marks != 0 {
				i += bits.TrailingZeros64(marks) / 8
				break
			}
			i += 8
		}
		for b[i] != '"' && b[i] != '\\' {
			i++
		}
		if b[i] == '"' {
			return i + 1
		}
	}
}

// quotesAndSlashes returns a word whose lowest bit set is in the first byte of w
// that is a quote or a backslash, 0 if there is none.
func quotesAndSlashes(w uint64) uint64 {
	const (
		ones  = 0x0101010101010101
		highs = 0x8080808080808080
	)
	quote, slash := w^ones*'"', w^ones*'\\'
	return ((quote-ones)&^quote | (slash-ones)&^slash) & highs
}

// valueEnd returns the index behind the value at b[i].
func valueEnd(b []byte, i int) int {
	switch b[i] {
	case '"':
		return stringEnd(b, i)
	case '{', '[':
		for depth := 0; ; {
			switch b[i] {
			case '"':
				i = stringEnd(b, i)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
			i++
		}
	}
	for b[i] != ',' && b[i] != '}' && b[i] != ']' {
		i++
	}
	return i
}

// members walks through the object that begins at b[at-1].
type members struct {
	b  []byte
	at int // of the next member, or of what closes the object

	name, value, end int // of the member: where they begin, and where the value ends
}

// in returns the members of the object at b[i].
func in(b []byte, i int) members { return members{b: b, at: i + 1} }

func (m *members) next() bool {
	if m.b[m.at] == ',' {
		m.at++
	}
	if m.b[m.at] == '}' {
		return false
	}
	m.name = m.at
	m.value = stringEnd(m.b, m.at) + 1 // behind the colon
	m.end = valueEnd(m.b, m.value)
	m.at = m.end
	return true
}

// nextBut is next, but it does not look for the end of a member that has the
// name, a JSON string as canonical lines write it.
func (m *members) nextBut(name string) bool {
	if m.b[m.at] == ',' && bytes.HasPrefix(m.b[m.at+1:], []byte(name)) {
		m.name = m.at + 1
		m.value = m.name + len(name) + 1
		m.end, m.at = -1, -1
		return true
	}
	return m.next()
}

// rawName is the member's name with its quotes.
func (m *members) rawName() []byte { return m.b[m.name : m.value-1] }

// rawValue is the member's value.
func (m *members) rawValue() []byte { return m.b[m.value:m.end] }

// is reports whether the name is s.
func (m *members) is(s string, buf *[]byte) bool { return string(plain(m.rawName(), buf)) == s }

// plain returns the text of a JSON string, in buf if it has escapes.
func plain(raw []byte, buf *[]byte) []byte {
	inner := raw[1 : len(raw)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return inner
	}
	// The error is about lone surrogates, which become U+FFFD.
	*buf, _ = jsontext.AppendUnquote((*buf)[:0], raw)
	return *buf
}
