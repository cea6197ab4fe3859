package query

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math/big"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/rollway/rollway/internal/jsonwalk"
)

// slowMatch is what Match is compared with: the line decoded into maps by
// encoding/json, the tree evaluated term by term.
func slowMatch(q *Query, line []byte) bool {
	if q.root == nil {
		return true
	}
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.UseNumber()
	var m map[string]any
	if err := dec.Decode(&m); err != nil {
		panic(err)
	}
	return slowEval(q.root, m)
}

func slowEval(n *node, m map[string]any) bool {
	switch n.kind {
	case nodeTerm:
		return slowTerm(n.term, m)
	case nodeNot:
		return !slowEval(n.kids[0], m)
	case nodeAnd:
		for _, kid := range n.kids {
			if !slowEval(kid, m) {
				return false
			}
		}
		return true
	}
	for _, kid := range n.kids {
		if slowEval(kid, m) {
			return true
		}
	}
	return false
}

func slowTerm(t *term, m map[string]any) bool {
	if t.op == opText {
		for _, name := range []string{"msg", "error", "attrs"} {
			if v, ok := m[name]; ok && slowInside(v, true, func(x any) bool {
				switch x := x.(type) {
				case string:
					return slowContains(t, x)
				case json.Number:
					return slowContains(t, string(x))
				}
				return false
			}) {
				return true
			}
		}
		return false
	}
	var found []any
	if t.field.path == "" {
		if v, ok := m[t.field.id.name()]; ok {
			found = append(found, v)
		}
	} else {
		found = slowPath(m[t.field.id.name()], t.field.path, found)
		if t.field.id != fieldAttrs {
			found = slowPath(m["attrs"], t.field.id.name()+"."+t.field.path, found)
		}
	}
	for _, v := range found {
		if t.op == opPresent {
			return true
		}
		if slowInside(v, t.op == opContains, func(x any) bool { return slowScalar(t, x) }) {
			return true
		}
	}
	return false
}

// slowPath appends every value that path names in v.
func slowPath(v any, path string, found []any) []any {
	object, ok := v.(map[string]any)
	if !ok {
		return found
	}
	for k, kid := range object {
		if k == path {
			found = append(found, kid)
		} else if rest, ok := strings.CutPrefix(path, k+"."); ok {
			found = slowPath(kid, rest, found)
		}
	}
	return found
}

func slowInside(v any, objects bool, f func(any) bool) bool {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			if slowInside(e, objects, f) {
				return true
			}
		}
		return false
	case map[string]any:
		if !objects {
			return false
		}
		for _, e := range v {
			if slowInside(e, objects, f) {
				return true
			}
		}
		return false
	}
	return f(v)
}

func slowScalar(t *term, v any) bool {
	text, isString := v.(string)
	number := ""
	switch v := v.(type) {
	case nil:
		text = "null"
	case bool:
		text = "false"
		if v {
			text = "true"
		}
	case json.Number:
		text, number = string(v), string(v)
	}
	switch {
	case t.isLevel:
		l, ok := parseLevel(text)
		return ok && isString && ordered(t.op, cmp.Compare(l, t.level))
	case t.isTime:
		at, err := time.Parse(time.RFC3339Nano, text)
		return err == nil && ordered(t.op, at.Compare(t.when))
	}
	switch t.op {
	case opIn:
		return slices.ContainsFunc(t.members, func(m *term) bool { return slowScalar(m, v) })
	case opRange:
		return slowScalar(t.members[0], v) && slowScalar(t.members[1], v)
	case opNetwork:
		return isString && slowNetwork(netip.MustParsePrefix(t.text), text)
	case opContains:
		return slowContains(t, text)
	case opPrefix:
		return strings.HasPrefix(text, t.text)
	case opEqual:
		if t.isNumber && number != "" {
			return rat(number).Cmp(rat(t.text)) == 0
		}
		return text == t.text || t.fold && strings.EqualFold(text, t.text)
	}
	if t.isNumber {
		if number == "" && json.Valid([]byte(text)) && text != "" && (text[0] == '-' || jsonwalk.IsDigit(text[0])) && isString && strings.TrimSpace(text) == text {
			number = text
		}
		return number != "" && ordered(t.op, rat(number).Cmp(rat(t.text)))
	}
	return isString && ordered(t.op, strings.Compare(text, t.text))
}

// slowContains tries each part of text.
func slowContains(t *term, text string) bool {
	if t.pattern != nil {
		return regexp.MustCompile(t.text).MatchString(text)
	}
	if !t.fold && !t.word {
		return strings.Contains(text, t.text)
	}
	runes := []rune(text)
	isWord := func(i int) bool {
		return t.word && i >= 0 && i < len(runes) && (runes[i] == '_' || unicode.IsLetter(runes[i]) || unicode.IsDigit(runes[i]))
	}
	for i := range runes {
		for k := i + 1; k <= len(runes); k++ {
			part := string(runes[i:k])
			if (part == t.text || t.fold && strings.EqualFold(part, t.text)) && !isWord(i-1) && !isWord(k) {
				return true
			}
		}
	}
	return false
}

// slowNetwork tries the ways to write an address, with or without a port.
func slowNetwork(n netip.Prefix, text string) bool {
	addr, err := netip.ParseAddr(text)
	if with, err := netip.ParseAddrPort(text); err == nil {
		return n.Contains(with.Addr().Unmap())
	}
	if inner, ok := strings.CutPrefix(text, "["); ok {
		addr, err = netip.ParseAddr(strings.TrimSuffix(inner, "]"))
	}
	return err == nil && n.Contains(addr.Unmap())
}

// rat gives the exact value of a number whose exponent is small.
func rat(s string) *big.Rat {
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		panic("not a number: " + s)
	}
	return r
}
