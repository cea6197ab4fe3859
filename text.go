package rollway

import (
	"encoding/hex"
	"log/slog"
	"strconv"

	"github.com/rollway/rollway/internal/jsonline"
)

// What logfmt and the console share: fields in the order of a layout, and
// prefix.key=value for each attribute.

// textLine is a logfmt or console line that is being written. It is part of a
// scratch, so that its buffers are used again.
type textLine struct {
	f      *format
	dst    []byte
	start  int    // of the line in dst
	prefix []byte // the groups around what comes next, as they are named, each with a dot behind
	below  []byte // console: what stands under the line, each of its lines behind a line break
	json   []byte // a value on its way through JSON
}

// begin makes t write what follows dst[start:], with nothing around it but the
// name of the attrs field and prefix.
func (t *textLine) begin(f *format, dst []byte, start int, prefix string) {
	t.f, t.dst, t.start = f, dst, start
	t.prefix = append(append(t.prefix[:0], f.attrsPrefix...), prefix...)
	t.below = t.below[:0]
}

// end forgets the line and keeps the buffers that are not too large.
func (t *textLine) end() {
	t.f, t.dst = nil, nil
	if cap(t.prefix)+cap(t.below)+cap(t.json) > maxKept {
		t.prefix, t.below, t.json = nil, nil, nil
	}
}

// appendText appends the line for r, which came through a Logger with state st
// and with a context that adds ctx, if that is not nil.
func (f *format) appendText(dst []byte, s *scratch, st, ctx *state, r *record, attrs []slog.Attr) []byte {
	t := &s.text
	t.begin(f, dst, len(dst), st.prefix)
	filled := uint(0)
	if st.prefix == "" {
		filled = slotsIn(attrs) & f.slots
	}
	for i := range f.fields {
		switch field := &f.fields[i]; field.what {
		case fieldTime:
			if r.hasTime {
				t.time(field, &s.second, r)
			}
		case fieldLevel:
			t.level(field, r.level)
		case fieldMsg:
			t.message(field, r.msg)
		case fieldAttrs:
			t.allAttrs(st, ctx, r, attrs, filled)
		default:
			t.slot(field, st, ctx, r, attrs, filled)
		}
	}
	dst = append(t.dst, t.below...)
	t.end()
	return append(dst, '\n')
}

// separate appends a space where something stands on the line already.
func (t *textLine) separate() {
	if len(t.dst) > t.start {
		t.dst = append(t.dst, ' ')
	}
}

func (t *textLine) time(field *layoutField, cache *secondCache, r *record) {
	f := t.f
	if f.bare(field) {
		t.separate()
		t.color(colorFaint)
		t.clock(r.time())
		t.color(colorReset)
		return
	}
	t.name(field)
	switch {
	case f.kind == kindConsole:
		mark := len(t.dst)
		t.clock(r.time())
		t.requote(mark)
	case f.time == RFC3339Nano && f.location == nil:
		t.dst = cache.append(t.dst, r.sec, r.nsec)
	default:
		t.timeValue(r.time())
	}
}

func (t *textLine) level(field *layoutField, l slog.Level) {
	if !t.f.bare(field) {
		t.name(field)
		t.dst = jsonline.AppendLevel(t.dst, l)
		return
	}
	t.separate()
	t.color(levelColor(l))
	start := len(t.dst)
	t.dst = jsonline.AppendLevel(t.dst, l)
	for len(t.dst)-start < len("ERROR") {
		t.dst = append(t.dst, ' ')
	}
	t.color(colorReset)
}

func (t *textLine) message(field *layoutField, msg string) {
	if !t.f.bare(field) {
		t.name(field)
		t.word(msg)
		return
	}
	t.separate()
	t.dst = appendConsoleMessage(t.dst, msg, len(t.dst) == t.start)
}

// slot appends a fixed field, if anybody fills it. What is nearest to the call
// wins: its attributes (filled), its caller, the trace, the context's
// attributes, the Logger's.
func (t *textLine) slot(field *layoutField, st, ctx *state, r *record, attrs []slog.Attr, filled uint) {
	slot := field.what
	switch {
	case filled&(1<<slot) != 0:
		t.name(field)
		t.slotValue(slot, attrs)
		return
	case slot == slotSource && r.source != "":
		t.name(field)
		t.word(r.source)
		return
	case slot == slotTraceID && r.hasTrace:
		t.name(field)
		t.dst = hex.AppendEncode(t.dst, r.traceID[:])
		return
	case slot == slotSpanID && r.hasTrace:
		t.name(field)
		t.dst = hex.AppendEncode(t.dst, r.spanID[:])
		return
	}
	if ctx != nil && ctx.slots[slot] != "" {
		st = ctx
	}
	value := st.slots[slot]
	switch {
	case value == "":
		return
	case t.f.bare(field): // the logger's name
		t.separate()
		t.dst = append(append(t.dst, value...), ':')
		return
	case slot == slotError:
		t.below = append(t.below, st.slotBelow...)
	}
	t.name(field)
	t.dst = append(t.dst, value...)
}

// slotValue appends the value of the first attribute that fills slot.
func (t *textLine) slotValue(slot int, attrs []slog.Attr) {
	for i := range attrs {
		if slotOf(&attrs[i]) != slot {
			continue
		}
		t.prefix = t.prefix[:0] // of the attributes, which this is none of
		if slot == slotError {
			t.color(colorRed)
		}
		t.value(t.f.fieldName(slot), resolved(attrs[i].Value))
		if slot == slotError {
			t.color(colorReset)
		}
		t.prefix = append(t.prefix[:0], t.f.attrsPrefix...) // and no group
		return
	}
}

// allAttrs appends the attributes of the context, of the Logger and of the
// call, and what the Logger adds itself.
func (t *textLine) allAttrs(st, ctx *state, r *record, attrs []slog.Attr, filled uint) {
	if ctx != nil {
		t.encoded(ctx)
	}
	outer := len(t.f.attrsPrefix) // of the prefix
	prefix := t.prefix
	if len(r.extracted) > 0 {
		t.prefix = prefix[:outer]
		t.attrs(r.extracted, 0, 0)
		t.prefix = append(t.prefix, st.prefix...)
	}
	t.encoded(st)
	t.attrs(attrs, 0, filled)
	if r.cutFrom == 0 && r.stack == "" {
		return
	}
	t.prefix = t.prefix[:outer]
	if r.cutFrom > 0 {
		t.key(cutKey)
		t.dst = strconv.AppendInt(t.dst, int64(r.cutFrom), 10)
	}
	if r.stack != "" && t.f.kind == kindConsole {
		t.stack(r.stack)
	} else if r.stack != "" {
		t.key("stack")
		t.word(r.stack)
	}
}

// encoded appends what With has encoded.
func (t *textLine) encoded(st *state) {
	if st.attrs != "" {
		t.separate()
		t.dst = append(t.dst, st.attrs...)
	}
	t.below = append(t.below, st.below...)
}

// attrs appends attributes, but for those that fill a slot of filled.
func (t *textLine) attrs(attrs []slog.Attr, depth int, filled uint) {
	for i := range attrs {
		a := &attrs[i]
		if filled != 0 {
			if slot := slotOf(a); slot != noSlot && filled&(1<<slot) != 0 {
				filled &^= 1 << slot // only the first one stands in the slot
				continue
			}
		}
		v := resolved(a.Value)
		switch v.Kind() {
		case slog.KindGroup:
			t.group(a.Key, v.Group(), depth)
			continue
		case slog.KindAny:
			if a.Key == "" && v.Any() == nil {
				continue
			}
		case slog.KindString:
			if t.isStack(a.Key, v.String()) {
				t.stack(v.String())
				continue
			}
		}
		mark := len(t.prefix)
		if mark == 0 && t.f.isField(a.Key) {
			t.prefix = append(t.prefix, "attrs."...) // as it stands in the JSON line
		}
		t.key(a.Key)
		t.value(a.Key, v)
		t.prefix = t.prefix[:mark]
	}
}

func (t *textLine) group(key string, group []slog.Attr, depth int) {
	if len(group) > 0 && (depth >= maxDepth || t.f.tooLong(t.dst)) {
		t.key(key)
		t.dst = append(t.dst, tooDeep...)
		return
	}
	mark := len(t.prefix)
	if key != "" {
		t.prefix = append(append(t.prefix, key...), '.')
	}
	t.attrs(group, depth+1, 0)
	t.prefix = t.prefix[:mark]
}

// name appends the name that a field has and an equals sign.
func (t *textLine) name(field *layoutField) {
	t.separate()
	t.color(colorFaint)
	t.dst = t.f.appendKey(t.dst, "", field.name)
	t.dst = append(t.dst, '=')
	t.color(colorReset)
}

// key appends the key of an attribute behind its groups, and an equals sign.
func (t *textLine) key(key string) {
	t.separate()
	t.color(colorFaint)
	t.dst = t.f.appendKey(t.dst, bytesAsString(t.prefix), key)
	t.dst = append(t.dst, '=')
	t.color(colorReset)
}
