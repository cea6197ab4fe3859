package query

import (
	"slices"
	"strings"

	"github.com/rollway/rollway/collector/query/pipe"
)

// parse reads a field, if it is not msg, and a pattern or "~" and a regular expression.
func (p *pipeParser) parse() (err error) {
	var s pipe.Parse
	if p.patternNext() {
		s.From, err = p.fieldOf("msg", p.pos)
	} else {
		s.From, err = p.field()
	}
	if err != nil {
		return err
	}
	read, text := pipe.NewPattern, (*parser).quoted
	if p.take("~") {
		read, text = pipe.NewExpression, (*parser).rawQuoted
	}
	at := p.pos
	if !strings.HasPrefix(p.expr[at:], `"`) {
		return p.unexpected(at, `a pattern in quotes, such as "took <ms:number>", or ~ and a regular expression in quotes`)
	}
	written, err := text(&p.parser)
	if err != nil {
		return err
	}
	p.skipSpace()
	names, matcher, err := read(written)
	if err != nil {
		return p.badExpression(at, err)
	}
	s.Matcher = matcher
	columns := slices.Clone(p.columns)
	for i, name := range names {
		switch {
		case slices.Contains(names[:i], name):
			return p.fail(at, "the name "+show(name)+" twice", "different names")
		case len(name) > MaxName || p.lines && resolve(name) != field{fieldAttrs, name}:
			return p.fail(at, "the name "+show(name), "a name that no field of a line has")
		}
		index := p.column(name)
		if index < 0 {
			index = len(columns)
			columns = append(columns, pipe.Field{Name: name})
		}
		columns[index].Level = false
		s.Indexes = append(s.Indexes, index)
	}
	if len(columns) > maxFields {
		return p.fail(at, "more than 64 columns", "at most 64")
	}
	p.columns, s.Width = columns, len(columns)
	p.stages = append(p.stages, &s)
	return nil
}

// patternNext tells whether a pattern comes next, and no field. What is in quotes is a field
// if another string follows.
func (p *pipeParser) patternNext() bool {
	start := p.pos
	defer func() { p.pos = start }()
	switch {
	case strings.HasPrefix(p.expr[start:], "~"):
		return true
	case !strings.HasPrefix(p.expr[start:], `"`):
		return false
	}
	_, err := p.rawQuoted()
	p.skipSpace()
	rest := p.expr[p.pos:]
	return err != nil || !strings.HasPrefix(rest, `"`) && !strings.HasPrefix(rest, "~")
}
