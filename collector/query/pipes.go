package query

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rollway/rollway/collector/query/pipe"
)

// The grammar of pipes, as docs/QUERY.md has it:
//
//	query  = filter { "|" pipe } .
//	pipe   = stats | top | patterns | fields | sort | limit | parse .
//	stats  = "stats" call { "," call } [ "by" group { "," group } ] .
//	call   = ( "count" [ "(" [ name ] ")" ] | function "(" name ")" | "quantile" "(" number "," name ")" ) [ "as" name ] .
//	group  = ( "time" "(" ( duration | "auto" ) ")" | name ) [ "as" name ] .
//	top    = "top" [ number ] [ "by" ] name { "," name } .
//	patterns = "patterns" [ "new" "since" time ] [ "by" name { "," name } ] [ "limit" number ] .
//	fields = "fields" name [ "as" name ] { "," name [ "as" name ] } .
//	sort   = "sort" [ "by" ] [ "-" ] name [ "asc" | "desc" ] { "," [ "-" ] name [ "asc" | "desc" ] } .
//	limit  = "limit" number .
//	parse  = "parse" [ name ] ( quoted | "~" quoted ) .

// Limits of pipes.
const (
	maxPipes  = 16
	maxFields = 64 // in one list of a pipe
)

// pipeParser reads pipes. It knows which columns the rows have at its place.
type pipeParser struct {
	parser
	lines   bool    // rows have lines
	read    []field // of lines
	columns []pipe.Field
	stages  []pipe.Stage
}

// pipeParsers read what follows the name of a pipe.
var pipeParsers map[string]func(*pipeParser) error

func init() {
	pipeParsers = map[string]func(*pipeParser) error{
		"stats":    (*pipeParser).stats,
		"patterns": (*pipeParser).patterns,
		"top":      (*pipeParser).top,
		"fields":   (*pipeParser).fields,
		"sort":     (*pipeParser).sort,
		"limit":    (*pipeParser).limit,
		"parse":    (*pipeParser).parse,
	}
}

// otherPipes are names in other languages, and what is meant here.
var otherPipes = map[string]string{
	"head": "limit 10", "take": "limit 10",
	"summarize": "stats", "aggregate": "stats", "count": "stats count()", "group": "stats count() by",
	"timechart": "stats count() by time(1h)", "uniq": "stats count() by", "distinct": "stats count() by", "dedup": "stats count() by",
	"rex": `parse ~"…"`, "regexp": `parse ~"…"`, "regex": `parse ~"…"`, "pattern": `parse "…" or patterns`, "cluster": "patterns", "extract": `parse "…"`,
	"order": "sort", "project": "fields", "table": "fields", "keep": "fields",
	"where": "the comparison before the first |", "filter": "the comparison before the first |", "search": "the text before the first |",
}

// parsePiped reads a filter and its pipes, if there are any.
func parsePiped(expr string, now time.Time) (*Query, *pipe.Pipeline, error) {
	at := pipeAt(expr)
	if at < 0 || len(expr) > MaxLength || !utf8.ValidString(expr) {
		q, err := parseAt(expr, now)
		return q, nil, err
	}
	q, err := parseAt(expr[:at], now)
	if syntax := (*SyntaxError)(nil); errors.As(err, &syntax) {
		syntax.Expr = expr
		if syntax.Found == endOfQuery {
			syntax.Found = "`|`"
		}
	}
	if err != nil {
		return nil, nil, err
	}
	p := &pipeParser{parser: parser{expr: expr, pos: at, now: now}, lines: true}
	pipes, err := p.rest(q)
	return q, pipes, err
}

// withPipes returns p, which may be nil, with more pipes after it, as they are written in expr.
// Both follow the filter q.
func withPipes(q *Query, p *pipe.Pipeline, expr string, now time.Time) (*pipe.Pipeline, error) {
	x := &pipeParser{parser: parser{expr: expr, now: now}, lines: true, read: slices.Clip(q.read)}
	if p != nil {
		x.stages, x.lines, x.columns = slices.Clip(p.Stages), p.Lines, p.Columns
	}
	return x.rest(q)
}

// rest reads pipes up to the end, and has q read what they need.
func (p *pipeParser) rest(q *Query) (*pipe.Pipeline, error) {
	for p.pos < len(p.expr) {
		if err := p.pipe(); err != nil {
			return nil, err
		}
	}
	if q.read = p.read; !p.lines {
		q.fields = append([]field{}, p.read...)
	}
	return &pipe.Pipeline{Stages: p.stages, Lines: p.lines, Columns: p.columns}, nil
}

// Piped reports whether expr has pipes after its filter.
func Piped(expr string) bool { return pipeAt(expr) >= 0 }

// Grouped reports whether expr has a pipe that makes rows of groups, all at the end. What
// cannot be parsed has none.
func Grouped(expr string) bool {
	_, p, err := parsePiped(expr, time.Now())
	return err == nil && p != nil && slices.ContainsFunc(p.Stages, func(s pipe.Stage) bool {
		_, stats := s.(*pipe.Stats)
		return stats
	})
}

// pipeAt returns where the first "|" is that is not in quotes, or -1.
func pipeAt(expr string) int {
	quoted := false
	for i := 0; i < len(expr); i++ {
		switch c := expr[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && quoted:
			i++
		case c == '|' && !quoted:
			return i
		}
	}
	return -1
}

// pipe reads a "|" and what follows it up to the next.
func (p *pipeParser) pipe() error {
	p.pos++
	p.skipSpace()
	at := p.pos
	if len(p.stages) >= maxPipes {
		return p.fail(at, fmt.Sprintf("pipe %d", len(p.stages)+1), fmt.Sprintf("at most %d", maxPipes))
	}
	name := p.bare()
	read := pipeParsers[strings.ToLower(name)]
	if read == nil {
		expected := "a pipe: " + strings.Join(slices.Sorted(maps.Keys(pipeParsers)), ", ")
		if other := otherPipes[strings.ToLower(name)]; other != "" {
			expected = other
		}
		return p.unexpected(at, expected+`; to find a text that contains "|", quote it`)
	}
	if err := read(p); err != nil {
		return err
	}
	if p.pos < len(p.expr) && p.expr[p.pos] != '|' {
		return p.unexpected(p.pos, `"|" or `+endOfQuery)
	}
	return nil
}

// isWordEnd tells whether a bare word of a pipe ends before s.
func isWordEnd(s string) bool { return isNameEnd(s) || s[0] == ',' || s[0] == '|' }

// bare reads a bare word, which may be empty, and the space after it.
func (p *pipeParser) bare() string {
	start := p.pos
	for p.pos < len(p.expr) && !isWordEnd(p.expr[p.pos:]) {
		p.pos++
	}
	word := p.expr[start:p.pos]
	p.skipSpace()
	return word
}

// takeWord takes a word, in lower or upper case, if it is next.
func (p *pipeParser) takeWord(word string) bool {
	start := p.pos
	if w := p.bare(); w == word || w == strings.ToUpper(word) {
		return true
	}
	p.pos = start
	return false
}

// list reads items between commas, with or without parentheses around them.
func (p *pipeParser) list(item func() error) error {
	open := p.take("(")
	for n := 1; ; n++ {
		if n > maxFields {
			return p.fail(p.pos, fmt.Sprintf("field %d", n), fmt.Sprintf("at most %d", maxFields))
		}
		if err := item(); err != nil {
			return err
		}
		if !p.take(",") {
			break
		}
	}
	if open && !p.take(")") {
		return p.unexpected(p.pos, `"," or ")"`)
	}
	return nil
}

// name reads a name, bare or in quotes.
func (p *pipeParser) name(expected string) (string, error) {
	at := p.pos
	name, _, err := p.operand(isWordEnd, expected)
	if err != nil {
		return "", err
	}
	switch {
	case name == "":
		return "", p.fail(at, `""`, expected)
	case len(name) > MaxName:
		return "", p.fail(at, fmt.Sprintf("a name of %d bytes", len(name)), fmt.Sprintf("at most %d", MaxName))
	}
	p.skipSpace()
	return name, nil
}

// field reads the name of a field of the rows.
func (p *pipeParser) field() (pipe.Field, error) {
	at := p.pos
	name, err := p.name("the name of a field")
	if err != nil {
		return pipe.Field{}, err
	}
	return p.fieldOf(name, at)
}

// fieldOf is field for a name that was written at the byte offset at.
func (p *pipeParser) fieldOf(name string, at int) (pipe.Field, error) {
	f := pipe.Field{Name: name, Index: p.column(name)}
	if f.Index >= 0 {
		f.Level = p.columns[f.Index].Level
	}
	switch {
	case p.lines:
		r := resolve(name)
		if f.Cells = slices.Index(p.read, r); f.Cells < 0 {
			f.Cells = len(p.read)
			p.read = append(p.read, r)
		}
		f.Name, f.Find = r.name(), r.find
		f.Level = f.Level || r == field{id: fieldLevel}
	case f.Index < 0:
		return f, p.fail(at, show(name), "a column of these rows: "+p.columnNames())
	}
	return f, nil
}

func (p *pipeParser) column(name string) int {
	return slices.IndexFunc(p.columns, func(f pipe.Field) bool { return f.Name == name })
}

func (p *pipeParser) columnNames() string {
	var names []string
	for _, f := range p.columns {
		names = append(names, f.Name)
	}
	return strings.Join(names, ", ")
}

// as reads "as" and a name, if they are next.
func (p *pipeParser) as(name *string) (err error) {
	if p.takeWord("as") {
		*name, err = p.name("a name")
	}
	return err
}

// newColumn adds to columns one that was written at the byte offset at.
func (p *pipeParser) newColumn(columns *[]pipe.Field, at int, f pipe.Field) error {
	for _, other := range *columns {
		if other.Name == f.Name {
			return p.fail(at, "a second column "+show(f.Name), `another name for one of them, by "as"`)
		}
	}
	*columns = append(*columns, pipe.Field{Name: f.Name, Level: f.Level})
	return nil
}

// rows makes a stage whose rows have nothing but columns.
func (p *pipeParser) rows(s pipe.Stage, columns []pipe.Field) {
	p.stages = append(p.stages, s)
	p.lines, p.columns = false, columns
}

func (p *pipeParser) fields() error {
	var s pipe.Fields
	var columns []pipe.Field
	err := p.list(func() error {
		at := p.pos
		f, err := p.field()
		if err != nil {
			return err
		}
		s.Fields = append(s.Fields, f)
		if err := p.as(&f.Name); err != nil {
			return err
		}
		return p.newColumn(&columns, at, f)
	})
	p.rows(&s, columns)
	return err
}

func (p *pipeParser) sort() error {
	var s pipe.Sort
	p.takeWord("by")
	err := p.list(func() (err error) {
		key := pipe.Key{Descending: p.take("-")}
		if key.Field, err = p.field(); err != nil {
			return err
		}
		if !p.takeWord("asc") && p.takeWord("desc") {
			key.Descending = true
		}
		s.Keys = append(s.Keys, key)
		return nil
	})
	p.stages = append(p.stages, &s)
	return err
}

func (p *pipeParser) limit() error {
	n, err := p.number()
	if err != nil {
		return err
	}
	p.stages = limited(p.stages, n)
	return nil
}

// limited has stages give n rows at most.
func limited(stages []pipe.Stage, n int) []pipe.Stage {
	if len(stages) > 0 {
		if s, ok := stages[len(stages)-1].(*pipe.Sort); ok {
			most := n
			if s.Most > 0 {
				most = min(n, s.Most)
			}
			return append(stages[:len(stages)-1], &pipe.Sort{Keys: s.Keys, Most: most})
		}
	}
	return append(stages, pipe.Limit{N: n})
}

// number reads a whole number from 1.
func (p *pipeParser) number() (int, error) {
	at := p.pos
	n, err := strconv.Atoi(p.bare())
	if err != nil || n < 1 {
		return 0, p.unexpected(at, "a number of rows, from 1")
	}
	return n, nil
}
