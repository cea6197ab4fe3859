package jsonwalk

import (
	"encoding/binary"
	"math/bits"
)

// SkipString returns the end of the string whose first quote is b[i], and whether
// it has an escape. Most strings are too short for bytes.IndexByte to pay.
func SkipString(b []byte, i int) (end int, escaped bool) {
	for i++; ; {
		for i+8 <= len(b) {
			if marks := quotesAndSlashes(binary.LittleEndian.Uint64(b[i:])); marks != 0 {
				i += bits.TrailingZeros64(marks) / 8
				break
			}
			i += 8
		}
		for i < len(b) && b[i] != '"' && b[i] != '\\' {
			i++
		}
		if i >= len(b) {
			return -1, escaped
		}
		if b[i] == '"' {
			return i + 1, escaped
		}
		escaped = true
		i += 2
	}
}

// SkipValue returns the end of the value that begins at b[i].
func SkipValue(b []byte, i int) (end int) {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		end, _ = SkipString(b, i)
		return end
	case '{', '[':
		return skipNested(b, i)
	}
	return SkipScalar(b, i)
}

// skipNested is SkipValue for an object or array. Strings in it are mostly too short
// for SkipString to pay.
func skipNested(b []byte, i int) (end int) {
	for depth := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			short := min(i+16, len(b))
			for i++; i < short && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
			if i >= short {
				if i, _ = SkipString(b, i-1); i < 0 {
					return -1
				}
				i--
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}

// SkipScalar returns the end of the number, true, false or null that begins at
// b[i].
func SkipScalar(b []byte, i int) (end int) {
	start := i
	for i < len(b) {
		switch b[i] {
		case ',', ':', '}', ']', '{', '[', '"', ' ', '\n', '\r', '\t':
			if i == start {
				return -1
			}
			return i
		}
		i++
	}
	return i
}

// A Walk goes through the members of an object or the elements of an array. Name
// and Value are places in the text, those of the member or element that Next has
// reached. A Name has its quotes.
type Walk struct {
	Name  Span // of a member
	Value Span

	b       []byte
	at      int      // where to go on; -1: the text is not what it should be
	check   *Checker // nil: the text is known to be valid
	members bool
	begun   bool // past the first
}

// Members returns a walk through the object that begins at b[i].
func Members(b []byte, i int) Walk { return Walk{b: b, at: i + 1, members: true} }

// Elements returns a walk through the array that begins at b[i].
func Elements(b []byte, i int) Walk { return Walk{b: b, at: i + 1} }

// Members is the function of that name for text that is checked on the way: the
// walk ends where the text is not valid. MaxDepth counts from the values of the
// members.
func (c *Checker) Members(b []byte, i int) Walk {
	if i >= len(b) || b[i] != '{' {
		return Walk{at: -1}
	}
	return Walk{b: b, at: i + 1, members: true, check: c}
}

// Elements is the function of that name for text that is checked on the way; see
// Checker.Members.
func (c *Checker) Elements(b []byte, i int) Walk {
	if i >= len(b) || b[i] != '[' {
		return Walk{at: -1}
	}
	return Walk{b: b, at: i + 1, check: c}
}

// Next goes to the next member or element, if there is one.
func (w *Walk) Next() bool { return w.NextName() && w.SkipValue() }

// NextName goes to the next member or element and leaves its value to the caller,
// who calls SkipValue or SetEnd. Of Value only Start is set.
func (w *Walk) NextName() bool {
	b, i := w.b, w.at
	if i < 0 {
		return false
	}
	i = SkipSpace(b, i)
	if i < len(b) && b[i] == ',' && w.begun {
		if i = SkipSpace(b, i+1); i < len(b) && (b[i] == '}' || b[i] == ']') {
			return w.fail()
		}
	} else if w.begun || i < len(b) && (b[i] == '}' || b[i] == ']') {
		w.at = i
		return false
	}
	w.begun = true
	if w.members {
		w.Name.Start = i
		if w.check != nil {
			w.Name.End, i = w.check.Name(b, i)
		} else {
			w.Name.End, i = skipName(b, i)
		}
	}
	if i < 0 {
		return w.fail()
	}
	w.Value.Start = i
	return true
}

// SkipValue finds the end of the value that NextName has left to the caller.
func (w *Walk) SkipValue() bool {
	end := 0
	if w.check != nil {
		end = w.check.Value(w.b, w.Value.Start)
	} else {
		end = SkipValue(w.b, w.Value.Start)
	}
	if end < 0 {
		return w.fail()
	}
	w.SetEnd(end)
	return true
}

// SetEnd says where the value ends that NextName has left to the caller.
func (w *Walk) SetEnd(end int) { w.Value.End, w.at = end, end }

// Inside returns a walk through the object that NextName has left to the caller, of a
// text that is known to be valid. Leave ends it.
func (w *Walk) Inside() Walk { return Members(w.b, w.Value.Start) }

// Leave goes on after the object that inner has walked through, perhaps not to its end.
func (w *Walk) Leave(inner *Walk) {
	if end := inner.End(); end >= 0 {
		w.SetEnd(end)
		return
	}
	w.SkipValue()
}

// Kind returns the byte that the value begins with.
func (w *Walk) Kind() byte { return w.b[w.Value.Start] }

// RawName is the name in the text, with its quotes.
func (w *Walk) RawName() []byte { return w.b[w.Name.Start:w.Name.End] }

// RawValue is the value in the text.
func (w *Walk) RawValue() []byte { return w.b[w.Value.Start:w.Value.End] }

// Is reports whether the name is s, in which there is no backslash.
func (w *Walk) Is(s string) bool { return Equal(w.RawName(), s) }

func (w *Walk) fail() bool {
	w.at = -1
	return false
}

// End returns, once Next has returned false, the end of the object or array.
func (w *Walk) End() int {
	closing := byte(']')
	if w.members {
		closing = '}'
	}
	if w.at < 0 || w.at >= len(w.b) || w.b[w.at] != closing {
		return -1
	}
	return w.at + 1
}

// skipName is Checker.Name for text that is known to be valid.
func skipName(b []byte, i int) (end, value int) {
	if i >= len(b) || b[i] != '"' {
		return -1, -1
	}
	if end, _ = SkipString(b, i); end < 0 {
		return -1, -1
	}
	i = SkipSpace(b, end)
	if i >= len(b) || b[i] != ':' {
		return -1, -1
	}
	return end, SkipSpace(b, i+1)
}
