package query

import (
	"bytes"
	"regexp/syntax"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rollway/rollway/collector/query/pipe"
)

// MaxInstructions bounds the programs of all regular expressions of a query together, and so
// the time for a line.
const MaxInstructions = 1000

// pattern is the regular expression of a term. Immutable.
type pattern struct {
	re       *pipe.Expression
	literals []string // each match contains one of them; nil: unknown
}

// find tells whether the expression matches somewhere in text. rest is as for Expression.Match.
func (x *pattern) find(text []byte, rest func() error) bool {
	if len(x.literals) == 0 {
		return x.re.Match(text, rest)
	}
	for _, l := range x.literals {
		if bytes.Contains(text, []byte(l)) {
			return x.re.Match(text, rest)
		}
	}
	return false
}

// newPattern compiles the regular expression written at the byte offset at.
func (p *parser) newPattern(at int, written string) (*pattern, error) {
	re, err := pipe.Compile(written, MaxInstructions-p.instructions)
	if err != nil {
		return nil, p.badExpression(at, err)
	}
	p.instructions += re.Instructions
	tree, err := syntax.Parse(written, syntax.Perl)
	if err != nil {
		return nil, p.badExpression(at, err)
	}
	return &pattern{re, literalsOf(tree.Simplify())}, nil
}

// badExpression makes the error for a pattern or regular expression of package pipe.
func (p *parser) badExpression(at int, err error) error {
	found, expected, ok := strings.Cut(err.Error(), ", expected ")
	if !ok {
		expected = "the syntax of Go's package regexp"
	}
	return p.fail(at, found, expected)
}

// maxLiterals is how many literals are searched for before a term is evaluated.
const maxLiterals = 8

// literalsOf returns texts: each match of n contains one of them. They are not empty. Without
// any, nothing is known.
func literalsOf(n *syntax.Regexp) []string {
	switch n.Op {
	case syntax.OpLiteral:
		for _, r := range n.Rune {
			// Bytes that are not UTF-8 match as the replacement character.
			if r == utf8.RuneError || n.Flags&syntax.FoldCase != 0 && unicode.SimpleFold(r) != r {
				return nil
			}
		}
		return []string{string(n.Rune)}
	case syntax.OpCapture, syntax.OpPlus:
		return literalsOf(n.Sub[0])
	case syntax.OpConcat:
		var best []string
		for _, sub := range n.Sub {
			if l := literalsOf(sub); shortest(l) > shortest(best) {
				best = l
			}
		}
		return best
	case syntax.OpAlternate:
		var all []string
		for _, sub := range n.Sub {
			l := literalsOf(sub)
			if all = append(all, l...); len(l) == 0 || len(all) > maxLiterals {
				return nil
			}
		}
		return all
	}
	return nil
}

// shortest is the length of the shortest text, 0 without any.
func shortest(texts []string) int {
	n := 0
	for i, s := range texts {
		if i == 0 || len(s) < n {
			n = len(s)
		}
	}
	return n
}

// rawQuoted reads a regular expression in double quotes. Backslashes stay: they are for the
// expression, in which \" is a quote, too.
func (p *parser) rawQuoted() (string, error) {
	start := p.pos + 1
	for i := start; i < len(p.expr); i++ {
		switch p.expr[i] {
		case '\\':
			i++
		case '"':
			p.pos = i + 1
			return p.expr[start:i], nil
		}
	}
	return "", p.unexpected(len(p.expr), "the closing quote of the regular expression")
}

// expressionOperand is operand for a regular expression.
func (p *parser) expressionOperand(end func(string) bool, expected string) (w written, err error) {
	if w.quoted = strings.HasPrefix(p.expr[p.pos:], `"`); w.quoted {
		w.text, err = p.rawQuoted()
	} else {
		w.text, _, err = p.operand(end, expected)
	}
	return w, err
}

// textPattern reads the rest of re"expression".
func (p *parser) textPattern() (*node, error) {
	at := p.pos
	written, err := p.rawQuoted()
	if err != nil {
		return nil, err
	}
	if err := p.endOfOperand(p.pos); err != nil {
		return nil, err
	}
	p.skipSpace()
	if written == "" {
		return nil, p.fail(at, `""`, "a regular expression that is not empty")
	}
	x, err := p.newPattern(at, written)
	if err != nil {
		return nil, err
	}
	return termNode(&term{op: opText, text: written, pattern: x}), nil
}
