package query

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rollway/rollway/collector/admission"
	"github.com/rollway/rollway/internal/jsonwalk"
)

// Limits of a hint.
const (
	hintLines  = 10_000               // of the newest
	hintShort  = 5 * time.Millisecond // or as long as the search took
	hintLong   = 50 * time.Millisecond
	hintPause  = 64   // lines between two looks at the clock
	hintFields = 16   // of the query
	hintNames  = 1000 // of attributes
	hintName   = 64   // bytes of one
)

// hint looks for why a query finds nothing: case, or a field that the newest lines lack.
type hint struct {
	fields []field // that the query asks for, and no line has so far
	other  *Query  // the query, ignoring case
	terms  []*term // of other, that differ
	found  int     // lines that other matches
	names  map[string]struct{}
}

// hint returns what to tell of a query that has found nothing; "" if it does not know. It
// looks for so long, at most. Of a tenant it looks at the lines alone, and does not tell how many they are.
func (a *API) hint(ctx context.Context, out *rows, q *Query, most time.Duration) string {
	if q.root == nil {
		return ""
	}
	h := hint{names: make(map[string]struct{})}
	h.other = compile(h.ask(q.root))
	if len(h.fields)+len(h.terms) == 0 {
		return ""
	}
	n := a.newestLines(ctx, out, q, time.Now().Add(most), h.take)
	lines := fmt.Sprintf("of the newest %d lines", n)
	if q.tenant != nil {
		lines = "of your newest lines"
	}
	switch {
	case n == 0:
		return ""
	case len(h.fields) > 0:
		name := h.fields[0].name()
		text := lines + " none has the field " + show(name)
		if stored, rare := a.o.ReadAs(name); stored != "" && stored != name && !rare {
			text += "; " + show(name) + " is stored as " + show(stored)
		} else if near := h.nearest(name); near != "" {
			text += "; did you mean " + show(near) + "?"
		}
		return text
	case h.found > 0:
		var terms []byte
		for _, t := range h.terms[:min(len(h.terms), 3)] {
			terms = append(t.appendTo(terms, false), ' ')
		}
		return fmt.Sprintf("case matters; %s %d match %s", lines, h.found, bytes.TrimSpace(terms))
	}
	return ""
}

// ask notes what n asks for and returns n ignoring case, but not in negations.
func (h *hint) ask(n *node) *node {
	if n.kind == nodeNot {
		return n
	}
	c := &node{kind: n.kind, term: n.term}
	for _, kid := range n.kids {
		c.kids = append(c.kids, h.ask(kid))
	}
	if t := n.term; t != nil {
		if t.op != opText && t.field.id > fieldLevel && len(h.fields) < hintFields && !slices.Contains(h.fields, t.field) {
			h.fields = append(h.fields, t.field)
		}
		if c.term = t.ignoringCase(); c.term != t {
			h.terms = append(h.terms, c.term)
		}
	}
	return c
}

// ignoringCase returns the term without regard to case; t if there is no other.
func (t *term) ignoringCase() *term {
	if t.op == opIn {
		var kids []*node
		for _, m := range t.members {
			kids = append(kids, termNode(m.ignoringCase()))
		}
		if slices.EqualFunc(kids, t.members, func(kid *node, m *term) bool { return kid.term == m }) {
			return t
		}
		return anyOf(t.field, kids).term
	}
	c := *t
	switch {
	case t.pattern != nil, t.isTime, t.isLevel, t.isNumber, t.fold:
		return t
	case t.op == opPrefix:
		c.op = opContains // as it can be written
	case t.op != opText && t.op != opEqual && t.op != opContains:
		return t
	}
	if c.modify(written{fold: true, word: t.word}); !c.fold {
		return t
	}
	return &c
}

// newestLines calls take with the newest lines that were searched, and returns how many these
// are.
func (a *API) newestLines(ctx context.Context, out *rows, q *Query, until time.Time, take func(line []byte)) (n int) {
	from := out.from
	for high, size := out.end, hintLines/10; high > from && n < hintLines; size = min(3*size, hintLines-n) {
		low := from
		if high-from > uint64(size) {
			low = high - uint64(size)
		}
		lines, whole := a.linesOf(ctx, &out.turn, q, low, high, until, take)
		if !whole {
			break // what was not looked at is newer
		}
		n, high = n+lines, low
	}
	return n
}

// linesOf calls take with the lines of the offsets [low, high) that q owns, and reports whether it has
// come to their end.
func (a *API) linesOf(ctx context.Context, turn *admission.Turn, q *Query, low, high uint64, until time.Time, take func(line []byte)) (n int, whole bool) {
	r := a.src.newReader(low)
	defer r.Close() // only read from
	if q.tenant != nil {
		r.SetTenant(*q.tenant)
	}
	looked := 0
	for r.Offset() < high {
		frame, ok, err := r.TryNext()
		if err != nil || !ok {
			return n, false
		}
		turn.Begin()
		offset := frame.First
		for line := range bytes.Lines(frame.Lines) {
			if offset >= high {
				break
			}
			if looked > 0 && looked%hintPause == 0 && (ctx.Err() != nil || time.Now().After(until)) {
				turn.End()
				return n, false
			}
			if q.owns(line) {
				take(line)
				n++
			}
			looked++
			offset++
		}
		turn.End()
	}
	return n, true
}

// take looks at a line.
func (h *hint) take(line []byte) {
	h.fields = slices.DeleteFunc(h.fields, func(f field) bool { return f.find(line) != nil })
	if len(h.terms) > 0 && h.other.Match(line) {
		h.found++
	}
	if raw := (field{id: fieldAttrs}).find(line); len(h.fields) > 0 && raw != nil {
		h.name(raw, nil)
	}
}

// name notes the names of values in an object, below a path that is empty or ends in a point.
func (h *hint) name(object, path []byte) {
	if object[0] != '{' {
		return
	}
	w := jsonwalk.Members(object, 0)
	for w.Next() && len(h.names) < hintNames {
		key := jsonwalk.AppendText(path, w.RawName()[1:w.Name.Len()-1])
		if len(key) > hintName {
			continue
		}
		if _, ok := h.names[string(key)]; !ok {
			h.names[string(key)] = struct{}{}
		}
		h.name(w.RawValue(), append(key, '.'))
	}
}

// nearest returns the name that is most like one that no line has; "" if none is near.
func (h *hint) nearest(name string) string {
	if len(name) > hintName {
		return ""
	}
	best, distance := "", min(2, (len(name)-1)/2)+1
	for _, other := range append(slices.Sorted(maps.Keys(h.names)), fieldNames[:]...) {
		d := editDistance(plainName(name), plainName(other))
		if strings.HasSuffix(other, "."+name) || strings.HasSuffix(name, "."+other) {
			d = min(d, 1)
		}
		if other != name && d < distance {
			best, distance = other, d
		}
	}
	return best
}

// plainName leaves out what differs between ways to write one name.
func plainName(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == '.' {
			return -1
		}
		return r
	}, strings.ToLower(name))
}

// editDistance is the distance of Levenshtein: how many bytes to insert, delete or replace
// make a into b.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for k := range row {
		row[k] = k
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for k := range len(b) {
			d := min(row[k], row[k+1]) + 1
			if a[i] == b[k] {
				d = min(d, diagonal)
			} else {
				d = min(d, diagonal+1)
			}
			diagonal, row[k+1] = row[k+1], d
		}
	}
	return row[len(b)]
}
