package encode

import (
	"log/slog"
	"slices"

	"github.com/rollway/rollway/internal/jsonline"
)

// Scope is what With, WithGroup and Named add to each record of a Logger, or
// ContextWith to each of a context, encoded once for one Format. It is
// immutable: each change makes a new one.
type Scope struct {
	// The values of the slots as the format writes them, "" if not set; Custom
	// formats only have the logger's name. source is never set.
	slots [numSlots]string
	head  string // JSON: all slots with their keys, in the order of the canonical line
	set   uint   // a bit for each slot with a value

	// The attributes that fill no slot, each key once: first those outside groups,
	// then those of each group. They are frozen except in Custom formats. Text has no
	// groups, only longer keys.
	levels []level

	// What precedes the attributes of a call. JSON: the inside of "attrs":{…}, which
	// opens `open` groups and does not close them. Text: `k=v g.k=v`.
	attrs string
	open  int

	pending []string // JSON: the groups after those that are open
	prefix  string   // text: all groups, as "g.h.", not escaped

	// Console: what is below the line for the attributes, and for the error in its
	// slot.
	below, slotBelow string

	outer, inner keySet   // of the outermost level, with the name of its group, and of the innermost
	clash        bool     // a pending group has the name of an attribute beside it
	errorKeys    []string // text: further keys of the error in its slot
}

type level struct {
	group string
	attrs []slog.Attr
}

// A slot is a key of the canonical line that a Logger can fill. Slots are in the
// order of the line.
const (
	slotService = iota
	slotLogger
	slotSource
	slotTraceID
	slotSpanID
	slotError
	slotStack // not in the canonical line, where it is an attribute
	numSlots
	noSlot = -1
)

var slotNames = [numSlots]string{"service", "logger", "source", "trace_id", "span_id", "error", "stack"}

var slotKeys = [numSlots]string{
	slotService: `"service":`,
	slotLogger:  `"logger":`,
	slotSource:  `"source":`,
	slotTraceID: `"trace_id":`,
	slotSpanID:  `"span_id":`,
	slotError:   `"error":`,
	slotStack:   `"stack":`,
}

// slotNamed returns the slot of that name which attributes may fill, or noSlot.
func slotNamed(key string) int {
	switch key {
	case "service":
		return slotService
	case "trace_id":
		return slotTraceID
	case "span_id":
		return slotSpanID
	case "error":
		return slotError
	case "stack":
		return slotStack
	}
	return noSlot
}

// slotOf returns the slot that a fills if it is outside groups, or noSlot.
func slotOf(a *slog.Attr) int {
	slot := slotNamed(a.Key)
	if slot == noSlot || slot == slotError && viewOf(&a.Value).isPlainError() {
		return slot
	}
	switch kind := a.Value.Kind(); {
	case kind == slog.KindString, slot == slotError && kind != slog.KindGroup && kind != slog.KindLogValuer: // groups and LogValuers may turn out empty
		return slot
	}
	return noSlot
}

// inGroup reports whether attributes added now are inside a group.
func (sc *Scope) inGroup() bool { return sc.open > 0 || len(sc.pending) > 0 || sc.prefix != "" }

// outermost returns the attributes outside groups.
func (sc *Scope) outermost() []slog.Attr {
	if len(sc.levels) == 0 {
		return nil
	}
	return sc.levels[0].attrs
}

// hasKey reports whether an attribute with that key is in the group of a call's
// attributes.
func (sc *Scope) hasKey(key string) bool {
	return len(sc.levels) > 0 && HasKey(sc.levels[len(sc.levels)-1].attrs, key)
}

// sharesKey reports whether sc, of a context, and the Scope of a Logger have a key in
// common outside groups.
func (sc *Scope) sharesKey(logger *Scope) bool {
	for _, a := range sc.outermost() {
		if HasKey(logger.outermost(), a.Key) || len(logger.levels) > 1 && logger.levels[1].group == a.Key {
			return true
		}
	}
	return false
}

// WithGroup returns a Scope that puts later attributes into a group.
func (sc Scope) WithGroup(f *Format, name string) Scope {
	if f.isText() {
		sc.prefix += name + "."
		return sc
	}
	if len(sc.levels) <= 1 {
		name = f.printedKey("", name)
	} else {
		name = f.printedKey(within, name)
	}
	if len(sc.levels) == 0 {
		sc.levels = []level{{}}
	}
	sc.levels = append(slices.Clone(sc.levels), level{group: name})
	sc.encode(f)
	return sc
}

// WithAttrs returns a Scope with attrs added.
func (sc Scope) WithAttrs(f *Format, attrs []slog.Attr) Scope {
	if sc.levels = slices.Clone(sc.levels); len(sc.levels) == 0 {
		sc.levels = []level{{}}
	}
	last := &sc.levels[len(sc.levels)-1]
	prefix := sc.prefix
	if !f.isText() && last.group != "" {
		prefix = within
	}
	nodes := maxNodes
	list := append(make([]slog.Attr, 0, len(last.attrs)+len(attrs)), last.attrs...)
	list = f.settle(list, prefix, attrs, 0, &nodes)
	if added := list[len(last.attrs):]; f.Kind != Custom {
		if set, _ := f.slotsIn(added); prefix == "" && set != 0 {
			sc.fillSlots(f, added)
		}
		f.freeze(added, 0, &nodes)
	}
	last.attrs = unique(list, 0, 0)
	sc.encode(f)
	return sc
}

// fillSlots moves the attributes that fill slots there.
func (sc *Scope) fillSlots(f *Format, attrs []slog.Attr) {
	for i := range attrs {
		a := &attrs[i]
		if !f.fills(a) {
			continue
		}
		slot := slotOf(a)
		if f.isText() {
			s := getScratch()
			t := &s.text
			t.begin(f, nil, 0, "")
			t.inField = true
			t.slotValue(slot, a.Value)
			sc.slots[slot] = string(t.dst)
			if slot == slotError {
				sc.slotBelow, sc.errorKeys = string(t.below), t.printedKeys()
			}
			t.end()
			s.free()
		} else {
			sc.slots[slot] = string(f.appendSlotValue(nil, slot, a.Value))
		}
		*a = slog.Attr{}
	}
	sc.joinHead()
}

// encode sets the fields that derive from levels.
func (sc *Scope) encode(f *Format) {
	switch {
	case f.Kind == Custom:
		return
	case f.isText():
		s := getScratch()
		t := &s.text
		t.begin(f, nil, 0, "")
		t.verbatim = true
		t.attrs(sc.outermost(), 0, 0)
		sc.attrs, sc.below = string(t.dst), string(t.below)
		t.end()
		s.free()
		sc.outer = keysOf(sc.outermost())
		return
	}
	last := 0 // of the levels with attributes
	for i, l := range sc.levels {
		if len(l.attrs) > 0 {
			last = i
		}
	}
	sc.clash = false
	for i := 1; i < len(sc.levels); i++ {
		if HasKey(sc.levels[i-1].attrs, sc.levels[i].group) {
			sc.clash = sc.clash || i > last
			if i <= last {
				sc.join(i)
			}
		}
	}
	s := getScratch()
	defer s.free()
	dst := s.Buf[:0]
	sc.pending = nil
	for i, l := range sc.levels {
		switch {
		case i > last:
			sc.pending = append(sc.pending, l.group)
			continue
		case i > 0:
			dst = append(jsonline.AppendKey(dst, l.group), '{')
		}
		dst = f.appendJSONAttrs(dst, l.attrs, 0, nil)
	}
	s.Buf = dst
	sc.attrs, sc.open = string(dst), last
	sc.outer, sc.inner = keysOf(sc.outermost()), keysOf(sc.levels[len(sc.levels)-1].attrs)
	if len(sc.levels) > 1 {
		sc.outer |= keyBit(sc.levels[1].group)
	}
}

// join moves an attribute with the name of an open group beside it into the group.
func (sc *Scope) join(i int) {
	beside, group := &sc.levels[i-1], &sc.levels[i]
	var members []slog.Attr
	beside.attrs = slices.DeleteFunc(slices.Clone(beside.attrs), func(a slog.Attr) bool {
		if a.Key == group.group && a.Value.Kind() == slog.KindGroup {
			members = a.Value.Group()
		}
		return a.Key == group.group
	})
	group.attrs = unique(slices.Concat(members, group.attrs), 0, 0)
}

// WithName returns a Scope of a Logger with that name.
func (sc Scope) WithName(f *Format, name string) Scope {
	switch f.Kind {
	case JSON:
		name = string(jsonline.AppendString(nil, name))
	case Console:
		name = f.consoleName(name)
	case Logfmt:
		name = string(f.appendWord(nil, name))
	}
	sc.slots[slotLogger] = name
	sc.joinHead()
	return sc
}

// consoleName returns the name of a logger as its field shows it.
func (f *Format) consoleName(name string) string {
	for i := range f.fields {
		if field := &f.fields[i]; field.what == slotLogger && !f.bare(field) {
			return string(f.appendWord(nil, name))
		}
	}
	return string(f.appendConsoleMessage(nil, name, true))
}

// joinHead sets head and set from slots.
func (sc *Scope) joinHead() {
	var room [256]byte
	head := room[:0]
	sc.set = 0
	for slot, value := range sc.slots {
		if value != "" {
			head = append(append(append(head, ','), slotKeys[slot]...), value...)
			sc.set |= 1 << slot
		}
	}
	sc.head = string(head)
}
