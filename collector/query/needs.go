package query

import (
	"log/slog"
	"math"

	"github.com/rollway/rollway/internal/jsonwalk"
)

// NeedKind says which members of a [Need] count.
type NeedKind uint8

const (
	NeedNothing NeedKind = iota // any line may match
	NeedAll                     // all of Kids
	NeedOne                     // at least one of Kids; without Kids, no line matches
	NeedText                    // Text somewhere in msg, in error or in a value of attrs
	NeedField                   // a value of Field and Path that compares with Text by Op
	NeedLevel                   // a level of MinLevel to MaxLevel
	NeedTime                    // a time of MinTime to MaxTime
)

// Need is what a canonical line must have to match an expression. It is one node of a
// tree. It may ask for less than the expression does, never for more: a store that finds
// that no line of a block fulfills the Need may leave out the block, and must still call
// [Query.Match] for the lines of other blocks. A store may take any node for NeedNothing.
//
//   - Texts are decoded. A line may have escapes where a Need has the character.
//   - A list fulfills a comparison if one of its elements does, and OpContains also looks
//     into objects. A field that occurs twice fulfills it if one of its values does.
//   - Numbers, true, false and null compare as they are written, unless Number is set.
type Need struct {
	Kind NeedKind
	Kids []Need // of NeedAll and NeedOne

	// Field is the member at the top level of the line, and Path the dotted path in it; an
	// empty Path is the whole member. Keys may have points in them: the path a.b is b
	// inside a, or the key "a.b". If Path is not empty and Field is not attrs, the value may
	// also be the attribute Field.Path.
	Field, Path string
	Op          NeedOp
	Text        string
	Number      bool // Text is a number: other ways to write it are equal

	MinLevel, MaxLevel slog.Level // inclusive
	MinTime, MaxTime   int64      // in nanoseconds since 1970, inclusive; see Query.TimeRange
}

// NeedOp is how a field compares with the text of a [Need].
type NeedOp uint8

const (
	OpPresent      NeedOp = iota // the field is there; there is no text
	OpEqual                      // the value equals the text
	OpPrefix                     // it begins with the text
	OpContains                   // it contains the text
	OpLess                       // it is below the text: as numbers with Number, else strings byte by byte
	OpLessEqual                  // it is the text or below
	OpGreater                    // it is above the text
	OpGreaterEqual               // it is the text or above
)

// Needs returns what a line must have to match. It leaves out the tenant of a token.
func (q *Query) Needs() Need {
	if q.root == nil {
		return Need{}
	}
	return q.root.needs(false)
}

// needs is Needs for n, or for its negation. Only levels say something when they are
// negated: every line has one, and it may lack any other field.
func (n *node) needs(negated bool) Need {
	switch n.kind {
	case nodeTerm:
		return n.term.needs(negated)
	case nodeNot:
		return n.kids[0].needs(!negated)
	}
	all := (n.kind == nodeAnd) != negated
	kids := make([]Need, 0, len(n.kids))
	for _, kid := range n.kids {
		need := kid.needs(negated)
		switch {
		case need.Kind != NeedNothing:
			kids = append(kids, need)
		case !all:
			return Need{}
		}
	}
	switch {
	case len(kids) == 0:
		return Need{}
	case len(kids) == 1:
		return kids[0]
	case all:
		return Need{Kind: NeedAll, Kids: kids}
	}
	return Need{Kind: NeedOne, Kids: kids}
}

// maxNeeds is how many elements of a list are told to a store.
const maxNeeds = 64

func (t *term) needs(negated bool) Need {
	switch {
	case t.isLevel:
		return levelNeeds(t.op, t.level, negated)
	case negated:
		return Need{}
	case t.isTime:
		minimum, maximum := t.timeRange()
		return Need{Kind: NeedTime, MinTime: minimum, MaxTime: maximum}
	case t.pattern != nil:
		return t.oneOf(t.pattern.literals)
	case t.fold:
		return t.oneOf([]string{caseless(t.text)})
	case t.op == opText:
		return Need{Kind: NeedText, Text: t.text}
	case t.op == opNetwork, len(t.members) > maxNeeds:
		return Need{Kind: NeedField, Field: t.field.id.name(), Path: t.field.path}
	case len(t.members) > 0:
		need := Need{Kind: NeedOne}
		if t.op == opRange {
			need.Kind = NeedAll
		}
		for _, m := range t.members {
			need.Kids = append(need.Kids, m.needs(false))
		}
		return need
	}
	return Need{
		Kind: NeedField, Field: t.field.id.name(), Path: t.field.path,
		Op: needOps[t.op], Text: t.text, Number: t.isNumber,
	}
}

// oneOf asks for a value that contains one of the texts, if they are known.
func (t *term) oneOf(texts []string) Need {
	c := term{op: opContains, field: t.field}
	if t.op == opText {
		c.op = opText
	}
	var kids []Need
	for _, c.text = range texts {
		if c.text == "" {
			kids = nil
			break
		}
		kids = append(kids, c.needs(false))
	}
	switch {
	case len(kids) == 1:
		return kids[0]
	case len(kids) > 1:
		return Need{Kind: NeedOne, Kids: kids}
	case t.op == opText:
		return Need{}
	}
	return Need{Kind: NeedField, Field: t.field.id.name(), Path: t.field.path}
}

var needOps = [...]NeedOp{
	opPresent: OpPresent, opEqual: OpEqual, opPrefix: OpPrefix, opContains: OpContains,
	opLess: OpLess, opLessEqual: OpLessEqual, opGreater: OpGreater, opGreaterEqual: OpGreaterEqual,
}

// levelNeeds returns the levels that compare with l by o, or those that do not.
func levelNeeds(o op, l slog.Level, negated bool) Need {
	below := Need{Kind: NeedLevel, MinLevel: math.MinInt, MaxLevel: l - 1}
	same := Need{Kind: NeedLevel, MinLevel: l, MaxLevel: l}
	above := Need{Kind: NeedLevel, MinLevel: l + 1, MaxLevel: math.MaxInt}
	less, equal, more := ordered(o, -1) != negated, ordered(o, 0) != negated, ordered(o, 1) != negated
	switch {
	case less && more:
		return Need{Kind: NeedOne, Kids: []Need{below, above}}
	case less && equal:
		below.MaxLevel = l
		return below
	case more && equal:
		above.MinLevel = l
		return above
	case less:
		return below
	case more:
		return above
	}
	return same
}

// Words returns the words of Text that a value which fulfills n has as whole words, for an
// index of words. A word is a run of ASCII letters, ASCII digits, _ and bytes above 0x7f.
// The first and the last word of a text that is found anywhere may be parts of longer
// words, and are left out.
func (n *Need) Words() []string {
	whole := n.Kind == NeedField && n.Op == OpEqual && !n.Number
	headWhole := whole || n.Kind == NeedField && n.Op == OpPrefix
	if !headWhole && n.Kind != NeedText && (n.Kind != NeedField || n.Op != OpContains) {
		return nil
	}
	var words []string
	for at := 0; at < len(n.Text); at++ {
		start := at
		for at < len(n.Text) && isWordByte(n.Text[at]) {
			at++
		}
		if start < at && (start > 0 || headWhole) && (at < len(n.Text) || whole) {
			words = append(words, n.Text[start:at])
		}
	}
	return words
}

func isWordByte(c byte) bool {
	return c >= 0x80 || c == '_' || 'a' <= c|0x20 && c|0x20 <= 'z' || jsonwalk.IsDigit(c)
}
