package enrich

import (
	"bytes"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/internal/jsonwalk"
)

// slotOrder are the keys of a line that a value can be moved to, in their order.
var slotOrder = []string{"msg", "service", "logger", "source", "trace_id", "span_id", "error"}

// rename gives the first value that the rule's keys select its new name.
func (w *rewriter) rename() []byte {
	m, attribute, found := w.find()
	if !found {
		return w.src
	}
	r := w.rule
	if r.slot != "" {
		return w.toSlot(&m)
	}
	if attribute {
		if bytes.Equal(m.RawName(), r.to) {
			return w.src
		}
		w.flush(m.Name.Start)
		w.newName()
		w.copied = m.Value.Start - 1
		w.flush(len(w.src))
		return w.dst
	}
	w.without(&m)
	w.attribute(m.RawValue())
	return w.dst
}

// attribute adds a value under the new name to the attributes of dst, a whole
// line.
func (w *rewriter) attribute(raw []byte) {
	if w.hasAttrs() {
		w.dst = append(w.dst[:len(w.dst)-2], ',')
	} else {
		w.dst = append(w.dst[:len(w.dst)-1], `,"attrs":{`...)
	}
	w.newName()
	w.dst = append(w.dst, ':')
	w.dst = append(w.dst, raw...)
	w.dst = append(w.dst, "}}"...)
}

// provide gives the line the value of with under the name of to, if it has none. It
// returns what rewrite does.
func (r *rule) provide(line []byte, own *[]byte, s *normalize.Scratch) ([]byte, *[]byte) {
	if r.slot == "" && hasAttr(line, r.to, &s.Text) || r.slot != "" && hasSlot(line, r.slot) {
		return line, own
	}
	dst := other(own, s)
	w := rewriter{rule: r, src: line, dst: append((*dst)[:0], line...), text: &s.Text, target: -1}
	if r.slot == "" {
		w.attribute(r.with)
	} else {
		w.insert(r.with, false)
	}
	*dst = w.dst
	return w.dst, dst
}

// hasAttrs reports whether what is in dst, a whole line, has attributes.
func (w *rewriter) hasAttrs() bool {
	_, has := attrsOf(w.dst)
	return has
}

// newName appends the new name of an attribute, which gets a suffix if there is
// one of the name.
func (w *rewriter) newName() {
	start := len(w.dst)
	w.dst = append(w.dst, w.rule.to...)
	if hasAttr(w.src, w.rule.to, w.text) {
		w.dst, _ = appendUnique(w.dst, start, w.src, 2, w.text)
	}
}

// without makes dst the line without the member.
func (w *rewriter) without(m *jsonwalk.Walk) {
	w.target = m.Name.Start
	w.run()
	w.target = -1
}

// find returns the first member that is selected, and whether it is an
// attribute and not inside one or elsewhere.
func (w *rewriter) find() (m jsonwalk.Walk, attribute, found bool) {
	for m = jsonwalk.Members(w.src, 0); m.Next(); {
		raw := m.RawName()
		switch string(raw) {
		case `"time"`, `"level"`:
			continue
		case `"attrs"`:
			w.attrs, w.path = true, w.path[:0]
			m, attribute, found = w.findIn(m.Value.Start, true)
			w.attrs, w.path = false, w.path[:0]
			return m, attribute, found
		}
		w.path = append(w.path[:0], raw[1:len(raw)-1]...)
		if w.selected() {
			w.path = w.path[:0]
			return m, false, true
		}
		if w.src[m.Value.Start] == '{' {
			if inner, _, found := w.findIn(m.Value.Start, false); found {
				w.path = w.path[:0]
				return inner, false, true
			}
		}
	}
	w.path = w.path[:0]
	return m, false, false
}

// findIn is find for the members of the object at src[i], which are the
// attributes if first is true.
func (w *rewriter) findIn(i int, first bool) (m jsonwalk.Walk, attribute, found bool) {
	above := len(w.path)
	for m = jsonwalk.Members(w.src, i); m.Next(); {
		if !first {
			w.path = append(w.path, '.')
		}
		w.path = appendLower(w.path, plain(m.RawName(), w.text))
		if w.selected() {
			return m, first, true
		}
		if w.src[m.Value.Start] == '{' {
			if inner, _, found := w.findIn(m.Value.Start, false); found {
				return inner, false, true
			}
		}
		w.path = w.path[:above]
	}
	return m, false, false
}

func (w *rewriter) selected() bool {
	for i := range w.rule.from {
		if k := &w.rule.from[i]; (w.attrs || !k.attrs) && k.is(w.path) {
			return true
		}
	}
	return false
}

// toSlot moves the value to a key of the line, if that is free and can hold it.
func (w *rewriter) toSlot(m *jsonwalk.Walk) []byte {
	c := w.src[m.Value.Start]
	isText := c == '"'
	quote := false
	switch w.rule.slot {
	case "error":
	case "source":
		if !isText && c != '{' {
			return w.src
		}
	case "msg":
		if c == '{' || c == '[' || c == 'n' {
			return w.src
		}
		quote = !isText
	default:
		if !isText {
			return w.src
		}
	}
	if hasSlot(w.src, w.rule.slot) {
		return w.src
	}
	w.without(m)
	w.insert(m.RawValue(), quote)
	return w.dst
}

// hasSlot reports whether the line has a value for the slot.
func hasSlot(line []byte, slot string) bool {
	for m := jsonwalk.Members(line, 0); nextUpToAttrs(&m); {
		raw := m.RawName()
		switch string(raw[1 : len(raw)-1]) {
		case slot:
			return true
		case "attrs":
			return false
		}
	}
	return false
}

// insert gives dst, a whole line, a value for the rule's slot.
func (w *rewriter) insert(raw []byte, quote bool) {
	at := placeOf(w.rule.slot, w.dst)
	end := len(w.dst)
	w.dst = append(w.dst, ',')
	w.dst = append(w.dst, '"')
	w.dst = append(w.dst, w.rule.slot...)
	w.dst = append(w.dst, `":`...)
	if quote {
		w.dst = append(w.dst, '"')
	}
	w.dst = append(w.dst, raw...)
	if quote {
		w.dst = append(w.dst, '"')
	}
	// From the end to its place, by turning both parts around and the whole.
	reverse(w.dst[at:end])
	reverse(w.dst[end:])
	reverse(w.dst[at:])
}

// placeOf returns where in the line a slot that it does not have belongs.
func placeOf(slot string, line []byte) int {
	order := func(s string) int {
		for i, name := range slotOrder {
			if name == s {
				return i
			}
		}
		return -1 // time and level
	}
	m := jsonwalk.Members(line, 0)
	at := 0
	for nextUpToAttrs(&m) {
		raw := m.RawName()
		name := string(raw[1 : len(raw)-1])
		if name == "attrs" || order(name) > order(slot) {
			break
		}
		at = m.Value.End
	}
	return at
}

func reverse(b []byte) {
	for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
		b[i], b[j] = b[j], b[i]
	}
}
