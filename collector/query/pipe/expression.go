package pipe

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

// An Expression is a regular expression of Go. It is immutable.
type Expression struct {
	rx           *regexp.Regexp
	Instructions int // of its program
}

// Compile reads a regular expression whose program has at most most instructions. The text
// ", expected " in an error divides what was found from what was expected.
func Compile(text string, most int) (*Expression, error) {
	rx, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("a regular expression that is not valid: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil || len(prog.Inst) > most {
		return nil, fmt.Errorf("a regular expression that is too large, expected at most %d instructions: fewer or smaller repetitions", most)
	}
	return &Expression{rx, len(prog.Inst)}, nil
}

// Match reports whether e matches somewhere in text. If that takes long, it calls rest every few
// milliseconds, and ends with any result after an error. rest may be nil.
func (e *Expression) Match(text []byte, rest func() error) bool {
	if rest == nil || !e.slow(text) {
		return e.rx.Match(text)
	}
	return e.rx.MatchReader(e.runes(text, rest))
}

// find returns where e and its groups match. rest is as for Match.
func (e *Expression) find(text []byte, rest func() error) []int {
	if rest == nil || !e.slow(text) {
		return e.rx.FindSubmatchIndex(text)
	}
	return e.rx.FindReaderSubmatchIndex(e.runes(text, rest))
}

// Each byte may be compared with each instruction.
const (
	slowWork  = 1 << 19 // of a text that is read rune by rune
	workToEnd = 1 << 15 // between two calls of rest: a millisecond or two
)

func (e *Expression) slow(text []byte) bool { return len(text)*e.Instructions > slowWork }

func (e *Expression) runes(text []byte, rest func() error) *runes {
	return &runes{text: text, every: max(1, workToEnd/e.Instructions), rest: rest}
}

// runes is a text that is read rune by rune, with rests.
type runes struct {
	text        []byte
	every, read int
	rest        func() error
}

// ReadRune implements io.RuneReader.
func (r *runes) ReadRune() (rune, int, error) {
	if r.read++; r.read%r.every == 0 && r.rest() != nil {
		r.text = nil
	}
	if len(r.text) == 0 {
		return 0, 0, io.EOF
	}
	c, size := utf8.DecodeRune(r.text)
	r.text = r.text[size:]
	return c, size, nil
}

// An expression is a Matcher: the named groups are captures.
type expression struct {
	*Expression
	groups []int
}

// maxInstructions bounds a regular expression's program.
const maxInstructions = 1000

// NewExpression reads a regular expression of Go, and returns the names of its groups.
func NewExpression(text string) (names []string, m Matcher, err error) {
	rx, err := Compile(text, maxInstructions)
	if err != nil {
		return nil, nil, err
	}
	e := &expression{Expression: rx}
	for i, name := range rx.rx.SubexpNames() {
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

func (e *expression) find(text []byte, captures []Value, rest func() error) bool {
	found := e.Expression.find(text, rest)
	for i, group := range e.groups {
		captures[i] = Value{}
		if found != nil && found[2*group] >= 0 {
			captures[i] = Value{String, slices.Clip(text[found[2*group]:found[2*group+1]])}
		}
	}
	return found != nil
}
