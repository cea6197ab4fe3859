package rollway

import (
	"encoding/hex"
	"log/slog"
	"strconv"

	"github.com/rollway/rollway/internal/jsonline"
)

// appendJSON appends the line for r, which came through a Logger with state st
// and with a context that adds ctx, if that is not nil.
func (f *format) appendJSON(dst []byte, cache *secondCache, st, ctx *state, r *record, attrs []slog.Attr) []byte {
	filled := uint(0)
	if !st.inGroup() {
		filled = slotsIn(attrs) & f.slots
	}
	if f.fields != nil {
		return f.appendLayout(dst, cache, st, ctx, r, attrs, filled)
	}
	if r.hasTime {
		dst = append(dst, `{"time":`...)
		dst = f.appendTime(dst, cache, r)
		dst = append(dst, ',')
	} else {
		dst = append(dst, '{')
	}
	dst = appendLevelAndMsgKey(dst, r.level)
	dst = jsonline.AppendString(dst, r.msg)
	if filled == 0 && r.source == "" && !r.hasTrace && ctx == nil {
		dst = append(dst, st.head...)
	} else {
		for slot := range numSlots {
			dst = f.appendSlotOf(dst, slot, slotKeys[slot], st, ctx, r, attrs, filled)
		}
	}
	if len(st.attrs) > 0 || len(attrs) > 0 || ctx != nil || r.stack != "" || r.cutFrom > 0 || len(r.extracted) > 0 {
		mark := len(dst)
		dst = append(dst, `,"attrs":{`...)
		var any bool
		if dst, any = f.appendAllAttrs(dst, st, ctx, r, attrs, filled); any {
			dst = append(dst, '}')
		} else {
			dst = dst[:mark]
		}
	}
	return append(dst, "}\n"...)
}

// appendLayout is appendJSON for a layout of the user's.
func (f *format) appendLayout(dst []byte, cache *secondCache, st, ctx *state, r *record, attrs []slog.Attr, filled uint) []byte {
	dst = append(dst, '{')
	for _, field := range f.fields {
		switch field.what {
		case fieldTime:
			if r.hasTime {
				dst = append(appendComma(dst), field.key...)
				dst = f.appendTime(dst, cache, r)
			}
		case fieldLevel:
			dst = append(appendComma(dst), field.key...)
			dst = append(dst, '"')
			dst = jsonline.AppendLevel(dst, r.level)
			dst = append(dst, '"')
		case fieldMsg:
			dst = append(appendComma(dst), field.key...)
			dst = jsonline.AppendString(dst, r.msg)
		case fieldAttrs:
			mark := len(dst)
			if field.key != "" {
				dst = append(appendComma(dst), field.key...)
				dst = append(dst, '{')
			}
			var any bool
			if dst, any = f.appendAllAttrs(dst, st, ctx, r, attrs, filled); !any {
				dst = dst[:mark]
			} else if field.key != "" {
				dst = append(dst, '}')
			}
		default:
			dst = f.appendSlotOf(dst, field.what, field.key, st, ctx, r, attrs, filled)
		}
	}
	return append(dst, "}\n"...)
}

// appendTime appends the record's time as a JSON value.
func (f *format) appendTime(dst []byte, cache *secondCache, r *record) []byte {
	if f.time == RFC3339Nano && f.location == nil {
		dst = append(dst, '"')
		dst = cache.append(dst, r.sec, r.nsec)
		return append(dst, '"')
	}
	return f.appendTimeValue(dst, r.time())
}

// appendLevelAndMsgKey appends everything between the time and the message.
func appendLevelAndMsgKey(dst []byte, l slog.Level) []byte {
	switch l {
	case LevelInfo:
		return append(dst, `"level":"INFO","msg":`...)
	case LevelDebug:
		return append(dst, `"level":"DEBUG","msg":`...)
	case LevelWarn:
		return append(dst, `"level":"WARN","msg":`...)
	case LevelError:
		return append(dst, `"level":"ERROR","msg":`...)
	}
	dst = append(dst, `"level":"`...)
	dst = jsonline.AppendLevel(dst, l)
	return append(dst, `","msg":`...)
}

// appendSlotOf appends a fixed key, if anybody fills it. What is nearest to
// the call wins: its attributes (filled), its caller, the trace, the context's
// attributes, the Logger's.
func (f *format) appendSlotOf(dst []byte, slot int, key string, st, ctx *state, r *record, attrs []slog.Attr, filled uint) []byte {
	value := st.slots[slot]
	if ctx != nil && ctx.slots[slot] != "" {
		value = ctx.slots[slot]
	}
	switch {
	case filled&(1<<slot) != 0:
		dst = append(appendComma(dst), key...)
		return f.appendSlotValue(dst, slot, attrs)
	case slot == slotSource && r.source != "":
		dst = append(appendComma(dst), key...)
		dst = append(dst, '"')
		dst = append(dst, r.source...)
		return append(dst, '"')
	case slot == slotTraceID && r.hasTrace:
		return appendHex(append(appendComma(dst), key...), r.traceID[:])
	case slot == slotSpanID && r.hasTrace:
		return appendHex(append(appendComma(dst), key...), r.spanID[:])
	case value == "":
		return dst
	}
	dst = append(appendComma(dst), key...)
	return append(dst, value...)
}

func appendHex(dst []byte, id []byte) []byte {
	dst = append(dst, '"')
	dst = hex.AppendEncode(dst, id)
	return append(dst, '"')
}

// appendSlotValue appends the value of the first attribute that fills slot.
func (f *format) appendSlotValue(dst []byte, slot int, attrs []slog.Attr) []byte {
	for i := range attrs {
		if slotOf(&attrs[i]) == slot {
			return f.appendJSONValue(dst, attrs[i].Value, 0)
		}
	}
	return append(dst, "null"...) // unreachable: slot is one of slotsIn(attrs)
}

// appendAllAttrs appends the attributes of the context, the Logger, the call
// and the stack as members of the object that dst ends in, and reports whether
// there were any.
func (f *format) appendAllAttrs(dst []byte, st, ctx *state, r *record, attrs []slog.Attr, filled uint) ([]byte, bool) {
	start := len(dst)
	if ctx != nil && len(ctx.attrs) > 0 {
		dst = append(appendComma(dst), ctx.attrs...)
	}
	if f.nameLengths != 0 {
		dst = f.appendTop(dst, r.extracted, 0, 0)
	} else {
		for i := range r.extracted {
			dst = f.appendJSONAttr(dst, &r.extracted[i], 0)
		}
	}
	if r.cutFrom > 0 {
		dst = strconv.AppendInt(jsonline.AppendKey(dst, cutKey), int64(r.cutFrom), 10)
	}
	if r.stack != "" {
		dst = jsonline.AppendString(jsonline.AppendKey(dst, "stack"), r.stack)
	}
	if len(st.attrs) > 0 {
		dst = append(appendComma(dst), st.attrs...)
	}
	if f.nameLengths != 0 && !st.inGroup() {
		dst = f.appendTop(dst, attrs, filled, 0)
		return dst, len(dst) > start
	}
	dst, opened, _ := f.appendMembers(dst, st.pending, attrs, filled)
	for range st.open + opened {
		dst = append(dst, '}')
	}
	return dst, len(dst) > start
}

// appendMembers opens the pending groups and appends the attributes that fill
// no slot of filled. Where nothing comes of it, dst is as it was: groups
// without a member are left out. It reports how many groups it left open and
// whether anything was appended.
func (f *format) appendMembers(dst []byte, pending []string, attrs []slog.Attr, filled uint) (_ []byte, opened int, any bool) {
	if len(attrs) == 0 {
		return dst, 0, false
	}
	mark := len(dst)
	for _, name := range pending {
		dst = jsonline.AppendKey(dst, name)
		dst = append(dst, '{')
	}
	inside := len(dst)
	for i := range attrs {
		if filled != 0 {
			if slot := slotOf(&attrs[i]); slot != noSlot && filled&(1<<slot) != 0 {
				filled &^= 1 << slot // only the first one stands in the slot
				continue
			}
		}
		dst = f.appendJSONAttr(dst, &attrs[i], 0)
	}
	if len(dst) == inside {
		return dst[:mark], 0, false
	}
	return dst, len(pending), true
}

// appendComma appends a comma where one is needed before the next member: the
// last byte of a complete value is never an opening brace, and an empty dst is
// the inside of an object that With begins.
func appendComma(dst []byte) []byte {
	if n := len(dst); n > 0 && dst[n-1] != '{' {
		return append(dst, ',')
	}
	return dst
}

// appendJSONAttr appends one attribute as a member of the object that dst ends
// in. The empty attribute and groups without members append nothing, a group
// without a name appends its members.
func (f *format) appendJSONAttr(dst []byte, a *slog.Attr, depth int) []byte {
	kind := a.Value.Kind()
	switch kind { // the common ones first, without another call
	case slog.KindString:
		return jsonline.AppendString(jsonline.AppendKey(dst, a.Key), a.Value.String())
	case slog.KindInt64:
		return jsonline.AppendInt(jsonline.AppendKey(dst, a.Key), a.Value.Int64())
	case slog.KindBool:
		return strconv.AppendBool(jsonline.AppendKey(dst, a.Key), a.Value.Bool())
	case slog.KindFloat64:
		return jsonline.AppendFloat(jsonline.AppendKey(dst, a.Key), a.Value.Float64())
	case slog.KindDuration:
		return f.appendDuration(jsonline.AppendKey(dst, a.Key), a.Value.Duration())
	case slog.KindTime:
		return f.appendTimeValue(jsonline.AppendKey(dst, a.Key), a.Value.Time())
	}
	return f.appendJSONOther(dst, a, kind, depth)
}

// appendJSONOther is appendJSONAttr for kinds that may append nothing, and the
// rest.
func (f *format) appendJSONOther(dst []byte, a *slog.Attr, kind slog.Kind, depth int) []byte {
	v := a.Value
	if kind == slog.KindLogValuer {
		v = resolve(v)
		kind = v.Kind()
	}
	switch kind {
	case slog.KindGroup:
		return f.appendJSONGroup(dst, a.Key, v.Group(), depth)
	case slog.KindAny:
		if a.Key == "" && v.Any() == nil {
			return dst
		}
	}
	return f.appendJSONKind(jsonline.AppendKey(dst, a.Key), kind, v, depth)
}

func (f *format) appendJSONGroup(dst []byte, key string, group []slog.Attr, depth int) []byte {
	if len(group) == 0 {
		return dst
	}
	if depth >= maxDepth || f.tooLong(dst) {
		return append(jsonline.AppendKey(dst, key), tooDeep...)
	}
	if key == "" {
		for i := range group {
			dst = f.appendJSONAttr(dst, &group[i], depth+1)
		}
		return dst
	}
	mark := len(dst)
	dst = append(jsonline.AppendKey(dst, key), '{')
	inside := len(dst)
	for i := range group {
		dst = f.appendJSONAttr(dst, &group[i], depth+1)
	}
	if len(dst) == inside {
		return dst[:mark]
	}
	return append(dst, '}')
}
