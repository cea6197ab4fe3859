package enrich

import (
	"bytes"
	"errors"
	"regexp"
	"regexp/syntax"
	"unicode"
	"unicode/utf8"
	"unsafe"
)

// A matcher finds a regular expression in texts, in time linear in them, and
// does not allocate where there is no match. A text that cannot match is mostly
// told by a look at its bytes: a match is at least minimum bytes in a row, all
// of them of alphabet, and holds all of needed, and literal.
type matcher struct {
	re       *regexp.Regexp
	minimum  int
	alphabet [256]bool
	needed   []byte
	literal  string // the longest text that each match holds
	context  bool   // what is before a match matters
}

// newMatcher compiles an expression in the syntax of package regexp. One that
// matches the empty text is refused: it would match everywhere.
func newMatcher(expr string) (*matcher, error) {
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, err
	}
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, err
	}
	m := &matcher{re: re}
	if m.minimum = m.measure(tree.Simplify()); m.minimum == 0 {
		return nil, errEmptyMatch
	}
	return m, nil
}

var errEmptyMatch = errors.New("it matches the empty text, which is everywhere: put + for * or so")

// measure notes what matches of the node are made of and returns the length of
// the shortest.
func (m *matcher) measure(n *syntax.Regexp) int {
	switch n.Op {
	case syntax.OpLiteral:
		length := 0
		for _, r := range n.Rune {
			shortest := m.letter(r)
			if n.Flags&syntax.FoldCase != 0 {
				for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
					shortest = min(shortest, m.letter(other))
				}
			} else if r < utf8.RuneSelf && bytes.IndexByte(m.needed, byte(r)) < 0 {
				m.needed = append(m.needed, byte(r))
			}
			length += shortest
		}
		if text := string(n.Rune); n.Flags&syntax.FoldCase == 0 && len(text) > len(m.literal) {
			m.literal = text
		}
		return length
	case syntax.OpCharClass:
		for i := 0; i < len(n.Rune); i += 2 {
			for r := n.Rune[i]; r <= min(n.Rune[i+1], utf8.RuneSelf-1); r++ {
				m.alphabet[r] = true
			}
			if n.Rune[i+1] >= utf8.RuneSelf {
				m.beyondASCII()
			}
		}
		if len(n.Rune) == 0 { // matches nothing
			return 1
		}
		return utf8.RuneLen(n.Rune[0])
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		for i := range m.alphabet {
			m.alphabet[i] = true
		}
		return 1
	case syntax.OpBeginLine, syntax.OpBeginText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		m.context = true
		return 0
	case syntax.OpCapture, syntax.OpPlus:
		return m.measure(n.Sub[0])
	case syntax.OpConcat:
		length := 0
		for _, sub := range n.Sub {
			length += m.measure(sub)
		}
		return length
	case syntax.OpAlternate:
		shortest := -1
		for _, sub := range n.Sub {
			if length := m.optional(sub); shortest < 0 || length < shortest {
				shortest = length
			}
		}
		return max(shortest, 0)
	case syntax.OpStar, syntax.OpQuest:
		m.optional(n.Sub[0])
		return 0
	case syntax.OpRepeat: // which Simplify has unrolled
		length := m.optional(n.Sub[0])
		return length * n.Min
	case syntax.OpNoMatch:
		return 1
	}
	return 0
}

// optional measures a node that a match may be without.
func (m *matcher) optional(n *syntax.Regexp) int {
	needed, literal := len(m.needed), m.literal
	length := m.measure(n)
	m.needed, m.literal = m.needed[:needed], literal
	return length
}

// letter adds the bytes of r to the alphabet and returns how many they are.
func (m *matcher) letter(r rune) int {
	if r >= utf8.RuneSelf {
		m.beyondASCII()
		return max(utf8.RuneLen(r), 1)
	}
	m.alphabet[r] = true
	return 1
}

func (m *matcher) beyondASCII() {
	for i := utf8.RuneSelf; i < len(m.alphabet); i++ {
		m.alphabet[i] = true
	}
}

// may reports whether text may hold a match.
func (m *matcher) may(text []byte) bool {
	if len(text) < m.minimum {
		return false
	}
	for _, c := range m.needed {
		if bytes.IndexByte(text, c) < 0 {
			return false
		}
	}
	// The run that a match is in covers one of these places.
	for at := m.minimum - 1; at < len(text); {
		start := at
		for start >= 0 && at-start < m.minimum && m.alphabet[text[start]] {
			start--
		}
		if at-start >= m.minimum {
			return true
		}
		at = start + m.minimum
	}
	return false
}

// in reports whether text, in valid UTF-8, holds a match.
func (m *matcher) in(text []byte) bool { return m.may(text) && m.re.Match(text) }

// next returns the first match in text that begins at pos or after it, as
// FindAll would find it after one that ended at pos; start is -1 if there is
// none.
func (m *matcher) next(text []byte, pos int) (start, end int) {
	from := pos
	if pos > 0 && m.context {
		_, size := utf8.DecodeLastRune(text[:pos])
		from -= size // so that what is before pos can be seen
	}
	found := m.re.Find(text[from:])
	if found == nil {
		return -1, -1
	}
	start = offset(text, found)
	if start >= pos && len(found) > 0 {
		return start, start + len(found)
	}
	// It begins in what was only to be seen: the whole search, which allocates.
	for _, span := range m.re.FindAllIndex(text, -1) {
		if span[0] >= pos {
			return span[0], span[1]
		}
	}
	return -1, -1
}

// offset returns where part, which is a part of text, begins in it. Package
// regexp has no way to tell that does not allocate.
func offset(text, part []byte) int {
	return int(uintptr(unsafe.Pointer(unsafe.SliceData(part))) - uintptr(unsafe.Pointer(unsafe.SliceData(text))))
}
