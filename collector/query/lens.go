package query

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"github.com/rollway/rollway/collector/columns"
)

// A lens reads of blocks of columns what a query needs: the lines that may match, and of them
// the values that it looks at. Other lines come as empty ones, which findIn passes over.
// It may take a line that does not match, as findIn looks at it again, and never leaves out
// one that does.
type lens struct {
	root  *node                  // the query's, if it can exclude lines; nil: all lines
	keep  func(path string) bool // nil: all values
	probe *probe
	block *columns.Block
	own   columns.Block // for blocks that are no tables
	scan  scan          // memory to compare values
	f     *found        // whose turn it is to unpack and look; nil: nobody else has to
	held  int           // values that were looked at

	within columns.Rows // that matter where rows are looked for; nil: all

	// For tables.
	tables *tables // nil: none
	query  *Query
	fields []field                // in tables
	exact  bool                   // times are compared, too
	doubt  bool                   // a term may hold for a row, and it is not sure that it does
	found  map[*term]columns.Rows // rows of the block for which a term holds, if there was no doubt of any
	shapes map[string][]int       // see holes
	ranges map[termDigits]columns.Range
	shape  []byte  // memory
	lines  []byte  // memory
	rest   []int32 // memory
}

// termDigits is for what term.numbers returned.
type termDigits struct {
	term   *term
	digits int
}

// configure makes r read no more than q needs, in turns of f unless that is nil.
func (q *Query) configure(r reader, f *found) {
	r.SetTimeRange(q.TimeRange())
	if q.tenant != nil {
		r.SetTenant(*q.tenant)
	}
	if q.probe != nil {
		r.SetSeen(&q.probe.seen)
	}
	l := newLens(q, f)
	if l.root != nil || l.keep != nil || f != nil {
		r.SetUnpack(l.unpack, l.root != nil || l.keep != nil || q.tenant != nil)
	}
}

// newLens returns a lens for q, in turns of f unless that is nil.
func newLens(q *Query, f *found) *lens {
	l := &lens{probe: q.probe, f: f, query: q, fields: q.lensFields()}
	if q.picks() {
		l.root = q.root
	}
	if q.fields != nil {
		l.keep = q.keeps()
	}
	if f != nil {
		l.own.Pause = func() { _ = f.rest() } // what comes out then is not wanted
		l.scan.rest = f.rest
	}
	return l
}

// unpack appends the lines of a block, whose times are in a range, to dst, or nothing if no line may match.
func (l *lens) unpack(dst, block []byte, size int, times columns.Range) ([]byte, error) {
	if f := l.f; f != nil && f.at != nil {
		f.wait(f.at.Begin)
		defer f.at.End()
	}
	if l.probe != nil {
		defer spend(&l.probe.unpack, time.Now())
	}
	b, t := &l.own, (*rowTable)(nil)
	if l.f != nil && l.f.tables != nil {
		if l.tables = l.f.tables; l.found == nil {
			l.found = make(map[*term]columns.Rows)
		}
		clear(l.found)
		if t = l.tables.next(); t != nil {
			b, t.block.Pause = &t.block, l.own.Pause
		}
	}
	l.block, b.Times = b, times
	if b.Open(block, size) != nil { // it has no columns, or is damaged
		return b.AppendLines(dst, block, size)
	}
	var rows columns.Rows
	if l.root != nil {
		var err error
		if rows, err = l.matching(); err != nil {
			return dst, err
		}
		if rows != nil && rows.Len() == 0 {
			return dst, nil
		}
	}
	if t != nil {
		refs, err := l.tabulate(t, rows, size)
		if err != nil {
			return dst, err
		}
		if refs != nil {
			return l.appendTable(dst, t, rows, refs)
		}
	}
	return b.AppendRows(dst, rows, l.keep)
}

// matching returns the rows of the block that may match; nil: all. Its time is not one of reading.
func (l *lens) matching() (columns.Rows, error) {
	if l.f != nil {
		begin, away := time.Now(), l.f.away
		defer func() { l.f.matching += time.Since(begin) - (l.f.away - away) }()
	}
	return l.rows(l.root, false)
}

// picks reports whether a lens can exclude lines.
func (q *Query) picks() bool { return q.root != nil && q.root.picks() }

// picks reports whether rows can exclude lines by n or its negation: not by times alone.
func (n *node) picks() bool {
	return n.kind == nodeTerm && !n.term.isTime || slices.ContainsFunc(n.kids, (*node).picks)
}

// all reports whether n, an and or an or, needs all of its kids.
func (n *node) all(negated bool) bool { return (n.kind == nodeAnd) != negated }

// rows returns the rows of the block that may match n, or its negation; nil: all.
func (l *lens) rows(n *node, negated bool) (columns.Rows, error) {
	switch {
	case n.kind == nodeTerm && n.term.isTime && !l.exact:
		return nil, nil
	case n.kind == nodeNot:
		return l.rows(n.kids[0], !negated)
	case n.kind == nodeTerm:
		out, err := l.find(n.term, negated)
		if negated {
			out.Invert(l.block)
		}
		return out, err
	}
	all := n.all(negated)
	var out columns.Rows
	within := l.within
	defer func() { l.within = within }()
	for _, kid := range n.kids {
		if all && out != nil && l.tables == nil { // else what is found is used again
			l.within = out
		}
		rows, err := l.rows(kid, negated)
		if err != nil {
			return nil, err
		}
		switch {
		case rows == nil && !all:
			return nil, nil
		case rows == nil:
		case out == nil:
			out = rows
		case all:
			out.Intersect(rows)
		default:
			out.Add(rows)
		}
		if all && out != nil && out.Len() == 0 {
			break
		}
	}
	return out, nil
}

// find returns the rows for which t may hold or, with sure, for which it holds.
func (l *lens) find(t *term, sure bool) (columns.Rows, error) {
	if found, ok := l.found[t]; ok {
		return slices.Clone(found), nil
	}
	out := l.block.Rows()
	l.doubt = false
	if err := l.block.Find(out, l.matcher(t, sure)); err != nil {
		return nil, err
	}
	if l.tables != nil && !l.doubt {
		l.found[t] = slices.Clone(out)
	}
	return out, nil
}

// matcher returns what to look for in a column, by its path: values for which t may hold,
// or, with sure, values for which it holds.
func (l *lens) matcher(t *term, sure bool) func(path string) *columns.Matcher {
	here := &columns.Matcher{
		Any:   anyLiteral(t.literals()),
		Match: func(value []byte) bool { return l.holds(t, value, sure) },

		Within: l.within,
	}
	if t.isTime {
		first, last := t.timeRange()
		here.Times = &columns.Range{First: first, Last: last}
	} else if t.hasNumbers() {
		here.Numbers = func(digits int) columns.Range { return l.numbers(t, digits) }
	}
	return func(path string) *columns.Matcher {
		p := t.place(dotted(path))
		l.doubt = l.doubt || p != elsewhere && (path == "" || p == aboveField || p == belowField && (t.field.path != "" || t.op > opPresent && t.op != opContains))
		switch {
		case p == elsewhere, sure && (path == "" || p == aboveField):
			return nil
		case sure && p == belowField && t.field.path != "": // or it has a key with a point
			return nil
		case p == aboveField:
			return &columns.Matcher{Match: isNested}
		case t.op == opPresent:
			return &columns.Matcher{}
		case p == atField, t.op == opText, t.op == opContains:
			return here
		case sure: // belowField: the value is an object
			return nil
		}
		return &columns.Matcher{}
	}
}

// numbers is t.numbers, remembered.
func (l *lens) numbers(t *term, digits int) columns.Range {
	key := termDigits{t, digits}
	r, ok := l.ranges[key]
	if !ok {
		if r = t.numbers(digits); l.ranges == nil {
			l.ranges = make(map[termDigits]columns.Range)
		}
		l.ranges[key] = r
	}
	return r
}

// anyLiteral returns what a value has that has one of the literals, perhaps with escapes.
func anyLiteral(literals []string) (any [][]byte) {
	for _, l := range literals {
		any = append(any, []byte(l))
	}
	if len(any) > 0 {
		any = append(any, []byte{'\\'})
	}
	return any
}

// holds reports whether t holds for a value as it is in a line. Of some it is not sure.
func (l *lens) holds(t *term, value []byte, sure bool) bool {
	const often = 256
	if l.held++; l.f != nil && l.held%often == 0 {
		_ = l.f.rest()
	}
	if l.f != nil && l.f.quit {
		return false
	}
	if isNested(value) || bytes.IndexByte(value, '\\') >= 0 {
		l.doubt = true
		return !sure
	}
	isString := len(value) > 1 && value[0] == '"'
	if isString {
		value = value[1 : len(value)-1]
	}
	return l.scan.holds(t, value, isString)
}

func isNested(value []byte) bool {
	return len(value) > 0 && (value[0] == '{' || value[0] == '[')
}

// dotted returns the path of a column with points between its keys.
func dotted(path string) string {
	return strings.ReplaceAll(strings.TrimSuffix(path, "\x00"), "\x00", ".")
}

// place says where the value of a column is, compared with the value of a field.
type place uint8

const (
	elsewhere  place = iota
	atField          // it may be the field's, or the line is stored whole
	belowField       // it is inside the field's, which is an object
	aboveField       // the field's may be inside it, if it is an object
)

// place is the place of a column for t. The path is dotted.
func (t *term) place(path string) (p place) {
	if t.op != opText {
		return t.field.place(path)
	}
	for _, id := range []fieldID{fieldMsg, fieldError, fieldAttrs} {
		p = max(p, field{id: id}.place(path))
	}
	return p
}

func (f field) place(path string) place {
	if path == "" {
		return atField
	}
	want := f.id.name()
	if f.path != "" {
		want += "." + f.path
	}
	p := compare(path, want)
	if p == elsewhere && f.id != fieldAttrs && f.path != "" {
		p = compare(path, "attrs."+want)
	}
	return p
}

func compare(path, want string) place {
	switch {
	case path == want:
		return atField
	case strings.HasPrefix(path, want) && path[len(want)] == '.':
		return belowField
	case strings.HasPrefix(want, path) && want[len(path)] == '.':
		return aboveField
	}
	return elsewhere
}

// keeps reports of a path whether q or its pipes look at the values there.
func (q *Query) keeps() func(path string) bool {
	var terms []*term
	var add func(n *node)
	add = func(n *node) {
		if n.kind == nodeTerm {
			terms = append(terms, n.term)
		}
		for _, kid := range n.kids {
			add(kid)
		}
	}
	if q.root != nil {
		add(q.root)
	}
	fields := q.lensFields()
	return func(path string) bool {
		path = dotted(path)
		return slices.ContainsFunc(fields, func(f field) bool { return f.place(path) != elsewhere }) ||
			slices.ContainsFunc(terms, func(t *term) bool { return t.place(path) != elsewhere })
	}
}

// lensFields are the fields of lines that pipes look at, and that of the tenant last, if it matters.
func (q *Query) lensFields() []field {
	if q.tenant == nil {
		return q.fields
	}
	return append(slices.Clip(q.fields), field{id: fieldAttrs, path: "tenant"})
}
