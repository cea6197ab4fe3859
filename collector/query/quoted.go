package query

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/rollway/rollway/internal/jsonwalk"
)

const knownEscapes = `one of \" \\ \/ \a \b \f \n \r \t \v \xhh \uhhhh \Uhhhhhhhh`

// quoted reads a string in double quotes with the escapes of JSON and Go, but
// for Go's octal ones.
func (p *parser) quoted() (string, error) {
	start := p.pos
	p.pos++
	var b strings.Builder
	for p.pos < len(p.expr) {
		c := p.expr[p.pos]
		switch c {
		case '"':
			p.pos++
			if !utf8.ValidString(b.String()) {
				return "", p.fail(start, show(p.expr[start:p.pos]), "escapes that give UTF-8")
			}
			return b.String(), nil
		case '\\':
			if err := p.escape(&b); err != nil {
				return "", err
			}
		default:
			b.WriteByte(c)
			p.pos++
		}
	}
	return "", p.unexpected(p.pos, `the closing quote of the text that begins in column `+
		strconv.Itoa(utf8.RuneCountInString(p.expr[:start])+1))
}

// escape reads one escape.
func (p *parser) escape(b *strings.Builder) error {
	at := p.pos
	p.pos++
	if p.pos == len(p.expr) {
		return p.unexpected(p.pos, "the rest of an escape")
	}
	c := p.expr[p.pos]
	p.pos++
	switch c {
	case '"', '\\', '/':
		b.WriteByte(c)
	case 'b', 'f', 'n', 'r', 't':
		r, _ := jsonwalk.Escape([]byte{'\\', c})
		b.WriteRune(r)
	case 'a':
		b.WriteByte('\a')
	case 'v':
		b.WriteByte('\v')
	case 'x', 'u', 'U':
		r, ok := p.hex(c)
		if ok && c == 'u' && utf16.IsSurrogate(r) {
			r, ok = p.lowSurrogate(r)
		}
		if !ok || c != 'x' && !utf8.ValidRune(r) {
			end := min(p.pos, len(p.expr))
			return p.fail(at, show(p.expr[at:end]), knownEscapes+", a valid character")
		}
		if c == 'x' {
			b.WriteByte(byte(r))
		} else {
			b.WriteRune(r)
		}
	default:
		_, size := utf8.DecodeRuneInString(p.expr[at+1:])
		return p.fail(at, show(p.expr[at:at+1+size]), knownEscapes)
	}
	return nil
}

// hex reads the digits behind \x, \u or \U.
func (p *parser) hex(kind byte) (r rune, ok bool) {
	n := 2
	switch kind {
	case 'u':
		n = 4
	case 'U':
		n = 8
	}
	digits := p.expr[p.pos:min(p.pos+n, len(p.expr))]
	if i := strings.IndexFunc(digits, notHex); i >= 0 {
		p.pos += i
		return 0, false
	}
	p.pos += len(digits)
	v, err := strconv.ParseUint(digits, 16, 31)
	return rune(v), err == nil && len(digits) == n
}

// lowSurrogate reads the second half of a pair of \u escapes.
func (p *parser) lowSurrogate(high rune) (rune, bool) {
	if !strings.HasPrefix(p.expr[p.pos:], `\u`) {
		return 0, false
	}
	p.pos += 2
	low, ok := p.hex('u')
	r := utf16.DecodeRune(high, low)
	return r, ok && r != utf8.RuneError
}

func notHex(r rune) bool { return !strings.ContainsRune("0123456789abcdefABCDEF", r) }
