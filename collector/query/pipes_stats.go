package query

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rollway/rollway/collector/query/pipe"
	"github.com/rollway/rollway/internal/times"
)

const expectedFunction = "a function: count(), sum(field), avg(field), min(field), max(field), quantile(0.99, field), uniq(field), first(field), last(field), values(field)"

// otherFunctions are names in other languages, and what is meant here.
var otherFunctions = map[string]string{
	"mean": "avg(field)", "average": "avg(field)", "median": "quantile(0.5, field)", "percentile": "quantile(0.99, field)",
	"dc": "uniq(field)", "dcount": "uniq(field)", "distinct": "uniq(field)", "count_distinct": "uniq(field)", "count_uniq": "uniq(field)", "cardinality": "uniq(field)",
	"earliest": "first(field)", "latest": "last(field)", "any": "first(field)", "list": "values(field)", "make_set": "values(field)", "uniq_values": "values(field)", "row_any": "first(field)",
	"by": `a function first, such as count(), and then "by"`,
}

func (p *pipeParser) stats() error {
	var s pipe.Stats
	var calls, columns []pipe.Field
	var at []int // of calls
	err := p.list(func() error {
		at = append(at, p.pos)
		call, err := p.call()
		if err != nil {
			return err
		}
		err = p.as(&call.Name)
		s.Calls = append(s.Calls, call)
		column := pipe.Field{Name: call.Name}
		if slices.Contains([]string{"min", "max", "first", "last"}, call.Function) {
			column.Level = call.Field.Level
		}
		calls = append(calls, column)
		return err
	})
	if err != nil {
		return err
	}
	if p.takeWord("by") {
		err = p.list(func() error {
			start := p.pos
			g, err := p.group()
			if err == nil {
				err = p.as(&g.Name)
			}
			if err != nil {
				return err
			}
			s.Groups = append(s.Groups, g)
			return p.newColumn(&columns, start, g.Field)
		})
	}
	for i := range calls {
		if err == nil {
			err = p.newColumn(&columns, at[i], calls[i])
		}
	}
	p.rows(&s, columns)
	return err
}

// call reads a function and its arguments.
func (p *pipeParser) call() (c pipe.Call, err error) {
	at := p.pos
	c.Function = strings.ToLower(p.bare())
	label := c.Function
	switch {
	case c.Function == "count":
		c.Name = "count"
		if !p.take("(") || p.take(")") {
			return c, nil
		}
	case c.Function == "quantile":
		if err := p.need("("); err != nil {
			return c, err
		}
		if c.P, err = p.fraction(); err != nil {
			return c, err
		}
		if err := p.need(","); err != nil {
			return c, err
		}
		label = "p" + strconv.FormatFloat(100*c.P, 'g', 6, 64)
	case pipe.Functions[c.Function] != nil:
		if err := p.need("("); err != nil {
			return c, err
		}
	default:
		expected := expectedFunction
		if other := otherFunctions[c.Function]; other != "" {
			expected = other
		} else if n := strings.TrimPrefix(c.Function, "p"); n != "" && n != c.Function && strings.Trim(n, "0123456789.") == "" {
			expected = "quantile(0." + strings.ReplaceAll(n, ".", "") + ", field)"
		}
		return c, p.unexpected(at, expected)
	}
	f, err := p.field()
	if err != nil {
		return c, err
	}
	if c.Function == "first" || c.Function == "last" {
		t, err := p.fieldOf("time", at)
		if err != nil {
			return c, err
		}
		c.Time = &t
	}
	c.Field, c.Name = &f, label+"_"+f.Name
	return c, p.need(")")
}

// need takes a mark that has to come.
func (p *pipeParser) need(mark string) error {
	if !p.take(mark) {
		return p.unexpected(p.pos, strconv.Quote(mark))
	}
	return nil
}

// fraction reads a number from 0 to 1.
func (p *pipeParser) fraction() (float64, error) {
	at := p.pos
	f, err := strconv.ParseFloat(p.bare(), 64)
	if err != nil || !(f >= 0 && f <= 1) {
		return 0, p.unexpected(at, "a number from 0 to 1, such as 0.99")
	}
	return f, nil
}

// group reads a field, or steps of time.
func (p *pipeParser) group() (g pipe.Group, err error) {
	at := p.pos
	if p.takeWord("time") && p.take("(") {
		if p.takeWord("auto") {
			g.Most = autoSteps
		} else if g.Step, err = p.step(); err != nil {
			return g, err
		}
		if g.Field, err = p.fieldOf("time", at); err != nil {
			return g, err
		}
		return g, p.need(")")
	}
	p.pos = at
	if word := p.bare(); word != "time" && strings.HasPrefix(p.expr[p.pos:], "(") && slices.Contains([]string{"bin", "bucket", "span", "date_trunc"}, strings.ToLower(word)) {
		return g, p.fail(at, show(word+"("), "time(1h)")
	}
	p.pos = at
	g.Field, err = p.field()
	return g, err
}

// autoSteps is how many steps of time(auto) there are at most.
const autoSteps = 120

// step reads a duration.
func (p *pipeParser) step() (time.Duration, error) {
	at := p.pos
	word := p.bare()
	begin, _, ok := times.ParseMoment(word, p.now)
	step := p.now.Sub(begin)
	if !ok || word == "" || word[0] < '0' || word[0] > '9' || strings.ContainsAny(word, ":-") || !pipe.CheckStep(step) {
		return 0, p.unexpected(at, "a duration: 1h, 5m, 1d, 30s; units w d h m s ms; whole seconds or a part that divides one; or auto")
	}
	return step, nil
}

// defaultTop is how many rows top gives.
const defaultTop = 10

func (p *pipeParser) top() error {
	n := defaultTop
	at := p.pos
	if word := p.bare(); word != "" && strings.Trim(word, "0123456789") == "" {
		p.pos = at
		var err error
		if n, err = p.number(); err != nil {
			return err
		}
	} else {
		p.pos = at
	}
	p.takeWord("by")
	s := pipe.Stats{Calls: []pipe.Call{{Name: "count", Function: "count"}}}
	var columns []pipe.Field
	err := p.groups(&s, &columns)
	if err == nil {
		err = p.newColumn(&columns, at, pipe.Field{Name: "count"})
	}
	p.rows(&s, columns)
	p.mostFrequent(n)
	return err
}

// groups reads names of fields to group by.
func (p *pipeParser) groups(s *pipe.Stats, columns *[]pipe.Field) error {
	return p.list(func() error {
		at := p.pos
		f, err := p.field()
		if err != nil {
			return err
		}
		s.Groups = append(s.Groups, pipe.Group{Field: f})
		return p.newColumn(columns, at, f)
	})
}

// mostFrequent adds a stage that gives the n rows with the greatest count.
func (p *pipeParser) mostFrequent(n int) {
	count := pipe.Field{Name: "count", Index: p.column("count")}
	p.stages = append(p.stages, &pipe.Sort{Keys: []pipe.Key{{Field: count, Descending: true}}, Most: n})
}
