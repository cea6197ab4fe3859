package enrich

import (
	"bytes"
	"strconv"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/internal/jsonline"
	"github.com/rollway/rollway/internal/jsonwalk"
)

// A rewriter is one walk of a rule through a line. What the rule leaves as it
// is was not copied when the walk ends without a change.
type rewriter struct {
	rule   *rule
	src    []byte
	dst    []byte
	copied int // src[:copied] is in dst, as far as it was not left out

	path    []byte // of the member that the walk is at
	text    *[]byte
	attrs   bool // the walk is below attrs
	target  int  // of rename: where the name of the member to be left out begins
	suffix  int  // the last that a redacted name of an attribute got; 1: none, but there was one
	changed bool

	look  bool // the walk is only to find out whether something matches
	found bool
}

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
	w := rewriter{rule: r, src: line, dst: (*dst)[:0], path: s.Path[:0], text: &s.Text, target: -1}
	if r.action == rename {
		line = w.rename()
	} else {
		line = w.run()
	}
	s.Path = w.path
	*dst = w.dst
	if &line[0] != before {
		own = dst
	}
	return line, own
}

// found reports whether the rule's expression matches in what its keys select.
func (r *rule) found(line []byte, s *normalize.Scratch) bool {
	w := rewriter{rule: r, src: line, path: s.Path[:0], text: &s.Text, target: -1, look: true}
	w.top()
	s.Path = w.path
	return w.found
}

// run walks through all of the line.
func (w *rewriter) run() []byte {
	w.top()
	if !w.changed {
		return w.src
	}
	w.flush(len(w.src))
	if before, empty := bytes.CutSuffix(w.dst, []byte(`,"attrs":{}}`)); empty {
		w.dst = append(before, '}')
	}
	return w.dst
}

// top walks through the members of the line itself.
func (w *rewriter) top() {
	src := w.src
	for i := 1; src[i] != '}' && !w.found; {
		if src[i] == ',' {
			i++
		}
		name, nameEnd := i, jsonwalk.SkipValue(src, i)
		value := nameEnd + 1
		switch string(src[name:nameEnd]) {
		case `"time"`, `"level"`:
			i = jsonwalk.SkipValue(src, value)
			continue
		case `"attrs"`:
			w.attrs = true
			if w.rule.action == remove && w.rule.selectsAll() {
				w.leave(name-1, jsonwalk.SkipValue(src, value))
				return
			}
			w.path = w.path[:0]
			w.object(value, len(w.rule.keys) == 0 && w.rule.action != only, true)
			return // it is the last
		}
		if w.rule.action == only {
			i = jsonwalk.SkipValue(src, value)
			continue
		}
		w.path = append(w.path[:0], src[name+1:nameEnd-1]...)
		selected := len(w.rule.keys) == 0 || w.rule.selects(w.path, false)
		// A key of the line is behind the time: there is always a comma before it.
		if selected && w.rule.action == remove || name == w.target {
			end := jsonwalk.SkipValue(src, value)
			if name == w.target || w.matches(value, end) {
				w.leave(name-1, end)
			}
			i = end
			continue
		}
		i = w.value(value, selected)
	}
	w.path = w.path[:0]
}

// selectsAll reports whether all attributes are selected whatever their names.
func (r *rule) selectsAll() bool {
	if r.match != nil {
		return false
	}
	for i := range r.keys {
		if r.keys[i].text == "**" {
			return true
		}
	}
	return false
}

// object walks through the members of the object at src[i], and returns the
// index behind it. selected tells that the object itself is selected, first that
// its members are the attributes.
func (w *rewriter) object(i int, selected, first bool) int {
	src, r := w.src, w.rule
	above := len(w.path)
	kept := false
	i++
	for src[i] != '}' && !w.found {
		if src[i] == ',' {
			i++
		}
		name, nameEnd := i, jsonwalk.SkipValue(src, i)
		value := nameEnd + 1
		chosen := selected
		if !chosen {
			chosen = w.enter(src[name:nameEnd], first)
		}
		leave := name == w.target
		end := -1
		switch {
		case leave:
		case r.action == remove && chosen:
			end = jsonwalk.SkipValue(src, value)
			leave = w.matches(value, end)
		case r.action == only && !chosen:
			w.path = append(w.path, '.')
			leave = src[value] != '{' && src[value] != '[' || !r.leads(w.path)
			w.path = w.path[:len(w.path)-1]
		}
		switch {
		case leave:
			if end < 0 {
				end = jsonwalk.SkipValue(src, value)
			}
			w.leaveMember(name, end, kept)
		case end >= 0 || r.action == only && chosen:
			kept = true
			if end < 0 {
				end = jsonwalk.SkipValue(src, value)
			}
		default:
			kept = true
			if len(r.keys) == 0 {
				w.name(name, nameEnd, first)
			}
			end = w.value(value, chosen)
		}
		i = end
		w.path = w.path[:above]
	}
	return i + 1
}

// enter appends a name to the path and reports whether the member is selected.
// An attribute whose name got a suffix, as there was one before it, is selected
// by the name that it came with too.
func (w *rewriter) enter(raw []byte, attribute bool) bool {
	if !attribute {
		w.path = append(w.path, '.')
	}
	w.path = appendLower(w.path, plain(raw, w.text))
	if w.rule.selects(w.path, w.attrs) {
		return true
	}
	if !attribute {
		return false
	}
	i := len(w.path)
	for i > 0 && jsonwalk.IsDigit(w.path[i-1]) {
		i--
	}
	return i > 0 && i < len(w.path) && w.path[i-1] == '_' && w.rule.selects(w.path[:i-1], w.attrs)
}

// value walks through the value at src[i] and returns the index behind it.
func (w *rewriter) value(i int, selected bool) int {
	src, r := w.src, w.rule
	if selected && r.match == nil && r.action == redact {
		end := jsonwalk.SkipValue(src, i)
		w.put(i, end, r.with)
		return end
	}
	switch src[i] {
	case '{':
		return w.object(i, selected, false)
	case '[':
		return w.list(i, selected)
	}
	end := jsonwalk.SkipValue(src, i)
	if selected && r.match != nil && r.action != remove && r.action != rename {
		w.scalar(i, end)
	}
	return end
}

// list walks through the elements of the list at src[i], which have its path, and
// returns the index behind it.
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
		i = w.value(i, selected)
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
	start := len(dst)
	dst = jsonline.AppendStringBytes(dst, s)
	n := copy(dst[start:], dst[start+1:len(dst)-1])
	return dst[:start+n]
}

// name replaces matches in the name of a member. A name of an attribute stays
// the only one of its kind.
func (w *rewriter) name(i, end int, attribute bool) {
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
		if w.suffix > 0 || hasAttr(w.src, w.dst[start:], w.text) {
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
	look := rewriter{rule: &r, src: w.src, path: w.path, text: w.text, target: -1, look: true}
	look.value(i, true)
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
	case kept: // those between were left out, each with the comma behind it
		w.dst = bytes.TrimSuffix(w.dst, []byte{','})
		w.leave(name, end)
	default:
		w.leave(name, end)
	}
}

// hasAttr reports whether the line has an attribute of the name, a JSON string.
func hasAttr(line, name []byte, buf *[]byte) bool {
	m, has := attrsOf(line)
	if !has {
		return false
	}
	var own []byte
	want := plain(name, &own)
	for m.Next() {
		if string(plain(m.RawName(), buf)) == string(want) {
			return true
		}
	}
	return false
}

// nextUpToAttrs goes to the next member of a line. Those of attrs, the last one,
// are not looked at.
func nextUpToAttrs(m *jsonwalk.Walk) bool {
	if !m.NextName() {
		return false
	}
	if string(m.RawName()) == `"attrs"` {
		m.SetEnd(-1)
		return true
	}
	return m.SkipValue()
}

// plain returns the text of a JSON string, in buf if it has escapes.
func plain(raw []byte, buf *[]byte) (text []byte) {
	text, *buf = jsonwalk.Text(raw, *buf)
	return text
}

// attrsOf returns the attributes of a line.
func attrsOf(line []byte) (jsonwalk.Walk, bool) {
	for m := jsonwalk.Members(line, 0); nextUpToAttrs(&m); {
		if string(m.RawName()) == `"attrs"` {
			return jsonwalk.Members(line, m.Value.Start), true
		}
	}
	return jsonwalk.Walk{}, false
}

// appendUnique gives the name dst[start:], a JSON string, the first suffix from
// _k on with which the line has no attribute, and returns which that was.
func appendUnique(dst []byte, start int, line []byte, k int, buf *[]byte) ([]byte, int) {
	end := len(dst) - 1
	for k = max(k, 2); ; k++ {
		dst = append(dst[:end], '_')
		dst = strconv.AppendInt(dst, int64(k), 10)
		dst = append(dst, '"')
		if !hasAttr(line, dst[start:], buf) {
			return dst, k
		}
	}
}
