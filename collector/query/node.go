package query

import (
	"cmp"
	"log/slog"
	"math"
	"time"
)

type nodeKind uint8

const (
	nodeTerm nodeKind = iota
	nodeNot           // one kid
	nodeAnd           // two kids or more, none of them an and
	nodeOr            // two kids or more, none of them an or
)

// node is one piece of an expression's tree. The parser builds it in normal
// form with join and negate; nothing changes it afterwards.
type node struct {
	kind  nodeKind
	kids  []*node
	term  *term // of a nodeTerm
	index int   // of a nodeTerm, in a compiled query
}

// join makes an and or an or of kids, and flattens: without kids it is nil, one kid is
// itself, and a kid of the same kind gives its own kids.
func join(kind nodeKind, kids []*node) *node {
	var flat []*node
	for _, kid := range kids {
		if kid.kind == kind {
			flat = append(flat, kid.kids...)
		} else {
			flat = append(flat, kid)
		}
	}
	switch len(flat) {
	case 0:
		return nil
	case 1:
		return flat[0]
	}
	return &node{kind: kind, kids: flat}
}

// negate is not n; two negations are none.
func negate(n *node) *node {
	if n.kind == nodeNot {
		return n.kids[0]
	}
	return &node{kind: nodeNot, kids: []*node{n}}
}

func termNode(t *term) *node { return &node{kind: nodeTerm, term: t} }

// timeNode compares the time of a line with t.
func timeNode(o op, t time.Time) *node {
	return termNode(newTimeTerm(o, t))
}

// eval tells whether n holds, given which terms did.
func (n *node) eval(hits *hitSet) bool {
	switch n.kind {
	case nodeTerm:
		return hits.has(n.index)
	case nodeNot:
		return !n.kids[0].eval(hits)
	case nodeAnd:
		for _, kid := range n.kids {
			if !kid.eval(hits) {
				return false
			}
		}
		return true
	default:
		for _, kid := range n.kids {
			if kid.eval(hits) {
				return true
			}
		}
		return false
	}
}

// facts are what is known of a line.
type facts struct {
	level       slog.Level
	first, last time.Time // between which its time is, if timed
	timed       bool
}

// tell tells whether n holds for a line, as far as k tells it.
func (n *node) tell(k facts) (holds, told bool) {
	switch t := n.term; n.kind {
	case nodeTerm:
		if t.isTime && k.timed {
			first, last := k.first.Compare(t.when), k.last.Compare(t.when)
			holds = ordered(t.op, first)
			return holds, first == last || t.op != opEqual && holds == ordered(t.op, last)
		}
		return t.isLevel && ordered(t.op, cmp.Compare(k.level, t.level)), t.isLevel
	case nodeNot:
		holds, told = n.kids[0].tell(k)
		return !holds, told
	}
	decides := n.kind == nodeOr // whichever kid comes to this decides
	told = true
	for _, kid := range n.kids {
		kidHolds, kidTold := kid.tell(k)
		if kidTold && kidHolds == decides {
			return decides, true
		}
		told = told && kidTold
	}
	return !decides, told
}

// requires returns names: a line for which n holds has one of them; nil: it may have
// any. It leaves out time and level, which every line has, and attrs.
func (n *node) requires() []string {
	switch n.kind {
	case nodeTerm:
		t := n.term
		if t.op == opText {
			return nil
		}
		if t.field.path != "" {
			return []string{t.field.path}
		}
		switch t.field.id {
		case fieldTime, fieldLevel, fieldAttrs:
			return nil
		}
		return []string{t.field.id.name()}
	case nodeAnd:
		for _, kid := range n.kids {
			if names := kid.requires(); names != nil {
				return names
			}
		}
	case nodeOr:
		var names []string
		for _, kid := range n.kids {
			more := kid.requires()
			if more == nil {
				return nil
			}
			names = append(names, more...)
		}
		return names
	}
	return nil
}

// timeRange is TimeRange for one node. A negation is taken to say nothing: it
// also holds for a line without a time.
func (n *node) timeRange() (minimum, maximum int64) {
	minimum, maximum = math.MinInt64, math.MaxInt64
	switch n.kind {
	case nodeTerm:
		return n.term.timeRange()
	case nodeAnd:
		for _, kid := range n.kids {
			lo, hi := kid.timeRange()
			minimum, maximum = max(minimum, lo), min(maximum, hi)
		}
	case nodeOr:
		minimum, maximum = math.MaxInt64, math.MinInt64
		for _, kid := range n.kids {
			if lo, hi := kid.timeRange(); lo <= hi {
				minimum, maximum = min(minimum, lo), max(maximum, hi)
			}
		}
	}
	return minimum, maximum
}

// unixNano is t in nanoseconds since 1970, held at the ends of int64.
func unixNano(t time.Time) int64 {
	switch {
	case t.Before(time.Unix(0, math.MinInt64)):
		return math.MinInt64
	case t.After(time.Unix(0, math.MaxInt64)):
		return math.MaxInt64
	}
	return t.UnixNano()
}
