package query

import (
	"slices"

	"github.com/rollway/rollway/collector/query/pipe"
)

// defaultPatterns is how many rows patterns gives.
const defaultPatterns = 20

// patternCalls are what patterns tells of each template. The example is the least message, so
// that it does not depend on the order of the search.
var patternCalls = []struct{ name, function, field string }{
	{"count", "count", ""}, {"first", "min", "time"}, {"last", "max", "time"}, {"level", "max", "level"}, {"example", "min", "msg"},
}

// patterns has parse add a column with the template of msg, and stats count by it.
func (p *pipeParser) patterns() error {
	at := p.pos
	msg, err := p.fieldOf("msg", at)
	if err != nil {
		return err
	}
	index := p.column("pattern")
	if index < 0 {
		index = len(p.columns)
		p.columns = append(slices.Clone(p.columns), pipe.Field{Name: "pattern"})
	}
	p.stages = append(p.stages, &pipe.Parse{From: msg, Matcher: pipe.Template{}, Indexes: []int{index}, Width: len(p.columns)})
	pattern := pipe.Field{Name: "pattern", Index: index}
	s := pipe.Stats{Groups: []pipe.Group{{Field: pattern}}}
	columns := []pipe.Field{pattern}
	if p.takeWord("by") {
		if err := p.groups(&s, &columns); err != nil {
			return err
		}
	}
	for _, c := range patternCalls {
		call := pipe.Call{Name: c.name, Function: c.function}
		column := pipe.Field{Name: c.name}
		if c.field != "" {
			f, err := p.fieldOf(c.field, at)
			if err != nil {
				return err
			}
			call.Field, column.Level = &f, f.Level
		}
		s.Calls = append(s.Calls, call)
		if err := p.newColumn(&columns, at, column); err != nil {
			return err
		}
	}
	n := defaultPatterns
	if p.takeWord("limit") {
		if n, err = p.number(); err != nil {
			return err
		}
	}
	p.mostFrequent(&s, columns, n)
	return nil
}
