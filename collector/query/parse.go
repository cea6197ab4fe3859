package query

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rollway/rollway/internal/jsonwalk"
)

// The grammar, as docs/QUERY.md has it:
//
//	query      = [ or ] .
//	or         = and { "or" and } .
//	and        = not { [ "and" ] not } .
//	not        = { "not" | "-" } ( "(" or ")" | comparison | text ) .
//	comparison = name ( operator value | [ "not" ] "in" ( element | "(" element { "," element } ")" ) ) .
//	operator   = "=" | "!=" | "~" | "!~" | "=~" | "!=~" | "<" | "<=" | ">" | ">=" .
//	text       = word | string | "re" quoted .
//	name       = word | quoted .
//	value      = word | string | "*" | word "*" .
//	element    = word | string | word "*" | ( word | quoted ) ".." [ "<" ] ( word | quoted ) | network .
//	string     = [ "i" | "w" | "iw" | "wi" ] quoted .

// parser is one descent through an expression. pos is a byte offset.
type parser struct {
	expr  string
	pos   int
	now   time.Time
	depth int
	terms int
	scans int // of the terms

	instructions int // of regular expressions
}

const expectedTerm = `a text, a comparison such as level>=warn, "not" or "("`

func parseAt(expr string, now time.Time) (*Query, error) {
	p := &parser{expr: expr, now: now}
	if !utf8.ValidString(expr) {
		at := strings.IndexByte(strings.ToValidUTF8(expr, "\xff"), 0xff)
		return nil, p.fail(at, fmt.Sprintf("the byte 0x%02x", expr[at]), "UTF-8")
	}
	root, err := p.parse(MaxLength)
	if err != nil {
		return nil, err
	}
	return compile(root), nil
}

// parse reads the whole expression, which may have at most limit bytes.
func (p *parser) parse(limit int) (*node, error) {
	if len(p.expr) > limit {
		at := limit
		for !utf8.RuneStart(p.expr[at]) {
			at--
		}
		return nil, p.fail(at, fmt.Sprintf("a query of %d bytes", len(p.expr)), fmt.Sprintf("at most %d", limit))
	}
	p.skipSpace()
	if p.pos == len(p.expr) {
		return nil, nil
	}
	n, err := p.or()
	if err != nil {
		return nil, err
	}
	if p.pos < len(p.expr) { // only ")" ends an or early
		return nil, p.unexpected(p.pos, endOfQuery+`, or a "(" before it`)
	}
	return n, nil
}

func (p *parser) or() (*node, error) {
	var kids []*node
	for {
		kid, err := p.and()
		if err != nil {
			return nil, err
		}
		kids = append(kids, kid)
		if !p.takeKeyword("or") {
			return join(nodeOr, kids), nil
		}
	}
}

func (p *parser) and() (*node, error) {
	var kids []*node
	for {
		kid, err := p.not()
		if err != nil {
			return nil, err
		}
		kids = append(kids, kid)
		if p.takeKeyword("and") {
			continue
		}
		if p.pos == len(p.expr) || p.expr[p.pos] == ')' || p.keyword() == "or" {
			return join(nodeAnd, kids), nil
		}
	}
}

func (p *parser) not() (*node, error) {
	start := p.pos
	switch {
	case p.takeKeyword("not"):
	case strings.HasPrefix(p.expr[p.pos:], "-"):
		p.pos++
		if p.pos == len(p.expr) || isSpace(rune(p.expr[p.pos])) {
			return nil, p.fail(start, "`-`", `the term that it negates right after it, or "not"`)
		}
	default:
		return p.primary()
	}
	if err := p.enter(start); err != nil {
		return nil, err
	}
	n, err := p.not()
	p.depth--
	if err != nil {
		return nil, err
	}
	return negate(n), nil
}

func (p *parser) primary() (*node, error) {
	if !strings.HasPrefix(p.expr[p.pos:], "(") {
		return p.term()
	}
	open := p.pos
	if err := p.enter(open); err != nil {
		return nil, err
	}
	p.pos++
	p.skipSpace()
	n, err := p.or()
	if err != nil {
		return nil, err
	}
	if p.pos == len(p.expr) {
		return nil, p.unexpected(p.pos, fmt.Sprintf(`")" for the "(" in column %d`, utf8.RuneCountInString(p.expr[:open])+1))
	}
	p.depth--
	p.pos++ // only ")" or the end stop an or
	p.skipSpace()
	return n, nil
}

func (p *parser) enter(at int) error {
	p.depth++
	if p.depth > MaxDepth {
		return p.fail(at, fmt.Sprintf("level %d of parentheses and negations", p.depth), fmt.Sprintf("at most %d", MaxDepth))
	}
	return nil
}

// term reads a text or a comparison.
func (p *parser) term() (*node, error) {
	start := p.pos
	if err := p.countTerm(start); err != nil {
		return nil, err
	}
	if k := p.keyword(); k != "" {
		return nil, p.unexpected(start, expectedTerm+`; to find the word itself, quote it: "`+k+`"`)
	}
	w, err := p.written(isNameEnd, expectedTerm)
	if err != nil {
		return nil, err
	}
	if w.text == "re" && !w.quoted && strings.HasPrefix(p.expr[p.pos:], `"`) {
		return p.textPattern()
	}
	afterWord := p.pos
	p.skipSpace()
	if n := operatorLen(p.expr[p.pos:]); n > 0 {
		operator := p.expr[p.pos : p.pos+n]
		p.pos += n
		return p.comparison(start, w, operator)
	}
	if negated, ok := p.takeIn(); ok {
		if err := p.checkName(start, w); err != nil {
			return nil, err
		}
		n, err := p.in(resolve(w.text))
		if err != nil || !negated {
			return n, err
		}
		return negate(n), nil
	}
	if err := p.endOfOperand(afterWord); err != nil {
		return nil, err
	}
	switch {
	case w.text == "":
		return nil, p.fail(start, `""`, "a text that is not empty")
	case !w.quoted:
		err = p.checkBareText(start, w.text)
	case w.word:
		err = p.scan(start)
	}
	if err != nil {
		return nil, err
	}
	return termNode(newTextTerm(w)), nil
}

func (p *parser) countTerm(at int) error {
	if p.terms++; p.terms > MaxTerms {
		return p.fail(at, fmt.Sprintf("term %d", p.terms), fmt.Sprintf("at most %d", MaxTerms))
	}
	return nil
}

// checkBareText refuses bare words that are most likely another language's
// syntax; as a text to look for they find nothing, without a word why.
func (p *parser) checkBareText(at int, word string) error {
	quote := "; to find the text itself, quote it"
	switch word {
	case "&&", "&":
		return p.fail(at, show(word), `"and"`+quote)
	case "||", "|":
		return p.fail(at, show(word), `"or"`+quote)
	case "*":
		return p.fail(at, "`*`", "a text; an empty query matches every line")
	}
	if word[0] == '!' {
		return p.fail(at, show(word), `"not" or "-" before what is negated`+quote)
	}
	if i := strings.IndexByte(word, '*'); i >= 0 {
		return p.fail(at, show(word), `a word without "*" (a text is found anywhere in a value)`+quote)
	}
	name, value, _ := strings.Cut(word, ":")
	if id := fieldOf([]byte(name)); id != fieldUnknown && len(name) < len(word) {
		return p.fail(at, show(word), fmt.Sprintf("a comparison such as %s=%s", name, value)+quote)
	}
	return nil
}

// checkName checks the name of a field, which was written at the byte offset start.
func (p *parser) checkName(start int, w written) error {
	switch name := w.text; {
	case w.fold || w.word:
		return p.fail(start, show(p.expr[start:start+1]), "the name of a field, without letters before its quotes")
	case name == "":
		return p.fail(start, `""`, "the name of a field")
	case len(name) > MaxName:
		return p.fail(start, fmt.Sprintf("a name of %d bytes", len(name)), fmt.Sprintf("at most %d", MaxName))
	case !w.quoted && strings.Contains(name, "*"):
		return p.fail(start, show(name), `the name of a field without "*", or in quotes`)
	}
	return nil
}

// comparison reads what follows name and an operator.
func (p *parser) comparison(start int, w written, operator string) (*node, error) {
	name := w.text
	if err := p.checkName(start, w); err != nil {
		return nil, err
	}
	p.skipSpace()
	at := p.pos
	expected := "a value for " + show(name)
	if n := operatorLen(p.expr[at:]); n > 0 {
		return nil, p.unexpected(at, expected+`; operators are = != ~ !~ =~ !=~ < <= > >=`)
	}
	if k := p.keyword(); k != "" {
		return nil, p.unexpected(at, expected+`; if it is the word itself, quote it: "`+k+`"`)
	}
	read := p.written
	if strings.HasSuffix(operator, "=~") {
		read = p.expressionOperand
	}
	value, err := read(isValueEnd, expected)
	if err != nil {
		return nil, err
	}
	if err := p.endOfOperand(p.pos); err != nil {
		return nil, err
	}
	p.skipSpace()
	c := comparison{parser: p, at: at, field: resolve(name), operator: operator, value: value}
	return c.node()
}

// written is an operand, and what the letters before its quotes say.
type written struct {
	text       string
	quoted     bool
	fold, word bool // i"…", w"…"
}

func (p *parser) written(end func(string) bool, expected string) (w written, err error) {
	w.text, w.quoted, err = p.operand(end, expected)
	if err != nil || w.quoted || !strings.HasPrefix(p.expr[p.pos:], `"`) {
		return w, err
	}
	switch w.text {
	case "i", "w", "iw", "wi":
		w.fold, w.word = strings.Contains(w.text, "i"), strings.Contains(w.text, "w")
		w.text, w.quoted, err = p.operand(end, expected)
	}
	return w, err
}

// operand reads a word or a quoted string and stops right after it.
func (p *parser) operand(end func(string) bool, expected string) (text string, quoted bool, err error) {
	start := p.pos
	if strings.HasPrefix(p.expr[start:], `"`) {
		text, err = p.quoted()
		return text, true, err
	}
	for p.pos < len(p.expr) && !end(p.expr[p.pos:]) {
		if c := p.expr[p.pos]; c < ' ' || c == 0x7f {
			return "", false, p.fail(p.pos, fmt.Sprintf("the control character 0x%02x", c), `an escape such as \u0000 in quotes`)
		}
		p.pos++
	}
	text = p.expr[start:p.pos]
	if text == "" {
		return "", false, p.unexpected(start, expected)
	}
	if r, _ := utf8.DecodeRuneInString(text); r == '\'' || r == '“' || r == '”' || r == '„' || r == '‘' || r == '’' || r == '`' {
		return "", false, p.fail(start, show(text), `plain double quotes, "like this"`)
	}
	return text, false, nil
}

// endOfOperand checks that an operand, which ends at the byte offset at, is not
// glued to the next thing.
func (p *parser) endOfOperand(at int) error {
	if at == len(p.expr) || p.expr[at] == ')' || isSpace(rune(p.expr[at])) {
		return nil
	}
	return p.unexpected(at, `a space, ")" or `+endOfQuery+`; a text that holds this character goes in quotes`)
}

func (p *parser) skipSpace() {
	for p.pos < len(p.expr) && isSpace(rune(p.expr[p.pos])) {
		p.pos++
	}
}

// keyword returns the keyword at pos in lower case, or nothing. All small and
// all capital letters are keywords, nOt is a word.
func (p *parser) keyword() string {
	for _, k := range [...]string{"and", "or", "not"} {
		if p.isNext(k) {
			return k
		}
	}
	return ""
}

func (p *parser) isNext(keyword string) bool {
	rest, ok := strings.CutPrefix(p.expr[p.pos:], keyword)
	if !ok {
		rest, ok = strings.CutPrefix(p.expr[p.pos:], strings.ToUpper(keyword))
	}
	return ok && (rest == "" || isNameEnd(rest))
}

func (p *parser) takeKeyword(want string) bool {
	if !p.isNext(want) {
		return false
	}
	p.pos += len(want)
	p.skipSpace()
	return true
}

// take takes a mark, if it is next, and the space after it.
func (p *parser) take(mark string) bool {
	if !strings.HasPrefix(p.expr[p.pos:], mark) {
		return false
	}
	p.pos += len(mark)
	p.skipSpace()
	return true
}

func isSpace(r rune) bool { return r == ' ' || r == '\t' || r == '\n' || r == '\r' }

// isValueEnd tells whether a bare value ends before s, which is not empty.
func isValueEnd(s string) bool {
	return isSpace(rune(s[0])) || s[0] == '(' || s[0] == ')' || s[0] == '"'
}

// isNameEnd tells whether a bare name or text ends before s.
func isNameEnd(s string) bool { return isValueEnd(s) || operatorLen(s) > 0 }

// operatorLen is how many bytes of an operator s begins with.
func operatorLen(s string) int {
	if s == "" {
		return 0
	}
	two := len(s) > 1
	switch s[0] {
	case '=':
		if two && s[1] == '~' {
			return 2
		}
		return 1
	case '~':
		return 1
	case '<', '>':
		if two && s[1] == '=' {
			return 2
		}
		return 1
	case '!':
		if strings.HasPrefix(s, "!=~") {
			return 3
		}
		if two && (s[1] == '=' || s[1] == '~') {
			return 2
		}
	}
	return 0
}

const knownEscapes = `one of \" \\ \/ \a \b \f \n \r \t \v \xhh \uhhhh \Uhhhhhhhh`

// quoted reads a string in double quotes with the escapes of JSON and Go, except Go's
// octal ones.
func (p *parser) quoted() (string, error) {
	start := p.pos
	p.pos++
	var b []byte
	for p.pos < len(p.expr) {
		switch c := p.expr[p.pos]; c {
		case '"':
			p.pos++
			if !utf8.Valid(b) {
				return "", p.fail(start, show(p.expr[start:p.pos]), "escapes that give UTF-8")
			}
			return string(b), nil
		case '\\':
			var err error
			if b, err = p.escape(b); err != nil {
				return "", err
			}
		default:
			b = append(b, c)
			p.pos++
		}
	}
	return "", p.unexpected(p.pos, `the closing quote of the text that begins in column `+
		strconv.Itoa(utf8.RuneCountInString(p.expr[:start])+1))
}

// escape reads one escape.
func (p *parser) escape(b []byte) ([]byte, error) {
	rest := p.expr[p.pos:]
	if len(rest) == 1 {
		return b, p.unexpected(len(p.expr), "the rest of an escape")
	}
	// JSON has two escapes that Go has not: a slash, and pairs of surrogates.
	if r, n := jsonwalk.Escape([]byte(rest[:min(len(rest), len(`\uD83D\uDE00`))])); r != utf8.RuneError {
		p.pos += n
		return utf8.AppendRune(b, r), nil
	}
	r, wide, tail, err := strconv.UnquoteChar(rest, '"')
	if octal := rest[1]-'0' <= 9; octal || err != nil {
		_, size := utf8.DecodeRuneInString(rest[1:])
		expected := knownEscapes
		if strings.IndexByte("xuU", rest[1]) >= 0 {
			expected += ", a valid character"
			for size < len(rest)-1 && size < 9 && isHex(rest[1+size]) {
				size++
			}
		}
		return b, p.fail(p.pos, show(rest[:1+size]), expected)
	}
	p.pos = len(p.expr) - len(tail)
	if !wide {
		return append(b, byte(r)), nil
	}
	return utf8.AppendRune(b, r), nil
}

func isHex(c byte) bool {
	return jsonwalk.IsDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f'
}
