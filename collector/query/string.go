package query

import (
	"fmt"
	"strings"
	"time"

	"github.com/rollway/rollway/internal/jsonline"
	"github.com/rollway/rollway/internal/jsonwalk"
	"github.com/rollway/rollway/internal/levels"
)

// String returns the normal form: relative times made absolute, levels by
// their names, no needless parentheses. It parses to the same query, whose
// String is the same, unless the absolute times took it beyond MaxLength.
func (q *Query) String() string {
	if q.root == nil {
		return ""
	}
	return string(q.root.appendTo(nil))
}

func (n *node) appendTo(b []byte) []byte {
	switch n.kind {
	case nodeTerm:
		return n.term.appendTo(b, false)
	case nodeNot:
		kid := n.kids[0]
		if kid.kind == nodeTerm {
			return kid.term.appendTo(b, true)
		}
		b = append(b, "not ("...)
		b = kid.appendTo(b)
		return append(b, ')')
	}
	for i, kid := range n.kids {
		if i > 0 {
			if n.kind == nodeOr {
				b = append(b, " or"...)
			}
			b = append(b, ' ')
		}
		if n.kind == nodeAnd && kid.kind == nodeOr {
			b = append(b, '(')
			b = kid.appendTo(b)
			b = append(b, ')')
			continue
		}
		b = kid.appendTo(b)
	}
	return b
}

func (t *term) appendTo(b []byte, negated bool) []byte {
	bang := ""
	if negated {
		switch t.op {
		case opText:
			b = append(b, '-')
		case opPresent, opEqual, opPrefix, opContains:
			bang = "!"
		case opIn, opRange, opNetwork:
			bang = " not"
		default:
			b = append(b, "not "...)
		}
	}
	if t.op == opText {
		if t.pattern != nil {
			return fmt.Appendf(b, `re"%s"`, t.text)
		}
		return appendQuoted(t.appendModifiers(b), t.text)
	}
	b = appendWord(b, t.field.name(), isPlainName)
	b = append(b, bang...)
	if t.pattern != nil {
		return fmt.Appendf(b, `=~"%s"`, t.text)
	}
	if t.op >= opIn {
		return t.appendIn(append(b, " in "...))
	}
	b = append(b, [...]string{
		opPresent: "=*", opEqual: "=", opPrefix: "=", opContains: "~",
		opLess: "<", opLessEqual: "<=", opGreater: ">", opGreaterEqual: ">=",
	}[t.op]...)
	if t.op == opPresent {
		return b
	}
	return t.appendValue(b)
}

// appendValue appends what follows the operator.
func (t *term) appendValue(b []byte) []byte {
	switch {
	case t.isTime && t.op == opEqual:
		return append(b, t.text...) // all nine digits: without them it is the whole second
	case t.isTime:
		return t.when.AppendFormat(b, time.RFC3339Nano)
	case t.isLevel:
		return levels.Append(b, t.level)
	case t.isNumber:
		return append(b, t.text...)
	case t.fold || t.word:
		return appendQuoted(t.appendModifiers(b), t.text)
	case t.op == opPrefix:
		b = append(b, t.text...) // as it was: only a bare word is a prefix
		return append(b, '*')
	}
	return appendWord(b, t.text, isPlainValue)
}

// appendModifiers appends the letters before the quotes of a text.
func (t *term) appendModifiers(b []byte) []byte {
	if t.fold {
		b = append(b, 'i')
	}
	if t.word {
		b = append(b, 'w')
	}
	return b
}

func appendWord(b []byte, s string, plain func(string) bool) []byte {
	if plain(s) {
		return append(b, s...)
	}
	return appendQuoted(b, s)
}

func appendQuoted(b []byte, s string) []byte {
	return jsonline.AppendString(b, s)
}

// isPlainName tells whether s needs no quotes as a field's name.
func isPlainName(s string) bool { return isPlain(s, "") }

// isPlainValue tells whether s needs no quotes as a value, and is the same
// value without: a number in quotes is a text.
func isPlainValue(s string) bool {
	_, number := jsonwalk.ParseDecimal([]byte(s))
	return !number && isPlain(s, "/:@+")
}

func isPlain(s, more string) bool {
	switch strings.ToLower(s) {
	case "", "and", "or", "not":
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c|0x20 && c|0x20 <= 'z', jsonwalk.IsDigit(c), c == '_':
		case c == '.' || c == '-' || strings.IndexByte(more, c) >= 0:
			if i == 0 && c == '-' {
				return false
			}
		default:
			return false
		}
	}
	return true
}
