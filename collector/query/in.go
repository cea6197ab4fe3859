package query

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"unsafe"

	"github.com/rollway/rollway/collector/forwarded"
	"github.com/rollway/rollway/internal/jsonwalk"
	"github.com/rollway/rollway/internal/times"
)

// takeIn takes "in" or "not in", if a list, a range or a network follows.
func (p *parser) takeIn() (negated, ok bool) {
	start := p.pos
	negated = p.takeKeyword("not")
	if p.takeKeyword("in") {
		word := p.expr[p.pos:]
		if strings.HasPrefix(word, "(") {
			return negated, true
		}
		if i := strings.IndexAny(word, " \t\r\n()\""); i >= 0 {
			word = word[:i]
		}
		if strings.Contains(word, "..") || isNetwork(word) {
			return negated, true
		}
	}
	p.pos = start
	return false, false
}

// isNetwork tells whether a word begins with an address and a slash.
func isNetwork(word string) bool {
	addr, _, found := strings.Cut(word, "/")
	_, err := netip.ParseAddr(addr)
	return found && err == nil
}

// in reads what follows "in".
func (p *parser) in(f field) (*node, error) {
	var kids []*node
	open := p.take("(")
	for {
		kid, err := p.element(f)
		if err != nil {
			return nil, err
		}
		kids = append(kids, kid)
		if !open {
			if err := p.endOfOperand(p.pos); err != nil {
				return nil, err
			}
		}
		p.skipSpace()
		if !open || p.take(")") {
			return anyOf(f, kids), nil
		}
		at := p.pos
		if !p.take(",") {
			return nil, p.unexpected(at, `"," or ")"; a value that holds other characters goes in quotes`)
		}
		if err := p.countTerm(at); err != nil {
			return nil, err
		}
	}
}

// isElementEnd tells whether a bare element of a list ends before s.
func isElementEnd(s string) bool { return isValueEnd(s) || s[0] == ',' }

// element reads a value, a range or a network.
func (p *parser) element(f field) (*node, error) {
	c := comparison{parser: p, at: p.pos, field: f, operator: "="}
	var err error
	if c.value, err = p.written(isElementEnd, "a value, a range such as 100..500, or a network such as 10.0.0.0/8"); err != nil {
		return nil, err
	}
	if !c.value.quoted {
		if low, _, ok := strings.Cut(c.value.text, ".."); ok {
			c.value.text, p.pos = low, c.at+len(low)
		}
	}
	switch {
	case strings.HasPrefix(p.expr[p.pos:], ".."):
		return c.rangeNode()
	case c.value.quoted:
	case c.value.text == "*":
		return nil, p.fail(c.at, "`*`", "a value; "+f.name()+"=* asks whether the field is there")
	case isNetwork(c.value.text):
		return c.networkNode()
	}
	return c.positive(opEqual)
}

// rangeNode reads the rest of a range.
func (c *comparison) rangeNode() (*node, error) {
	at, o := c.pos, opLessEqual
	if c.pos += len(".."); strings.HasPrefix(c.expr[c.pos:], "<") {
		c.pos++
		o = opLess
	}
	high := *c
	high.at = c.pos
	var err error
	if high.value, err = c.written(isElementEnd, "where the range ends, as in 100..500 or 100..<500"); err != nil {
		return nil, err
	}
	if c.value.text == "" && !c.value.quoted {
		return nil, c.unexpected(at, "where the range begins, as in 100..500")
	}
	low, err := c.positive(opGreaterEqual)
	if err != nil {
		return nil, err
	}
	end, err := high.positive(o)
	if err != nil {
		return nil, err
	}
	a, b := low.term, end.term
	if !c.value.quoted && isNetwork(c.value.text+"/") || a.isNumber != b.isNumber {
		return nil, c.fail(c.at, show(c.expr[c.at:c.pos]), "two numbers, or two texts; addresses are in a network such as 10.0.0.0/8")
	}
	if b.isTime && o == opLessEqual { // the whole day, minute or second
		_, span, _ := times.ParseMoment(high.value.text, c.now)
		b = newTimeTerm(o, b.when.Add(max(span, 1)-1))
	}
	if order := a.compare(b); order > 0 || order == 0 && o == opLess {
		return nil, c.fail(c.at, show(c.expr[c.at:c.pos]), "a range that is not empty: the lower end comes first")
	}
	if a.isTime || a.isLevel { // a line has one
		return join(nodeAnd, []*node{termNode(a), termNode(b)}), c.countTerm(c.at)
	}
	return termNode(&term{op: opRange, field: c.field, members: []*term{a, b}}), nil
}

// compare orders the values of two terms of one kind.
func (t *term) compare(u *term) int {
	switch {
	case t.isTime:
		return t.when.Compare(u.when)
	case t.isLevel:
		return cmp.Compare(t.level, u.level)
	case t.isNumber:
		return t.number.Compare(u.number)
	}
	return strings.Compare(t.text, u.text)
}

func (c *comparison) networkNode() (*node, error) {
	n, err := netip.ParsePrefix(c.value.text)
	switch {
	case err != nil:
		return nil, c.fail(c.at, show(c.value.text), "a network such as 10.0.0.0/8 or fe80::/10; to compare with the text, quote it")
	case n != n.Masked():
		return nil, c.fail(c.at, show(c.value.text), n.Masked().String()+", which has no bits beyond its length; to compare with the text, quote it")
	case n.Addr().Is4In6() && n.Bits() >= 96:
		n = netip.PrefixFrom(n.Addr().Unmap(), n.Bits()-96)
	}
	return termNode(&term{op: opNetwork, field: c.field, text: n.String(), network: n}), nil
}

// anyOf is the node for which one of kids holds, which ask for the same field.
func anyOf(f field, kids []*node) *node {
	if len(kids) == 1 || f.path == "" && (f.id == fieldTime || f.id == fieldLevel) {
		return join(nodeOr, kids)
	}
	t := &term{op: opIn, field: f}
	x := &set{texts: make(map[string]struct{}), folded: make(map[string]struct{})}
	for _, kid := range kids {
		t.members = append(t.members, kid.term)
		x.add(kid.term)
	}
	slices.SortFunc(x.numbers, jsonwalk.Decimal.Compare)
	slices.SortFunc(x.networks, netip.Prefix.Compare) // a wide one comes before those in it
	disjoint := x.networks[:0]
	for _, n := range x.networks {
		if k := len(disjoint); k == 0 || !disjoint[k-1].Contains(n.Addr()) {
			disjoint = append(disjoint, n)
		}
	}
	x.networks = disjoint
	t.set = x
	return termNode(t)
}

// set finds whether one of many terms holds. It is immutable.
type set struct {
	texts    map[string]struct{}
	folded   map[string]struct{}
	numbers  []jsonwalk.Decimal // in order
	networks []netip.Prefix     // in order, none in another
	others   []*term            // one after the other
}

func (x *set) add(t *term) {
	switch {
	case t.op == opNetwork:
		x.networks = append(x.networks, t.network)
	case t.op != opEqual:
		x.others = append(x.others, t)
	case t.fold:
		x.folded[string(t.needle)] = struct{}{}
	default:
		x.texts[t.text] = struct{}{}
		if t.isNumber {
			x.numbers = append(x.numbers, t.number)
		}
	}
}

// holds compares a scalar with all terms.
func (x *set) holds(s *scan, text []byte, isString bool) bool {
	if _, ok := x.texts[string(text)]; ok {
		return true
	}
	if len(x.folded) > 0 {
		if _, ok := x.folded[string(s.fold(text))]; ok {
			return true
		}
	}
	if len(x.numbers) > 0 && !isString {
		if n, ok := jsonwalk.ParseDecimal(text); ok {
			if _, ok := slices.BinarySearchFunc(x.numbers, n, jsonwalk.Decimal.Compare); ok {
				return true
			}
		}
	}
	if len(x.networks) > 0 && isString {
		if addr, ok := address(text); ok {
			at, _ := slices.BinarySearchFunc(x.networks, addr, func(n netip.Prefix, addr netip.Addr) int {
				return cmp.Or(n.Addr().Compare(addr), -1) // after the one that begins with addr
			})
			if at > 0 && x.networks[at-1].Contains(addr) {
				return true
			}
		}
	}
	for _, t := range x.others {
		if s.holds(t, text, isString) {
			return true
		}
	}
	return false
}

// address returns the address in text, with or without a port. It does not allocate.
func address(text []byte) (netip.Addr, bool) {
	return forwarded.ParseNode(unsafe.String(unsafe.SliceData(text), len(text)))
}

// appendIn appends what follows "in".
func (t *term) appendIn(b []byte) []byte {
	if t.op == opNetwork || t.op == opRange && t.members[0].isNumber {
		return t.appendElement(b)
	}
	members := t.members
	if t.op == opRange {
		members = []*term{t}
	}
	b = append(b, '(')
	for i, m := range members {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = m.appendElement(b)
	}
	return append(b, ')')
}

// appendElement appends t as it is written after "in".
func (t *term) appendElement(b []byte) []byte {
	switch {
	case t.op == opRange:
		low, high := t.members[0], t.members[1]
		b = append(low.appendBound(b), ".."...)
		if high.op == opLess {
			b = append(b, '<')
		}
		return high.appendBound(b)
	case t.op == opNetwork:
		return append(b, t.text...)
	case t.op == opEqual && !t.isNumber && !t.fold:
		return appendWord(b, t.text, func(s string) bool { return isPlainName(s) && isPlainValue(s) && !strings.Contains(s, "..") })
	}
	return t.appendValue(b)
}

func (t *term) appendBound(b []byte) []byte {
	if t.isNumber {
		return append(b, t.text...)
	}
	return appendQuoted(b, t.text)
}
