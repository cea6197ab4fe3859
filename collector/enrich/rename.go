package enrich

import (
	"bytes"
	"slices"

	"github.com/rollway/rollway/collector/normalize"
)

// rename gives the member that the walk has found its new name.
func (w *rewriter) rename() []byte {
	r := w.rule
	switch {
	case !w.found:
		return w.src
	case r.slot != "":
		return w.toSlot()
	case !w.attribute:
		w.without()
		w.addAttr(w.value.Of(w.src))
		return w.dst
	case bytes.Equal(w.name.Of(w.src), r.to):
		return w.src
	}
	w.flush(w.name.Start)
	w.newName()
	w.copied = w.name.End
	w.flush(len(w.src))
	return w.dst
}

// addAttr adds a value under the new name to the attributes of dst, a whole line.
func (w *rewriter) addAttr(raw []byte) {
	_, has := attrsOf(w.dst)
	w.dst = openAttrs(w.dst, has)
	w.newName()
	w.dst = append(w.dst, ':')
	w.dst = append(w.dst, raw...)
	w.dst = append(w.dst, "}}"...)
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

// without makes dst the line without the member found.
func (w *rewriter) without() {
	w.leaveMember(w.name.Start, w.value.End, w.src[w.name.Start-1] == ',')
	w.rest()
}

// toSlot moves the value to a key of the line, if that is free and can hold it.
func (w *rewriter) toSlot() []byte {
	value, slot := w.value.Of(w.src), w.rule.slot
	fits := value[0] == '"'
	switch slot {
	case "error":
		fits = true
	case "source":
		fits = fits || value[0] == '{'
	case "msg":
		fits = value[0] != '{' && value[0] != '[' && value[0] != 'n'
	}
	if _, has := slotAt(w.src, slot); has || !fits {
		return w.src
	}
	w.without()
	w.insert(value)
	return w.dst
}

// insert gives dst, a whole line, a value for the rule's slot.
func (w *rewriter) insert(raw []byte) {
	slot, quote := w.rule.slot, ""
	if slot == "msg" && raw[0] != '"' {
		quote = `"`
	}
	at, _ := slotAt(w.dst, slot)
	end, size := len(w.dst), len(slot)+len(`,"":`)+len(raw)+2*len(quote)
	w.dst = slices.Grow(w.dst, size)[:end+size]
	copy(w.dst[at+size:], w.dst[at:end])
	gap := append(w.dst[at:at], `,"`...)
	gap = append(append(gap, slot...), `":`...)
	gap = append(append(gap, quote...), raw...)
	_ = append(gap, quote...)
}

// provide gives the line the value of with under the name of to, if it has none. It
// returns what rewrite does.
func (r *rule) provide(line []byte, own *[]byte, s *normalize.Scratch) ([]byte, *[]byte) {
	has := false
	if r.slot == "" {
		has = hasAttr(line, r.to, &s.Text)
	} else {
		_, has = slotAt(line, r.slot)
	}
	if has {
		return line, own
	}
	dst := other(own, s)
	w := rewriter{rule: r, src: line, dst: append((*dst)[:0], line...), text: &s.Text}
	if r.slot == "" {
		w.addAttr(r.with)
	} else {
		w.insert(r.with)
	}
	*dst = w.dst
	return w.dst, dst
}
