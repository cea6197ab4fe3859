package rollway

import (
	"log/slog"
	"slices"

	"github.com/rollway/rollway/internal/jsonline"
)

// state is what With, WithGroup and Named have fixed for one format, encoded
// once. It is immutable: each of them makes a new one.
type state struct {
	// The values of the fixed keys as the format has them, "" where not set;
	// formats of the user's only have the logger's name. source is never set.
	slots [numSlots]string
	head  string // JSON: all slots with their keys, in the order of the canonical line
	set   uint   // a bit for each slot that is set

	// The attributes that are in no slot, each key once: those outside of groups
	// first, which have no name, then those of each group. They are frozen but
	// for formats of the user's. Text has no groups, only longer keys.
	levels []level

	// What stands in front of a call's attributes. JSON: the inside of
	// "attrs":{…} up to there, which opens `open` groups and does not close
	// them. Text: `k=v g.k=v`.
	attrs string
	open  int

	pending []string // JSON: the groups behind those that are open
	prefix  string   // text: all groups, as "g.h.", not escaped

	// Console: what stands below the line for the attributes, and for the error
	// in its slot.
	below, slotBelow string

	outer, inner keySet   // of the outermost level, with the name of a group in it, and of the innermost
	clash        bool     // a pending group has the name of an attribute beside it
	errorKeys    []string // text: what keys the error in its slot has beside its own
}

type level struct {
	group string
	attrs []slog.Attr
}

// The fixed keys that a Logger can fill, in the order of the canonical line.
const (
	slotService = iota
	slotLogger
	slotSource
	slotTraceID
	slotSpanID
	slotError
	numSlots
	noSlot = -1
)

var slotNames = [numSlots]string{"service", "logger", "source", "trace_id", "span_id", "error"}

var slotKeys = [numSlots]string{
	slotService: `"service":`,
	slotLogger:  `"logger":`,
	slotSource:  `"source":`,
	slotTraceID: `"trace_id":`,
	slotSpanID:  `"span_id":`,
	slotError:   `"error":`,
}

// slotNamed returns the fixed key of that name which attributes may fill, or
// noSlot.
func slotNamed(key string) int {
	switch len(key) {
	case 5:
		if key == "error" {
			return slotError
		}
	case 7:
		if key == "service" {
			return slotService
		}
		if key == "span_id" {
			return slotSpanID
		}
	case 8:
		if key == "trace_id" {
			return slotTraceID
		}
	}
	return noSlot
}

// slotOf returns the fixed key that a takes the place of, or noSlot. It holds
// only outside groups.
func slotOf(a *slog.Attr) int {
	slot := slotNamed(a.Key)
	if slot == noSlot || slot == slotError && viewOf(&a.Value).isPlainError() {
		return slot
	}
	switch kind := a.Value.Kind(); {
	case kind == slog.KindString, slot == slotError && kind != slog.KindGroup && kind != slog.KindLogValuer: // these may turn out empty
		return slot
	}
	return noSlot
}

// inGroup reports whether attributes added now stand inside a group.
func (st *state) inGroup() bool { return st.open > 0 || len(st.pending) > 0 || st.prefix != "" }

// outermost returns the attributes that stand outside of groups.
func (st *state) outermost() []slog.Attr {
	if len(st.levels) == 0 {
		return nil
	}
	return st.levels[0].attrs
}

// hasKey reports whether an attribute with that key stands where those of a
// call do.
func (st *state) hasKey(key string) bool {
	return len(st.levels) > 0 && hasKey(st.levels[len(st.levels)-1].attrs, key)
}

// sharesKey reports whether st, which is a context's, and a Logger's state have
// a key in common outside of groups.
func (st *state) sharesKey(logger *state) bool {
	for _, a := range st.outermost() {
		if hasKey(logger.outermost(), a.Key) || len(logger.levels) > 1 && logger.levels[1].group == a.Key {
			return true
		}
	}
	return false
}

func (st state) withGroup(f *format, name string) state {
	if f.isText() {
		st.prefix += name + "."
		return st
	}
	if len(st.levels) <= 1 {
		name = f.printedKey("", name)
	} else {
		name = f.printedKey(within, name)
	}
	if len(st.levels) == 0 {
		st.levels = []level{{}}
	}
	st.levels = append(slices.Clone(st.levels), level{group: name})
	st.encode(f)
	return st
}

func (st state) withAttrs(f *format, attrs []slog.Attr) state {
	if st.levels = slices.Clone(st.levels); len(st.levels) == 0 {
		st.levels = []level{{}}
	}
	last := &st.levels[len(st.levels)-1]
	prefix := st.prefix
	if !f.isText() && last.group != "" {
		prefix = within
	}
	nodes := maxNodes
	list := append(make([]slog.Attr, 0, len(last.attrs)+len(attrs)), last.attrs...)
	list = f.settle(list, prefix, attrs, 0, &nodes)
	if added := list[len(last.attrs):]; f.kind != kindCustom {
		if set, _ := f.slotsIn(added); prefix == "" && set != 0 {
			st.fillSlots(f, added)
		}
		f.freeze(added, 0, &nodes)
	}
	last.attrs = unique(list, 0, 0)
	st.encode(f)
	return st
}

// fillSlots moves the attributes that fill slots there.
func (st *state) fillSlots(f *format, attrs []slog.Attr) {
	for i := range attrs {
		a := &attrs[i]
		if !f.fills(a) {
			continue
		}
		slot := slotOf(a)
		if f.isText() {
			s := scratchPool.Get().(*scratch)
			t := &s.text
			t.begin(f, nil, 0, "")
			t.inField = true
			t.slotValue(slot, a.Value)
			st.slots[slot] = string(t.dst)
			if slot == slotError {
				st.slotBelow, st.errorKeys = string(t.below), t.printedKeys()
			}
			t.end()
			s.free()
		} else {
			st.slots[slot] = string(f.appendJSONValue(nil, a.Value, 0))
		}
		*a = slog.Attr{}
	}
	st.joinHead()
}

// encode sets what follows from the levels.
func (st *state) encode(f *format) {
	switch {
	case f.kind == kindCustom:
		return
	case f.isText():
		s := scratchPool.Get().(*scratch)
		t := &s.text
		t.begin(f, nil, 0, "")
		t.verbatim = true
		t.attrs(st.outermost(), 0, 0)
		st.attrs, st.below = string(t.dst), string(t.below)
		t.end()
		s.free()
		st.outer = keysOf(st.outermost())
		return
	}
	last := 0 // of the levels in which something stands
	for i, l := range st.levels {
		if len(l.attrs) > 0 {
			last = i
		}
	}
	st.clash = false
	for i := 1; i < len(st.levels); i++ {
		if hasKey(st.levels[i-1].attrs, st.levels[i].group) {
			st.clash = st.clash || i > last
			if i <= last {
				st.join(i)
			}
		}
	}
	s := scratchPool.Get().(*scratch)
	defer s.free()
	dst := s.buf[:0]
	st.pending = nil
	for i, l := range st.levels {
		switch {
		case i > last:
			st.pending = append(st.pending, l.group)
			continue
		case i > 0:
			dst = append(jsonline.AppendKey(dst, l.group), '{')
		}
		dst = f.appendJSONAttrs(dst, l.attrs, 0, nil)
	}
	s.buf = dst
	st.attrs, st.open = string(dst), last
	st.outer, st.inner = keysOf(st.outermost()), keysOf(st.levels[len(st.levels)-1].attrs)
	if len(st.levels) > 1 {
		st.outer |= keyBit(st.levels[1].group)
	}
}

// join moves what stands beside an open group under its name into the group.
func (st *state) join(i int) {
	beside, group := &st.levels[i-1], &st.levels[i]
	var members []slog.Attr
	beside.attrs = slices.DeleteFunc(slices.Clone(beside.attrs), func(a slog.Attr) bool {
		if a.Key == group.group && a.Value.Kind() == slog.KindGroup {
			members = a.Value.Group()
		}
		return a.Key == group.group
	})
	group.attrs = unique(slices.Concat(members, group.attrs), 0, 0)
}

func (st state) withName(f *format, name string) state {
	switch f.kind {
	case kindJSON:
		name = string(jsonline.AppendString(nil, name))
	case kindConsole:
		name = f.consoleName(name)
	case kindLogfmt:
		name = string(appendLogfmtWord(nil, name))
	}
	st.slots[slotLogger] = name
	st.joinHead()
	return st
}

// consoleName returns the name of a logger as its field shows it.
func (f *format) consoleName(name string) string {
	for i := range f.fields {
		if field := &f.fields[i]; field.what == slotLogger && !f.bare(field) {
			return string(appendConsoleWord(nil, name))
		}
	}
	return string(appendConsoleMessage(nil, name, true))
}

// joinHead sets what JSON lines have in front of the attributes, and which slots
// are set.
func (st *state) joinHead() {
	var room [256]byte
	head := room[:0]
	st.set = 0
	for slot, value := range st.slots {
		if value != "" {
			head = append(append(append(head, ','), slotKeys[slot]...), value...)
			st.set |= 1 << slot
		}
	}
	st.head = string(head)
}
