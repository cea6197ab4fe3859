package pipe

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/rollway/rollway/collector/template"
	"github.com/rollway/rollway/internal/jsonwalk"
)

// Parse adds columns with what it finds in a text. A text that does not match adds none.
type Parse struct {
	From    Field
	Matcher Matcher
	Indexes []int // in Row.Values, of each of the matcher's captures
	Width   int   // how many columns the rows have then
}

// A Matcher finds captures in a text.
type Matcher interface {
	find(text []byte, captures []Value) bool
}

// maxParsed is how many bytes of a text are looked at. It bounds the time between two
// checks for the end of the query.
const maxParsed = 16 << 10

type parseStep struct {
	*Parse
	next     step
	out      Row
	captures []Value
}

func (p *Parse) start(_ *Env, next step) step {
	return &parseStep{Parse: p, next: next, captures: make([]Value, len(p.Indexes))}
}

func (s *parseStep) row(r *Row) error {
	v := s.From.of(r)
	s.out.Line = r.Line
	s.out.Values = append(s.out.Values[:0], r.Values...)
	for len(s.out.Values) < s.Width {
		s.out.Values = append(s.out.Values, Value{})
	}
	if v.Kind != Absent && s.Matcher.find(v.Text[:min(len(v.Text), maxParsed)], s.captures) {
		for i, at := range s.Indexes {
			if s.captures[i].Kind != Absent {
				s.out.Values[at] = s.captures[i]
			}
		}
	}
	return s.next.row(&s.out)
}

func (s *parseStep) end() error { return s.next.end() }

// Template is a Matcher with one capture: the template of the text.
type Template struct{}

func (Template) find(text []byte, captures []Value) bool {
	captures[0] = Value{String, template.Append(captures[0].Text[:0], text)}
	return true
}

// A pattern is texts with captures between them.
type pattern struct {
	before   []string // the text before each capture
	number   []bool   // the capture is a number
	captures []int    // which capture it is; -1: left out
	after    string
}

// placeholder is a capture in a pattern.
var placeholder = regexp.MustCompile(`<([\p{L}_@][\p{L}\p{N}_@.\-]*)(?::(\w*))?>`)

// NewPattern reads a pattern such as "<method> <path> took <ms:number>", and returns the
// names of its captures. A capture reaches to the first of the text after it, the last one
// to the end; a number as far as it is one. "<_>" captures nothing.
func NewPattern(text string) (names []string, m Matcher, err error) {
	p := new(pattern)
	at := 0
	for _, found := range placeholder.FindAllStringSubmatchIndex(text, -1) {
		name, kind := text[found[2]:found[3]], ""
		if found[4] >= 0 {
			if kind = text[found[4]:found[5]]; kind != "number" {
				return nil, nil, fmt.Errorf("<%s:%s>, expected <%s> or <%s:number>", name, kind, name, name)
			}
		}
		if at > 0 && found[0] == at {
			return nil, nil, fmt.Errorf("nothing between two placeholders, expected a text before <%s>", name)
		}
		capture := -1
		if name != "_" {
			capture = len(names)
			names = append(names, name)
		}
		p.before = append(p.before, text[at:found[0]])
		p.number = append(p.number, kind != "")
		p.captures = append(p.captures, capture)
		at = found[1]
	}
	p.after = text[at:]
	if len(names) == 0 {
		return nil, nil, errors.New(`no placeholder, expected one such as <name> or <name:number>, or ~ before a regular expression`)
	}
	return names, p, nil
}

func (p *pattern) find(text []byte, captures []Value) bool {
	at := bytes.Index(text, []byte(p.before[0]))
	if at < 0 {
		return false
	}
	at += len(p.before[0])
	for i, capture := range p.captures {
		next := p.after
		if i+1 < len(p.before) {
			next = p.before[i+1]
		}
		end, v := len(text), Value{Kind: String}
		switch {
		case p.number[i]:
			if end = jsonwalk.CheckNumber(text, at); end < 0 || !bytes.HasPrefix(text[end:], []byte(next)) {
				return false
			}
			v.Kind = Number
		case next != "":
			n := bytes.Index(text[at:], []byte(next))
			if n < 0 {
				return false
			}
			end = at + n
		}
		if v.Text = text[at:end]; capture >= 0 {
			captures[capture] = v
		}
		at = end + len(next)
	}
	return true
}

// An expression is a regular expression whose named groups are captures.
type expression struct {
	rx     *regexp.Regexp
	groups []int
}

// maxInstructions bounds a regular expression's program.
const maxInstructions = 1000

// Compile reads a regular expression of Go whose program has at most most instructions, and
// returns how many it has. The text ", expected " in an error divides what was found from what
// was expected.
func Compile(text string, most int) (rx *regexp.Regexp, instructions int, err error) {
	rx, err = regexp.Compile(text)
	if err != nil {
		return nil, 0, fmt.Errorf("a regular expression that is not valid: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, 0, err
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil || len(prog.Inst) > most {
		return nil, 0, fmt.Errorf("a regular expression that is too large, expected at most %d instructions: fewer or smaller repetitions", most)
	}
	return rx, len(prog.Inst), nil
}

// NewExpression reads a regular expression of Go, and returns the names of its groups.
func NewExpression(text string) (names []string, m Matcher, err error) {
	rx, _, err := Compile(text, maxInstructions)
	if err != nil {
		return nil, nil, err
	}
	e := &expression{rx: rx}
	for i, name := range rx.SubexpNames() {
		if name != "" {
			names = append(names, name)
			e.groups = append(e.groups, i)
		}
	}
	if len(names) == 0 {
		return nil, nil, errors.New(`no group with a name, expected one such as (?P<code>\d+)`)
	}
	return names, e, nil
}

func (e *expression) find(text []byte, captures []Value) bool {
	found := e.rx.FindSubmatchIndex(text)
	for i, group := range e.groups {
		captures[i] = Value{}
		if found != nil && found[2*group] >= 0 {
			captures[i] = Value{String, slices.Clip(text[found[2*group]:found[2*group+1]])}
		}
	}
	return found != nil
}
