package pipe

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"

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

// A Matcher finds captures in a text. What takes long calls rest.
type Matcher interface {
	find(text []byte, captures []Value, rest func() error) bool
}

// Find has m find its captures, as many as NewPattern or NewExpression has returned names,
// in the first KiBs of a text. A capture may be absent.
func Find(m Matcher, text []byte, captures []Value) bool {
	return m.find(text[:min(len(text), maxParsed)], captures, nil)
}

// maxParsed is how many bytes of a text are looked at. It bounds the time between two
// checks for the end of the query.
const maxParsed = 16 << 10

type parseStep struct {
	*Parse
	next     step
	out      Row
	captures []Value
	rest     func() error
	ended    error // of rest
}

func (p *Parse) start(env *Env, next step) step {
	s := &parseStep{Parse: p, next: next, captures: make([]Value, len(p.Indexes))}
	s.rest = func() error {
		s.ended = env.Check()
		return s.ended
	}
	return s
}

func (s *parseStep) row(r *Row) error {
	v := s.From.of(r)
	s.out.Line, s.out.table, s.out.at = r.Line, r.table, r.at
	s.out.Values = append(s.out.Values[:0], r.Values...)
	for len(s.out.Values) < s.Width {
		s.out.Values = append(s.out.Values, Value{})
	}
	if v.Kind != Absent && s.Matcher.find(v.Text[:min(len(v.Text), maxParsed)], s.captures, s.rest) {
		for i, at := range s.Indexes {
			if s.captures[i].Kind != Absent {
				s.out.Values[at] = s.captures[i]
			}
		}
	}
	if s.ended != nil {
		return s.ended
	}
	return s.next.row(&s.out)
}

func (s *parseStep) end() error { return s.next.end() }

// Template is a Matcher with one capture: the template of the text.
type Template struct{}

func (Template) find(text []byte, captures []Value, _ func() error) bool {
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

func (p *pattern) find(text []byte, captures []Value, _ func() error) bool {
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
			if at == len(text) {
				return false
			}
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
