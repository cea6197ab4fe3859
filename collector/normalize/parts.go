package normalize

import (
	"bytes"

	"github.com/rollway/rollway/internal/jsonwalk"
)

// maxTaken is how many members of one object are read.
const maxTaken = 16

// taken are the members of an object that were read: what is left goes to attrs.
type taken struct {
	list [maxTaken]jsonwalk.Span // of values
	n    int
	attr []byte // the attribute that one of them became, as JSON
}

// within reports whether a part of a value was taken, and whether that is all of it.
func (t *taken) within(value jsonwalk.Span) (some, whole bool) {
	for _, s := range t.list[:t.n] {
		if s == value {
			return true, true
		}
		some = some || s.Start >= value.Start && s.End <= value.End
	}
	return some, false
}

// takeParts fills the slots that are free from the members of an object, and puts its
// other members into attrs, as an object. It returns false if it did nothing.
func (n *Normalizer) takeParts(m *lateMember) bool {
	text, name := n.body.text, m.name.Of(n.body.text)
	if text[m.value.Start] != '{' || !n.isRoot(name) {
		return false
	}
	var t taken
	var path [maxName]byte
	n.takeFrom(&t, append(path[:0], name[1:len(name)-1]...), m.value)
	if t.n == 0 || n.ev.fault != ok {
		return false
	}
	if !n.isLeft(&t, m.value) {
		return true
	}
	if bytes.Equal(t.attr, name) {
		n.spread(&t, append(path[:0], name[1:len(name)-1]...), m.value)
		return true
	}
	suffix, fault := n.uniqueSuffix(name, nil)
	if fault == ok && !n.roomFor(len(n.attrs)+m.value.Len()) {
		fault = tooLarge
	}
	if n.ev.fault = fault; fault != ok {
		return true
	}
	n.appendName(name, suffix)
	start := len(n.attrs)
	n.ev.fault = n.appendRest(&t, m.value, n.limits.MaxDepth-2)
	n.noteNested(start, len(n.attrs))
	n.attrs = append(n.attrs, ',')
	return true
}

// takeFrom fills slots from the members of an object, whose names are below path.
func (n *Normalizer) takeFrom(t *taken, path []byte, object jsonwalk.Span) {
	for w := jsonwalk.Members(n.body.text, object.Start); w.Next() && t.n < maxTaken && n.ev.fault == ok; {
		name := w.RawName()
		name = name[1 : len(name)-1]
		if len(path)+1+len(name) > maxName {
			continue
		}
		full := append(append(path, '.'), name...)
		known := n.keys.find(full)
		fits := false
		if known.key < numSlots {
			fits = n.fill(known.key, w.Value)
		} else if r := known.key; r >= firstRow && n.keys.row(r).beside == 0 {
			if fits = n.fillSecond(r, w.Name, w.Value); fits && n.keys.row(r).attr != nil {
				t.attr = n.keys.row(r).attr
			}
		}
		switch {
		case fits:
			t.list[t.n] = w.Value
			t.n++
		case known.root && w.Kind() == '{':
			n.takeFrom(t, full, w.Value)
		}
	}
}

// isLeft reports whether an object has more than what was taken.
func (n *Normalizer) isLeft(t *taken, object jsonwalk.Span) bool {
	for w := jsonwalk.Members(n.body.text, object.Start); w.Next(); {
		if some, whole := t.within(w.Value); !some || !whole && n.isLeft(t, w.Value) {
			return true
		}
	}
	return false
}

// appendRest appends an object without what was taken to attrs.
func (n *Normalizer) appendRest(t *taken, object jsonwalk.Span, depth int) (fault reason) {
	if depth <= 0 {
		return tooDeep
	}
	n.attrs = append(n.attrs, '{')
	for w := jsonwalk.Members(n.body.text, object.Start); fault == ok && w.Next(); {
		some, whole := t.within(w.Value)
		if whole || some && !n.isLeft(t, w.Value) {
			continue
		}
		n.attrs = append(append(n.attrs, w.RawName()...), ':')
		if some {
			fault = n.appendRest(t, w.Value, depth-1)
		} else {
			n.attrs, fault = appendValue(n.attrs, w.RawValue(), n.limits.MaxEventBytes, depth-1)
		}
		n.attrs = append(n.attrs, ',')
	}
	n.attrs[len(n.attrs)-1] = '}'
	return fault
}

// spread adds what was not taken of an object as attributes whose names are below path, as
// its own name is that of another attribute now.
func (n *Normalizer) spread(t *taken, path []byte, object jsonwalk.Span) {
	for w := jsonwalk.Members(n.body.text, object.Start); n.ev.fault == ok && w.Next(); {
		if _, whole := t.within(w.Value); whole {
			continue
		}
		name := w.RawName()
		n.scratch.A = append(append(append(n.scratch.A[:0], '"'), path...), '.')
		n.scratch.A = append(n.scratch.A, name[1:]...)
		n.ev.fault = n.addAttrAs(n.scratch.A, w.Value)
	}
}

var escapedLF = []byte(`\n`)

// hasLines reports whether a JSON string has more than one line.
func hasLines(raw []byte) bool { return bytes.Contains(raw, escapedLF) }
