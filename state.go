package rollway

import (
	"log/slog"

	"github.com/rollway/rollway/internal/jsonline"
)

// state is what With, WithGroup and Named have fixed for one format, encoded
// once. It is immutable: each of them makes a new one.
type state struct {
	// The values of the fixed keys as the format has them, "" where not set;
	// formats of the user's only have the logger's name. source is never set.
	slots [numSlots]string
	head  string // JSON: all slots with their keys, in the order of the canonical line

	// What stands in front of a call's attributes. JSON: the inside of
	// "attrs":{…} up to there, which opens `open` groups and does not close
	// them. Text: `k=v g.k=v`.
	attrs string
	open  int

	// JSON: groups named but not yet opened, because nothing stands in them;
	// an empty group is left out. Text: all groups, as "g.h.", not escaped.
	pending []string
	groups  []string // JSON: all groups, opened or pending
	prefix  string

	// Console: what stands below the line for the attributes, and for the error
	// in its slot.
	below, slotBelow string

	// The attributes as they were given, for formats that encode them at each
	// call: a list from the outermost group inwards. Only where core.keepRaw.
	raw []rawLevel
}

// rawLevel holds the attributes of one group and the group's name, "" for the
// outermost.
type rawLevel struct {
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

var slotKeys = [numSlots]string{
	slotService: `"service":`,
	slotLogger:  `"logger":`,
	slotSource:  `"source":`,
	slotTraceID: `"trace_id":`,
	slotSpanID:  `"span_id":`,
	slotError:   `"error":`,
}

// slotOf returns the fixed key that a takes the place of, or noSlot. It holds
// only outside groups.
func slotOf(a *slog.Attr) int {
	switch len(a.Key) {
	case 5:
		if a.Key == "error" && a.Value.Kind() != slog.KindGroup { // a group may turn out empty
			return slotError
		}
	case 7:
		if a.Key == "service" && a.Value.Kind() == slog.KindString {
			return slotService
		}
		if a.Key == "span_id" && a.Value.Kind() == slog.KindString {
			return slotSpanID
		}
	case 8:
		if a.Key == "trace_id" && a.Value.Kind() == slog.KindString {
			return slotTraceID
		}
	}
	return noSlot
}

// slotsIn returns a bit for each fixed key that attrs fill. An attribute whose
// slot is taken by an earlier one stays an attribute.
func slotsIn(attrs []slog.Attr) (set uint) {
	for i := range attrs {
		if n := len(attrs[i].Key); n < 5 || n > 8 {
			continue
		}
		if slot := slotOf(&attrs[i]); slot != noSlot {
			set |= 1 << slot
		}
	}
	return set
}

// inGroup reports whether attributes added now stand inside a group.
func (st *state) inGroup() bool { return st.open > 0 || len(st.pending) > 0 }

func (st state) withGroup(f *format, name string) state {
	if f.keepRaw {
		st.raw = append(st.raw[:len(st.raw):len(st.raw)], rawLevel{group: name})
	}
	if f.kind != kindJSON {
		st.prefix += name + "."
		return st
	}
	st.pending = append(st.pending[:len(st.pending):len(st.pending)], name)
	st.groups = append(st.groups[:len(st.groups):len(st.groups)], name)
	return st
}

func (st state) withAttrs(f *format, attrs []slog.Attr) state {
	if f.keepRaw {
		st.raw = append([]rawLevel(nil), st.raw...)
		if len(st.raw) == 0 {
			st.raw = []rawLevel{{}}
		}
		last := &st.raw[len(st.raw)-1]
		last.attrs = append(last.attrs[:len(last.attrs):len(last.attrs)], attrs...)
		return st
	}
	if f.kind != kindJSON {
		return st.withTextAttrs(f, attrs)
	}
	filled := uint(0)
	if !st.inGroup() {
		filled = slotsIn(attrs) & f.slots
		for slot := range numSlots {
			if filled&(1<<slot) != 0 {
				st.slots[slot] = string(f.appendSlotValue(nil, slot, attrs))
			}
		}
		st.joinHead()
		if f.nameLengths != 0 {
			st.attrs = string(f.appendTop([]byte(st.attrs), attrs, filled, 0))
			return st
		}
	}
	buf, opened, any := f.appendMembers([]byte(st.attrs), st.pending, attrs, filled)
	if any {
		st.attrs = string(buf)
		st.open += opened
		st.pending = nil
	}
	return st
}

// withTextAttrs is withAttrs for logfmt and the console.
func (st state) withTextAttrs(f *format, attrs []slog.Attr) state {
	s := scratchPool.Get().(*scratch)
	defer s.free()
	t := &s.text
	filled := uint(0)
	if st.prefix == "" {
		filled = slotsIn(attrs) & f.slots
	}
	for slot := range numSlots {
		if filled&(1<<slot) != 0 {
			t.begin(f, nil, 0, "")
			t.slotValue(slot, attrs)
			st.slots[slot] = string(t.dst)
			if slot == slotError {
				st.slotBelow = string(t.below)
			}
		}
	}
	t.begin(f, []byte(st.attrs), 0, st.prefix)
	t.attrs(attrs, 0, filled)
	st.attrs = string(t.dst)
	st.below += string(t.below)
	t.end()
	st.joinHead()
	return st
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

// joinHead sets what JSON lines have in front of the attributes; for others it
// only tells how long that is.
func (st *state) joinHead() {
	st.head = ""
	for slot, value := range st.slots {
		if value != "" {
			st.head += "," + slotKeys[slot] + value
		}
	}
}
