package query

import (
	"fmt"
	"slices"
	"time"

	"github.com/rollway/rollway/collector/query/pipe"
	"github.com/rollway/rollway/internal/times"
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
	var since []byte // the time from which patterns are new
	if p.takeWord("new") {
		if since, err = p.newSince(); err != nil {
			return err
		}
	}
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
	p.rows(&s, columns)
	if since != nil {
		first := pipe.Field{Name: "first", Index: p.column("first")}
		p.stages = append(p.stages, &pipe.From{Field: first, At: pipe.Value{Kind: pipe.String, Text: since}})
	}
	p.mostFrequent(n)
	return nil
}

// newSince reads what follows "new", and returns the time as lines have it.
func (p *pipeParser) newSince() ([]byte, error) {
	if !p.takeWord("since") {
		return nil, p.unexpected(p.pos, `"since" and a time, as in: patterns new since 1h`)
	}
	at := p.pos
	word, _, err := p.operand(isWordEnd, times.Expected)
	if err != nil {
		return nil, err
	}
	t, _, ok := times.ParseMoment(word, p.now)
	if !ok {
		return nil, p.fail(at, show(word), times.Expected)
	}
	p.skipSpace()
	return newTimeTerm(opGreaterEqual, t).needle, nil
}

// checkNew reports as an error that a query whose patterns are to be new searches nothing
// before them.
func (req *request) checkNew() error {
	if req.pipes == nil {
		return nil
	}
	for _, s := range req.pipes.Stages {
		if f, ok := s.(*pipe.From); ok {
			t, err := time.Parse(time.RFC3339Nano, string(f.At.Text))
			if minimum, _ := req.query.TimeRange(); err == nil && minimum >= unixNano(t) {
				return fmt.Errorf("parameter q: patterns new since %s needs lines before that time, to compare with; let since be earlier", f.At.Text)
			}
		}
	}
	return nil
}
