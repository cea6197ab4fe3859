package enrich

import (
	"bytes"
	"slices"
	"unsafe"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/internal/jsonline"
	"github.com/rollway/rollway/internal/jsonwalk"
)

// A rewriter is one walk of a rule through a line. While the rule has changed nothing,
// nothing is copied.
type rewriter struct {
	rule   *rule
	src    []byte
	dst    []byte
	copied int // src[:copied] is in dst, as far as it was not left out

	path    []byte // of the member that the walk is at
	text    *[]byte
	attrs   bool // the walk is below attrs
	suffix  int  // the last that a redacted name of an attribute got; 1: none, but there was one
	changed bool

	look  bool // the walk only finds out whether something matches
	found bool // by look, or the member of a rename

	name, value jsonwalk.Span // of the member that a rename has found
	attribute   bool          // it is one, and not inside one or elsewhere
}

// part says what the members of an object are.
type part uint8

const (
	ofLine  part = iota // time, level, …
	ofAttrs             // the attributes
	below               // what is in values
)

// other is the one of two buffers that own is not.
func other(own *[]byte, s *normalize.Scratch) *[]byte {
	if own == &s.A {
		return &s.B
	}
	return &s.A
}

// rewrite returns the line as the rule makes it, and the buffer that it is in: own,
// that of line, or another.
func (r *rule) rewrite(line []byte, own *[]byte, s *normalize.Scratch) ([]byte, *[]byte) {
	dst, before := other(own, s), &line[0]
	w := rewriter{rule: r, src: line, dst: (*dst)[:0], path: s.Path[:0], text: &s.Text}
	w.line()
	if r.action == rename {
		line = w.rename()
	} else if w.changed {
		line = w.rest()
	}
	s.Path = w.path
	*dst = w.dst
	if &line[0] != before {
		own = dst
	}
	return line, own
}

// finds reports whether the rule's expression matches in what its keys select.
func (r *rule) finds(line []byte, s *normalize.Scratch) bool {
	w := rewriter{rule: r, src: line, path: s.Path[:0], text: &s.Text, look: true}
	w.line()
	s.Path = w.path
	return w.found
}

// line walks through all of the line.
func (w *rewriter) line() { w.object(0, len(w.rule.keys) == 0, ofLine) }

// rest returns the line with what is left of src.
func (w *rewriter) rest() []byte {
	w.flush(len(w.src))
	if before, empty := bytes.CutSuffix(w.dst, []byte(`,"attrs":{}}`)); empty {
		w.dst = append(before, '}')
	}
	return w.dst
}

// selectsAll reports whether all attributes are selected whatever their names.
func (r *rule) selectsAll() bool {
	return r.match == nil && slices.ContainsFunc(r.keys, func(k key) bool { return k.text == "**" })
}

// object walks through the members of the object at src[i], and returns its end.
// selected tells that the object itself is selected.
func (w *rewriter) object(i int, selected bool, in part) int {
	src, r := w.src, w.rule
	above, kept := len(w.path), false
	for i++; src[i] != '}' && !w.found; w.path = w.path[:above] {
		if src[i] == ',' {
			i++
		}
		name := i
		nameEnd, _ := jsonwalk.SkipString(src, i)
		value := nameEnd + 1
		if in == ofAttrs && r.tenants && !w.look && string(src[name+1:nameEnd-1]) == normalize.Tenant {
			i, kept = jsonwalk.SkipValue(src, value), true
			continue
		}
		if in == ofLine {
			if end := w.special(name, nameEnd); end > 0 {
				i, kept = end, true
				continue
			}
		}
		chosen := selected || w.enter(src[name:nameEnd], in)
		end := 0
		switch {
		case r.action == rename:
			end = w.seek(name, nameEnd, chosen, in)
		case r.action == remove && chosen:
			if end = jsonwalk.SkipValue(src, value); w.matches(value, end) {
				w.leaveMember(name, end, kept)
			} else {
				kept = true
			}
		case r.action == only && !chosen && !w.leads(value):
			end = jsonwalk.SkipValue(src, value)
			w.leaveMember(name, end, kept)
		case r.action == only && chosen:
			end, kept = jsonwalk.SkipValue(src, value), true
		default:
			kept = true
			if len(r.keys) == 0 && in != ofLine {
				w.redactName(name, nameEnd, in == ofAttrs)
			}
			end = w.walkValue(value, chosen)
		}
		i = end
	}
	return i + 1
}

// special walks through a member of the line that keys do not select, or none of them
// alone, and returns its end; 0: it is another.
func (w *rewriter) special(name, nameEnd int) (end int) {
	r, value := w.rule, nameEnd+1
	switch string(w.src[name:nameEnd]) {
	case `"time"`, `"level"`:
	case `"attrs"`:
		if r.action == remove && r.selectsAll() && !r.tenants {
			end = jsonwalk.SkipValue(w.src, value)
			w.leaveMember(name, end, true)
			return end
		}
		w.attrs = true
		end = w.object(value, len(r.keys) == 0 && r.action != only, ofAttrs)
		w.attrs = false
		return end
	default:
		if r.action != only {
			return 0
		}
	}
	return jsonwalk.SkipValue(w.src, value)
}

// seek looks for the member of a rename, and returns the end of the value.
func (w *rewriter) seek(name, nameEnd int, chosen bool, in part) (end int) {
	if !chosen && w.src[nameEnd+1] == '{' {
		return w.object(nameEnd+1, false, below)
	}
	end = jsonwalk.SkipValue(w.src, nameEnd+1)
	if chosen {
		w.name, w.value = jsonwalk.Span{Start: name, End: nameEnd}, jsonwalk.Span{Start: nameEnd + 1, End: end}
		w.attribute, w.found = in == ofAttrs, true
	}
	return end
}

// leads reports whether something in the value at src[i], whose path is w.path, may be
// selected.
func (w *rewriter) leads(i int) bool {
	w.path = append(w.path, '.')
	leads := (w.src[i] == '{' || w.src[i] == '[') && w.rule.leads(w.path)
	w.path = w.path[:len(w.path)-1]
	return leads
}

// enter appends a name to the path and reports whether the member is selected.
// An attribute whose name got a suffix, as there was one before it, is selected
// by the name that it came with too.
func (w *rewriter) enter(raw []byte, in part) bool {
	if in == below {
		w.path = append(w.path, '.')
	}
	w.path = appendLower(w.path, plain(raw, w.text))
	if w.rule.selects(w.path, w.attrs) {
		return true
	}
	if in != ofAttrs || w.rule.action == rename {
		return false
	}
	stem := withoutSuffix(w.path)
	return len(stem) < len(w.path) && w.rule.selects(stem, w.attrs)
}

// withoutSuffix returns the name before _ and a number, or all of it.
func withoutSuffix(name []byte) []byte {
	i := len(name)
	for i > 0 && jsonwalk.IsDigit(name[i-1]) {
		i--
	}
	if i > 0 && i < len(name) && name[i-1] == '_' {
		return name[:i-1]
	}
	return name
}

// walkValue walks through the value at src[i] and returns its end.
func (w *rewriter) walkValue(i int, selected bool) int {
	src, r := w.src, w.rule
	if selected && r.match == nil && r.action == redact {
		end := jsonwalk.SkipValue(src, i)
		w.put(i, end, r.with)
		return end
	}
	switch src[i] {
	case '{':
		return w.object(i, selected, below)
	case '[':
		return w.list(i, selected)
	}
	end := jsonwalk.SkipValue(src, i)
	if selected && r.match != nil && r.action != remove {
		w.scalar(i, end)
	}
	return end
}

// list walks through the elements of the list at src[i], which have its path, and
// returns its end.
func (w *rewriter) list(i int, selected bool) int {
	src, kept := w.src, false
	i++
	for src[i] != ']' && !w.found {
		if src[i] == ',' {
			i++
		}
		if w.rule.action == only && src[i] != '{' && src[i] != '[' {
			end := jsonwalk.SkipValue(src, i)
			w.leaveMember(i, end, kept)
			i = end
			continue
		}
		kept = true
		i = w.walkValue(i, selected)
	}
	return i + 1
}

// scalar looks for matches in a text or a number, and replaces them.
func (w *rewriter) scalar(i, end int) {
	text := w.src[i:end]
	if text[0] == '"' {
		text = plain(text, w.text)
	} else if text[0] != '-' && !jsonwalk.IsDigit(text[0]) {
		return
	}
	m := w.rule.match
	if w.look {
		w.found = w.found || m.in(text) // the name before it may have been found
		return
	}
	if !m.may(text) {
		return
	}
	if at, to := m.next(text, 0); at >= 0 {
		w.flush(i)
		w.replaced(text, at, to)
		w.copied = end
	}
}

// replaced appends text as a JSON string, in which text[at:to] is the first
// match.
func (w *rewriter) replaced(text []byte, at, to int) {
	w.dst = append(w.dst, '"')
	pos := 0
	for at >= 0 {
		w.dst = appendEscaped(w.dst, text[pos:at])
		w.dst = appendEscaped(w.dst, w.rule.withText)
		pos = to
		at, to = w.rule.match.next(text, pos)
	}
	w.dst = appendEscaped(w.dst, text[pos:])
	w.dst = append(w.dst, '"')
	w.changed = true
}

// appendEscaped appends s as it is written between the quotes of a string.
func appendEscaped(dst, s []byte) []byte {
	return jsonline.AppendEscaped(dst, unsafe.String(unsafe.SliceData(s), len(s)))
}

// redactName replaces matches in the name of a member. A name of an attribute stays the
// only one of its kind.
func (w *rewriter) redactName(i, end int, attribute bool) {
	m := w.rule.match
	if m == nil {
		return
	}
	text := plain(w.src[i:end], w.text)
	if w.look {
		w.found = m.in(text)
		return
	}
	if !m.may(text) {
		return
	}
	at, to := m.next(text, 0)
	if at < 0 {
		return
	}
	w.flush(i)
	start := len(w.dst)
	w.replaced(text, at, to)
	w.copied = end
	if attribute {
		tenant := w.rule.tenants && string(plain(w.dst[start:], w.text)) == normalize.Tenant
		if tenant || w.suffix > 0 || hasAttr(w.src, w.dst[start:], w.text) {
			w.dst, w.suffix = appendUnique(w.dst, start, w.src, w.suffix+1, w.text)
		}
		w.suffix = max(w.suffix, 1)
	}
}

// matches reports whether the expression of the rule, if it has one, matches in
// the value src[i:end].
func (w *rewriter) matches(i, end int) bool {
	if w.rule.match == nil {
		return true
	}
	r := rule{action: redact, match: w.rule.match}
	look := rewriter{rule: &r, src: w.src, path: w.path, text: w.text, look: true}
	look.walkValue(i, true)
	return look.found
}

// flush copies what is before src[to].
func (w *rewriter) flush(to int) {
	w.dst = append(w.dst, w.src[w.copied:to]...)
	w.copied = to
	w.changed = true
}

// put replaces src[i:end].
func (w *rewriter) put(i, end int, with []byte) {
	w.flush(i)
	w.dst = append(w.dst, with...)
	w.copied = end
}

// leave leaves src[i:end] out.
func (w *rewriter) leave(i, end int) {
	w.flush(i)
	w.copied = end
}

// leaveMember leaves the member or element src[name:end] out, and a comma. kept
// tells that one before it in the object or list is kept.
func (w *rewriter) leaveMember(name, end int, kept bool) {
	switch {
	case w.src[end] == ',':
		w.leave(name, end+1)
	case kept && w.copied < name:
		w.leave(name-1, end)
	case kept: // those between were left out, each with the comma after it
		w.dst = bytes.TrimSuffix(w.dst, []byte{','})
		w.leave(name, end)
	default:
		w.leave(name, end)
	}
}
