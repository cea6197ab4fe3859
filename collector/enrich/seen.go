package enrich

import (
	"bytes"
	"log/slog"
	"math/bits"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/internal/jsonwalk"
)

// seen is what is known of a line while rules are applied to it, so that a rule with
// nothing to do there costs no walk through it. Its zero value knows nothing. It is
// about one line, until forget.
type seen struct {
	event   *normalize.Known // what is in the line; nil: look at the line
	level   slog.Level
	filled  uint16                  // slots that the line may have
	names   [filterBits / 64]uint64 // a Bloom filter of the first and the last parts of names
	known   bool                    // names is of the line
	escapes int8                    // there is a backslash in the line: 1; there is none: -1; 0: unknown
}

// forget is for a line that has changed. named tells that there may be names in
// it which were not there.
func (s *seen) forget(named bool) {
	s.event, s.escapes = nil, 0
	if named {
		s.known, s.filled = false, 0
	}
}

// escaped reports whether there is a backslash in the line. If not, the text of
// each of its values is in it as it is.
func (s *seen) escaped(line []byte) bool {
	if s.escapes == 0 {
		s.escapes = -1
		if bytes.IndexByte(line, '\\') >= 0 {
			s.escapes = 1
		}
	}
	return s.escapes > 0
}

// has reports whether the line may have one of the names that are needed. False is
// certain.
func (s *seen) has(n *needs, line []byte, buf *[]byte) bool {
	if n.slots&s.filled != 0 {
		return true
	}
	return s.named(n, line, buf)
}

// named is has for names below the line's own; for all, if the event is not known.
func (s *seen) named(n *needs, line []byte, buf *[]byte) bool {
	if !s.known {
		s.look(line, buf)
	}
	for _, bit := range n.bits {
		if s.names[bit/64]&(1<<(bit%64)) != 0 {
			return true
		}
	}
	return false
}

// look notes the names in the line.
func (s *seen) look(line []byte, buf *[]byte) {
	s.names, s.known = [filterBits / 64]uint64{}, true
	if s.event == nil {
		s.walk(line, line, buf)
		return
	}
	for i := range s.event.Attrs() {
		s.add(s.event.Attr(i))
	}
	for _, value := range s.event.Nested {
		s.walk(line, value.Of(line), buf)
	}
}

// walk notes the names in a part of the line, an object or an array.
func (s *seen) walk(line, part []byte, buf *[]byte) {
	escaped := s.escaped(line)
	for i := 1; i < len(part); {
		if part[i] != '"' {
			next := bytes.IndexByte(part[i:], '"')
			if next < 0 {
				return
			}
			i += next
		}
		end, _ := jsonwalk.SkipString(part, i)
		if end < len(part) && part[end] == ':' {
			name := part[i+1 : end-1]
			if escaped {
				name = plain(part[i:end], buf)
			}
			s.add(name)
		}
		i = end + 1 // past a colon, a comma or a bracket
	}
}

// add notes a name, and what it may have been before it got a suffix.
func (s *seen) add(name []byte) {
	first, last := firstPart(name), lastPart(name)
	h := hashOf(last)
	s.set(lastBit(h))
	if len(first) != len(name) {
		h = hashOf(first)
	}
	s.set(firstBit(h))
	if stem := withoutSuffix(last); len(stem) < len(last) {
		h := hashOf(stem)
		s.set(lastBit(h))
		if len(first) == len(name) { // else the suffix is not in it
			s.set(firstBit(h))
		}
	}
}

func (s *seen) set(bit uint16) { s.names[bit/64%uint16(len(s.names))] |= 1 << (bit % 64) }

// What is between the dots of a path is a part. Names may have dots in them: the
// last part of a path is that of the last name in it all the same, and the first
// part that of the first name.

func firstPart(path []byte) []byte {
	if dot := bytes.IndexByte(path, '.'); dot >= 0 {
		return path[:dot]
	}
	return path
}

func lastPart(path []byte) []byte { return path[bytes.LastIndexByte(path, '.')+1:] }

const filterBits = 2048

// hashOf returns a hash of a part of a name, in letters of any case. The length and
// four of the bytes are enough to tell most names apart.
func hashOf(part []byte) uint64 {
	h := uint64(0x27d4eb2f << 8)
	if n := len(part); n > 0 {
		letters := uint32(part[0]) | uint32(part[n/3])<<8 | uint32(part[n/2])<<16 | uint32(part[n-1])<<24
		h ^= uint64(letters|0x20202020) | uint64(n)<<32
	}
	h *= 0x9E3779B97F4A7C15
	h ^= h >> 32
	return h * 0xD6E8FEB86659FD93
}

// firstBit and lastBit are the bits of a part that is the first or the last of a
// path.
func firstBit(h uint64) uint16 { return uint16(h >> 40 % filterBits) }
func lastBit(h uint64) uint16  { return uint16(h >> 53 % filterBits) }

// needs are names. A line has one of them if there is something for a rule in it.
type needs struct {
	bits  []uint16 // of a part of each; none: names do not tell
	slots uint16   // those of slots: 1<<slot
}

// add adds the bit of a part of a name.
func (n *needs) add(part []byte, bitOf func(hash uint64) uint16) {
	bit := bitOf(hashOf(part))
	n.bits = append(n.bits, bit)
	for slot := normalize.Message; slot <= normalize.Error; slot++ {
		if bitOf(hashOf([]byte(slot.String()))) == bit {
			n.slots |= 1 << slot
		}
	}
}

// needsOf returns what a line needs for the keys to select something in it.
func needsOf(keys []key) (n needs) {
	for i := range keys {
		text := []byte(keys[i].text)
		first, last := firstPart(text), lastPart(text)
		switch {
		case bytes.IndexByte(last, '*') < 0:
			n.add(last, lastBit)
		case bytes.IndexByte(first, '*') < 0:
			n.add(first, firstBit)
		default:
			return needs{}
		}
	}
	return n
}

// idle reports whether there is certainly nothing in the line that the rule could
// find or change.
func (r *rule) idle(line []byte, s *seen, buf *[]byte) bool {
	if r.action == only || r.thorough {
		return false
	}
	if len(r.needs.bits) > 0 && !s.has(&r.needs, line, buf) {
		return true
	}
	if r.match == nil {
		return false
	}
	if len(r.needs.bits) > 0 && s.event != nil && !s.named(&r.needs, line, buf) {
		return !r.mayMatchInSlots(line, s.event)
	}
	return !s.escaped(line) && !r.match.mayBeIn(line)
}

// mayMatchInSlots reports whether a value of the slots that the rule needs may hold a
// match of its expression.
func (r *rule) mayMatchInSlots(line []byte, event *normalize.Known) bool {
	for slots := r.needs.slots & event.Filled(); slots != 0; slots &= slots - 1 {
		value := event.Slot(normalize.Slot(bits.TrailingZeros16(slots))).Of(line)
		if r.match.mayBeIn(value) || bytes.IndexByte(value, '\\') >= 0 {
			return true
		}
	}
	return false
}

// mayBeIn reports whether a text that is in part of a line, as it is, may hold a
// match.
func (m *matcher) mayBeIn(part []byte) bool {
	if m.literal != "" && !bytes.Contains(part, []byte(m.literal)) {
		return false
	}
	return m.may(part)
}
