package encode

import (
	"encoding/hex"
	"log/slog"
	"slices"
)

// Logfmt and the console share this: fields in the order of a layout, and
// prefix.key=value for each attribute.

// textLine is a logfmt or console line that is being written. It is part of a
// Scratch, so that its buffers are reused.
type textLine struct {
	f      *Format
	dst    []byte
	start  int    // of the line in dst
	prefix []byte // names of the groups around what comes next, each followed by a dot
	below  []byte // console: the lines below the line, each after a line break
	json   []byte // a value that is first encoded as JSON

	verbatim  bool      // keys are already as written, each once
	inField   bool      // the value belongs to a field of the layout
	seen      keySet    // of the keys that the line has
	keys      []textKey // the same, except those of scopes
	scopes    []*Scope  // with attributes in the line
	errorKeys []string  // of the error that With was given
	repeats   bool      // a key appears twice
}

// textKey is the position of a key in textLine.dst.
type textKey struct {
	from, to int
	field    bool
}

// begin starts a line at dst[start:], inside the name of the attrs field and prefix.
func (t *textLine) begin(f *Format, dst []byte, start int, prefix string) {
	t.f, t.dst, t.start = f, dst, start
	t.prefix = append(append(t.prefix[:0], f.attrsPrefix...), prefix...)
	t.below = t.below[:0]
	t.verbatim, t.inField, t.repeats = false, false, false
	t.seen, t.keys, t.scopes, t.errorKeys = 0, t.keys[:0], t.scopes[:0], nil
}

// end drops the line and keeps the buffers that are not too large.
func (t *textLine) end() {
	t.f, t.dst = nil, nil
	clear(t.scopes)
	if cap(t.prefix)+cap(t.below)+cap(t.json)+cap(t.keys) > MaxKept {
		t.prefix, t.below, t.json, t.keys = nil, nil, nil, nil
	}
}

// appendText appends the line for r.
func (f *Format) appendText(dst []byte, s *Scratch, logger, ctx *Scope, r *Record, attrs []slog.Attr) []byte {
	t := &s.text
	t.begin(f, dst, len(dst), logger.prefix)
	t.verbatim = r.unique
	t.repeats = len(r.Outer) > 0
	filled := uint(0)
	if logger.prefix == "" {
		var unclear bool
		filled, unclear = f.slotsIn(attrs)
		t.repeats = t.repeats || unclear || filled != 0 && f.repeated(attrs, nil, nil, false)
		for i := range attrs {
			if isInline(&attrs[i]) {
				_, t.repeats = f.watch(&attrs[i], 0, t.repeats, true)
			}
		}
	}
	for i := range f.fields {
		field := &f.fields[i]
		t.inField = field.what != fieldAttrs
		if list := t.f.replaced(r, field); list != nil {
			prefix, verbatim := string(t.prefix), t.verbatim
			t.prefix, t.verbatim = t.prefix[:0], true // a field has no prefix
			t.attrs(list, 0, 0)
			t.prefix, t.verbatim = append(t.prefix, prefix...), verbatim
			continue
		}
		switch field.what {
		case fieldTime:
			if r.HasTime {
				t.time(field, &s.second, r)
			}
		case fieldLevel:
			t.level(field, r.Level)
		case fieldMsg:
			t.message(field, r.Message)
		case fieldConstant:
			t.name(field)
			t.word(field.value)
		case fieldAttrs:
			t.allAttrs(logger, ctx, attrs, filled)
		default:
			t.slot(field, logger, ctx, r, attrs, filled)
		}
	}
	dst, repeats := append(t.dst, t.below...), t.repeats
	if repeats && !r.unique {
		taken := t.printedKeys()
		t.end()
		return f.appendUniqueText(dst[:t.start], s, logger, ctx, r, attrs, taken)
	}
	t.end()
	return append(dst, '\n')
}

// appendUniqueText is appendUnique for text. An attribute with a key of the fields
// gets the prefix attrs.
func (f *Format) appendUniqueText(dst []byte, s *Scratch, logger, ctx *Scope, r *Record, attrs []slog.Attr, taken []string) []byte {
	bare, bareCtx, list := f.gather(s, logger, ctx, r, attrs)
	for i := range list {
		if slices.Contains(taken, list[i].Key) && !f.fills(&list[i]) {
			list[i].Key = string(f.appendKey(nil, "attrs.", list[i].Key))
		}
	}
	once := *r
	once.unique, once.Outer = true, nil
	return f.appendText(dst, s, bare, bareCtx, &once, unique(list, 0, 0))
}

// printedKeys returns the keys of the line that belong to fields.
func (t *textLine) printedKeys() (keys []string) {
	for _, k := range t.keys {
		if k.field {
			keys = append(keys, string(t.dst[k.from:k.to]))
		}
	}
	return append(keys, t.errorKeys...)
}

// note records the key that the line has from there on.
func (t *textLine) note(from int) {
	if t.verbatim {
		return
	}
	key := bytesAsString(t.dst[from:])
	bit := keyBit(key)
	if t.seen&bit != 0 && !t.repeats {
		t.repeats = t.hasKey(key)
	}
	t.seen |= bit
	t.keys = append(t.keys, textKey{from, len(t.dst), t.inField})
}

func (t *textLine) hasKey(key string) bool {
	for _, k := range t.keys {
		if string(t.dst[k.from:k.to]) == key {
			return true
		}
	}
	for _, sc := range t.scopes {
		if HasKey(sc.outermost(), key) {
			return true
		}
	}
	return slices.Contains(t.errorKeys, key)
}

// separate appends a space unless the line is empty.
func (t *textLine) separate() {
	if len(t.dst) > t.start {
		t.dst = append(t.dst, ' ')
	}
}

func (t *textLine) time(field *layoutField, cache *secondCache, r *Record) {
	f := t.f
	if f.bare(field) {
		t.separate()
		t.color(ColorFaint)
		t.clock(r.time())
		t.color(ColorReset)
		return
	}
	t.name(field)
	switch {
	case f.Kind == Console:
		mark := len(t.dst)
		t.clock(r.time())
		t.requote(mark)
	case f.Time == RFC3339Nano && f.Location == nil:
		t.dst = cache.append(t.dst, r.Sec, r.Nsec)
	default:
		t.timeValue(r.time())
	}
}

func (t *textLine) level(field *layoutField, l slog.Level) {
	if !t.f.bare(field) {
		t.name(field)
		t.dst = levelForms[t.f.Level].append(t.dst, l)
		return
	}
	t.separate()
	t.color(LevelColor(l))
	start := len(t.dst)
	t.dst = levelForms[t.f.Level].append(t.dst, l)
	for len(t.dst)-start < len("ERROR") {
		t.dst = append(t.dst, ' ')
	}
	t.color(ColorReset)
}

func (t *textLine) message(field *layoutField, msg string) {
	if !t.f.bare(field) {
		t.name(field)
		t.word(msg)
		return
	}
	t.separate()
	t.dst = t.f.appendConsoleMessage(t.dst, msg, len(t.dst) == t.start)
}

// slot appends a slot, if it is set. The value nearest to the call wins: its
// attributes (filled), its caller, the trace, the context's attributes, the Logger's.
func (t *textLine) slot(field *layoutField, logger, ctx *Scope, r *Record, attrs []slog.Attr, filled uint) {
	slot := field.what
	switch {
	case filled&(1<<slot) != 0:
		t.name(field)
		t.slotValue(slot, *slotValue(slot, attrs, 0))
		return
	case slot == slotSource && r.Source != nil:
		t.name(field)
		t.word(r.Source.Text(t.f.Source))
		return
	case slot == slotTraceID && r.HasTrace:
		t.name(field)
		t.dst = hex.AppendEncode(t.dst, r.TraceID[:])
		return
	case slot == slotSpanID && r.HasTrace:
		t.name(field)
		t.dst = hex.AppendEncode(t.dst, r.SpanID[:])
		return
	}
	scope := logger
	if ctx != nil && ctx.slots[slot] != "" {
		scope = ctx
	}
	value := scope.slots[slot]
	switch {
	case value == "":
		return
	case t.f.bare(field): // the logger's name
		t.separate()
		t.dst = append(append(t.dst, value...), ':')
		return
	case slot == slotError:
		t.below = append(t.below, scope.slotBelow...)
		for _, key := range scope.errorKeys {
			t.repeats = t.repeats || t.hasKey(key)
			t.seen |= keyBit(key)
		}
		t.errorKeys = scope.errorKeys
	}
	t.name(field)
	t.dst = append(t.dst, value...)
}

// slotValue appends the value of the attribute that fills slot.
func (t *textLine) slotValue(slot int, v slog.Value) {
	prefix := string(t.prefix)
	t.prefix = t.prefix[:0] // of attributes; a field has none
	if slot == slotError {
		t.color(ColorRed)
	}
	t.value(t.f.fieldName(slot), resolved(v))
	if slot == slotError {
		t.color(ColorReset)
	}
	t.prefix = append(t.prefix[:0], prefix...)
}

// allAttrs appends the attributes of the context, the Logger and the call.
func (t *textLine) allAttrs(logger, ctx *Scope, attrs []slog.Attr, filled uint) {
	if ctx != nil {
		t.encoded(ctx)
	}
	t.encoded(logger)
	t.attrs(attrs, 0, filled)
}

// encoded appends the attributes that With has encoded.
func (t *textLine) encoded(logger *Scope) {
	if logger.attrs != "" {
		t.separate()
		t.dst = append(t.dst, logger.attrs...)
	}
	t.below = append(t.below, logger.below...)
	if len(logger.levels) == 0 || t.verbatim {
		return
	}
	if t.seen&logger.outer != 0 && !t.repeats {
		for _, a := range logger.outermost() {
			t.repeats = t.repeats || t.hasKey(a.Key)
		}
	}
	t.seen |= logger.outer
	t.scopes = append(t.scopes, logger)
}

// attrs appends attributes, except those that fill a slot of filled.
func (t *textLine) attrs(attrs []slog.Attr, depth int, filled uint) {
	for i := range attrs {
		a := &attrs[i]
		if filled != 0 && t.f.fills(a) {
			continue
		}
		v := resolved(a.Value)
		switch v.Kind() {
		case slog.KindGroup:
			t.group(a.Key, v.Group(), depth)
			continue
		case slog.KindAny:
			if a.Key == "" && isNothing(v) {
				continue
			}
		case slog.KindString:
			if t.isStack(a.Key, v.String()) {
				t.stack(v.String())
				continue
			}
		}
		mark := len(t.prefix)
		if mark == 0 && !t.verbatim && t.f.isField(a.Key) {
			t.prefix = append(t.prefix, "attrs."...) // as in the JSON line
		}
		t.key(a.Key)
		t.value(a.Key, v)
		t.prefix = t.prefix[:mark]
	}
}

func (t *textLine) group(key string, group []slog.Attr, depth int) {
	if len(group) > 0 && (depth >= maxDepth || t.f.tooLong(t.dst)) {
		t.key(key)
		t.word(tooDeep)
		return
	}
	mark := len(t.prefix)
	if key != "" {
		t.prefix = append(append(t.prefix, key...), '.')
	}
	t.attrs(group, depth+1, 0)
	t.prefix = t.prefix[:mark]
}

// name appends the name of a field and an equals sign.
func (t *textLine) name(field *layoutField) { t.appendKey("", field.name) }

// key appends the key of an attribute after its groups, and an equals sign.
func (t *textLine) key(key string) { t.appendKey(bytesAsString(t.prefix), key) }

func (t *textLine) appendKey(prefix, key string) {
	t.separate()
	t.color(ColorFaint)
	mark := len(t.dst)
	if t.verbatim && !t.inField {
		t.dst = append(t.dst, key...)
	} else {
		t.dst = t.f.appendKey(t.dst, prefix, key)
	}
	t.note(mark)
	t.dst = append(t.dst, '=')
	t.color(ColorReset)
}
