package enrich

import (
	"bytes"

	"github.com/rollway/rollway/internal/jsonwalk"
)

// seen is what is known of a line while rules are applied to it, so that a rule
// with nothing to do in it costs no walk through it. Its zero value knows
// nothing. What it says holds for the line that it is asked about until forget.
type seen struct {
	names   [filterBits / 64]uint64 // a Bloom filter of the first and the last parts of names
	known   bool                    // names is of the line
	escapes escapes
}

// escapes is whether there is a backslash in a line.
type escapes uint8

const (
	escapesUnknown escapes = iota
	noEscapes
	hasEscapes
)

const filterBits = 2048

// What is between the dots of a path is a part. Names may hold dots themselves:
// the last part of a path is that of the name which ends it all the same, and the
// first part that of the name which begins it.
const (
	firstPart = 0x5bd1e995 << 8
	lastPart  = 0x27d4eb2f << 8
)

// forget is for a line that has changed. named tells that there may be names in
// it which were not there.
func (s *seen) forget(named bool) {
	s.escapes = escapesUnknown
	if named {
		s.known = false
	}
}

// escaped reports whether there is a backslash in the line. If not, the text of
// each of its values stands in it as it is.
func (s *seen) escaped(line []byte) bool {
	if s.escapes == escapesUnknown {
		s.escapes = noEscapes
		if bytes.IndexByte(line, '\\') >= 0 {
			s.escapes = hasEscapes
		}
	}
	return s.escapes == hasEscapes
}

// has reports whether one of the bits that a rule needs is that of a name in the
// line. False is certain.
func (s *seen) has(bits []uint16, line []byte, buf *[]byte) bool {
	if !s.known {
		s.look(line, buf)
	}
	for _, bit := range bits {
		if s.names[bit/64]&(1<<(bit%64)) != 0 {
			return true
		}
	}
	return false
}

// look notes the names in the line.
func (s *seen) look(line []byte, buf *[]byte) {
	s.names, s.known = [filterBits / 64]uint64{}, true
	escaped := s.escaped(line)
	for i := 1; i < len(line); {
		if line[i] != '"' {
			next := bytes.IndexByte(line[i:], '"')
			if next < 0 {
				return
			}
			i += next
		}
		end, _ := jsonwalk.SkipString(line, i)
		if end < len(line) && line[end] == ':' {
			name := line[i+1 : end-1]
			if escaped {
				name = plain(line[i:end], buf)
			}
			s.add(name)
		}
		i = end + 1 // behind a colon, a comma or a bracket
	}
}

// add notes a name, and what it may have been before it got a suffix.
func (s *seen) add(name []byte) {
	first, last := name, name
	if dot := bytes.IndexByte(name, '.'); dot >= 0 {
		first, last = name[:dot], name[bytes.LastIndexByte(name, '.')+1:]
	}
	s.set(bitOf(first, firstPart))
	s.set(bitOf(last, lastPart))
	i := len(last)
	for i > 0 && jsonwalk.IsDigit(last[i-1]) {
		i--
	}
	if i > 0 && i < len(last) && last[i-1] == '_' {
		s.set(bitOf(last[:i-1], lastPart))
		if len(first) == len(name) { // else the suffix is not in it
			s.set(bitOf(first[:i-1], firstPart))
		}
	}
}

func (s *seen) set(bit uint16) { s.names[bit/64] |= 1 << (bit % 64) }

// bitOf returns the bit of a part of a name, in letters of any case. Its length
// and four of its bytes are enough to tell most names apart.
func bitOf(part []byte, which uint64) uint16 {
	h := which
	if n := len(part); n > 0 {
		letters := uint32(part[0]) | uint32(part[n/3])<<8 | uint32(part[n/2])<<16 | uint32(part[n-1])<<24
		h ^= uint64(letters|0x20202020) | uint64(n)<<32
	}
	h *= 0x9E3779B97F4A7C15
	h ^= h >> 32
	h *= 0xD6E8FEB86659FD93
	return uint16(h >> (64 - 11)) // of filterBits
}

// bitsOf returns the bits of which a line has one if the keys select something in
// it, none if that cannot be told by names.
func bitsOf(keys []key) (bits []uint16) {
	for i := range keys {
		text := []byte(keys[i].text)
		first, last := text, text
		if dot := bytes.IndexByte(text, '.'); dot >= 0 {
			first, last = text[:dot], text[bytes.LastIndexByte(text, '.')+1:]
		}
		switch {
		case bytes.IndexByte(last, '*') < 0:
			bits = append(bits, bitOf(last, lastPart))
		case bytes.IndexByte(first, '*') < 0:
			bits = append(bits, bitOf(first, firstPart))
		default:
			return nil
		}
	}
	return bits
}

// idle reports whether there is certainly nothing in the line that the rule could
// find or change.
func (r *rule) idle(line []byte, s *seen, buf *[]byte) bool {
	if r.action == only || r.thorough {
		return false
	}
	if len(r.needs) > 0 && !s.has(r.needs, line, buf) {
		return true
	}
	return r.match != nil && !s.escaped(line) && !r.match.mayBeIn(line)
}

// mayBeIn reports whether a text that stands in the line as it is may hold a
// match.
func (m *matcher) mayBeIn(line []byte) bool {
	if m.literal != "" && !bytes.Contains(line, []byte(m.literal)) {
		return false
	}
	return m.may(line)
}
