// Package query finds lines in the collector's journal: a small expression
// language over canonical lines, and the HTTP endpoints that serve it, as
// GET /api/query and GET /api/tail. docs/QUERY.md is its manual.
package query

import (
	"math"
	"time"
)

// Limits of an expression. Parse refuses what goes beyond them.
const (
	MaxLength = 8 << 10 // bytes
	MaxDepth  = 100     // parentheses and negations inside each other
	MaxTerms  = 512     // comparisons and texts
	MaxScans  = 64      // of them, those that compare with all attributes, or search for a word, each in a pass of its own
	MaxName   = 256     // bytes of a field's name
)

// Query is a parsed expression. It is immutable and safe for concurrent use.
// The zero Query matches every line.
type Query struct {
	root  *node // nil matches every line
	terms int   // how many leaves root has; their indexes are 0 to terms-1

	fixed  [numFields][]check // what is asked of a top-level value as a whole
	inside [numFields][]check // what is asked of a value inside source, error or attrs
	texts  texts              // asked of msg, error and every attribute
	folded texts              // the same, asked of what is folded
	last   fieldID            // no term looks at a field behind this one

	probe  *probe  // of serveExplain; nil: none
	tenant *string // whose lines are looked at; nil: all
	read   []field // what pipes look at in lines
	fields []field // besides its own, the fields of lines that are needed; nil: whole lines

	literal []byte // a matching line without a backslash holds these bytes; nil: unknown
}

// Parse reads an expression. Relative times are taken from the clock now. An
// empty expression matches every line. The error is a *SyntaxError.
func Parse(expr string) (*Query, error) {
	if at := pipeAt(expr); at >= 0 {
		p := parser{expr: expr}
		return nil, p.fail(at, "`|`", "a filter without pipes; a text that contains the character goes in quotes")
	}
	return parseAt(expr, time.Now())
}

// TimeRange returns the first and the last instant, in nanoseconds since 1970
// and both inclusive, that the time of a matching line can have. What the
// expression leaves open is math.MinInt64 or math.MaxInt64, and so are instants
// before 1677 and after 2262. If minimum is above maximum, nothing matches.
func (q *Query) TimeRange() (minimum, maximum int64) {
	if q.root == nil {
		return math.MinInt64, math.MaxInt64
	}
	return q.root.timeRange()
}

// within returns the query that also asks for since <= time < until; nil
// leaves that side open.
func (q *Query) within(since, until *time.Time) *Query {
	var kids []*node
	if q.root != nil {
		kids = append(kids, q.root)
	}
	if since != nil {
		kids = append(kids, timeNode(opGreaterEqual, *since))
	}
	if until != nil {
		kids = append(kids, timeNode(opLess, *until))
	}
	c := compile(join(nodeAnd, kids))
	c.probe, c.tenant, c.read, c.fields = q.probe, q.tenant, q.read, q.fields
	return c
}

// check is one term as the scan of a line looks it up.
type check struct {
	term    *term
	index   int
	path    string // for inside: the dotted path below the field
	must    bool   // the line matches only if the term holds
	mustNot bool   // the line matches only if it does not
}

// compile numbers the terms of a copy of root and sorts them by the field that
// they look at.
func compile(root *node) *Query {
	if root == nil {
		return &Query{}
	}
	q := &Query{}
	q.root = q.number(root, true, false)
	q.texts.gather()
	q.folded.gather()
	return q
}

// texts are searched for in every text of a line.
type texts struct {
	each []check    // one after the other
	many *manyTexts // all together; nil: none
}

func (x *texts) any() bool { return len(x.each) > 0 || x.many != nil }

// gather has texts searched for together if there are many.
func (x *texts) gather() {
	var plain, others []check
	for _, c := range x.each {
		if c.term.word || c.term.pattern != nil {
			others = append(others, c)
		} else {
			plain = append(plain, c)
		}
	}
	if len(plain) > fewTexts {
		x.many, x.each = newManyTexts(plain), others
	}
}

// number copies n. must tells that the line matches only if n holds, mustNot
// that it matches only if n does not hold.
func (q *Query) number(n *node, must, mustNot bool) *node {
	c := &node{kind: n.kind, term: n.term}
	switch n.kind {
	case nodeTerm:
		c.index = q.terms
		q.terms++
		q.place(check{term: n.term, index: c.index, must: must, mustNot: mustNot})
	case nodeNot:
		c.kids = []*node{q.number(n.kids[0], mustNot, must)}
	default:
		keep := n.kind == nodeAnd
		for _, kid := range n.kids {
			c.kids = append(c.kids, q.number(kid, must && keep, mustNot && !keep))
		}
	}
	return c
}

func (q *Query) place(c check) {
	t := c.term
	if c.must {
		if l := t.literals(); len(l) == 1 && len(l[0]) > len(q.literal) {
			q.literal = []byte(l[0])
		}
	}
	if t.op == opText {
		if t.fold {
			q.folded.each = append(q.folded.each, c)
		} else {
			q.texts.each = append(q.texts.each, c)
		}
		q.last = fieldAttrs
		return
	}
	f := t.field
	if f.path == "" {
		q.fixed[f.id] = append(q.fixed[f.id], c)
		q.last = max(q.last, f.id)
		return
	}
	// The term also looks into attrs, and a must is decided only at the end.
	c.must, c.mustNot = false, false
	c.path = f.path
	q.inside[f.id] = append(q.inside[f.id], c)
	q.last = max(q.last, f.id)
	if f.id != fieldAttrs {
		c.path = f.id.name() + "." + f.path
		q.inside[fieldAttrs] = append(q.inside[fieldAttrs], c)
		q.last = fieldAttrs
	}
}
