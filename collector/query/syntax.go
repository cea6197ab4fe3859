package query

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// SyntaxError says where an expression cannot be read, and why.
type SyntaxError struct {
	Expr     string
	Column   int    // in characters, from 1; one after the end where something is missing
	Found    string // what is there
	Expected string // what could be there instead
}

// errorWidth is how many characters of a long expression an error shows.
const errorWidth = 72

// Error returns three lines: the message, the expression, and a caret below the
// place. Of a long expression it shows the surroundings.
func (e *SyntaxError) Error() string {
	runes := []rune(e.Expr)
	at := min(max(e.Column-1, 0), len(runes))
	start, end := 0, len(runes)
	before, after := "", ""
	if end > errorWidth {
		start = max(0, min(at-errorWidth/2, end-errorWidth))
		end = min(end, start+errorWidth)
		if start > 0 {
			before = "…"
		}
		if end < len(runes) {
			after = "…"
		}
	}
	shown := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			return ' '
		}
		return r
	}, string(runes[start:end]))
	return fmt.Sprintf("query column %d: found %s, expected %s\n  %s%s%s\n  %s^",
		e.Column, e.Found, e.Expected,
		before, shown, after,
		strings.Repeat(" ", at-start+utf8.RuneCountInString(before)))
}

const endOfQuery = "the end of the query"

// fail makes the error for the byte offset at.
func (p *parser) fail(at int, found, expected string) error {
	return &SyntaxError{
		Expr:     p.expr,
		Column:   utf8.RuneCountInString(p.expr[:at]) + 1,
		Found:    found,
		Expected: expected,
	}
}

// unexpected is fail for what is at the byte offset at.
func (p *parser) unexpected(at int, expected string) error {
	return p.fail(at, p.foundAt(at), expected)
}

// foundAt quotes the piece of the expression at the byte offset at.
func (p *parser) foundAt(at int) string {
	rest := p.expr[at:]
	if rest == "" {
		return endOfQuery
	}
	if n := operatorLen(rest); n > 0 {
		return show(rest[:n])
	}
	if rest[0] == '(' || rest[0] == ')' {
		return show(rest[:1])
	}
	end := strings.IndexFunc(rest[1:], func(r rune) bool { return isSpace(r) || r == '(' || r == ')' || r == '"' })
	if end >= 0 {
		rest = rest[:end+1]
	}
	return show(rest)
}

// show puts a piece of an expression between plain quotes, as it was typed, except
// control characters and a long tail.
func show(s string) string {
	const most = 40
	n := 0
	for i := range s {
		if n == most {
			s = s[:i] + "…"
			break
		}
		n++
	}
	for _, r := range s {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			return fmt.Sprintf("%q", s)
		}
	}
	return "`" + s + "`"
}
