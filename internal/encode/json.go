package encode

import (
	"encoding/hex"
	"log/slog"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"time"

	"github.com/rollway/rollway/internal/jsonline"
	"github.com/rollway/rollway/internal/levels"
)

// appendJSON appends the JSON line for r.
func (f *Format) appendJSON(dst []byte, s *Scratch, logger, ctx *Scope, r *Record, attrs []slog.Attr) []byte {
	var filled filling
	if len(attrs) > 0 || ctx != nil || len(r.Outer) > 0 {
		var repeats bool
		if filled, repeats = f.scan(logger, ctx, r, attrs); repeats {
			return f.appendUnique(dst, s, logger, ctx, r, attrs)
		}
	}
	start, odd := len(dst), false // odd: a key is not written as given
	if f.fields != nil {
		dst = f.appendLayout(dst, &s.second, logger, ctx, r, attrs, filled, &odd)
	} else {
		switch {
		case !r.HasTime:
			dst = append(dst, '{')
		case f.Time == RFC3339Nano && f.Location == nil: // like appendTime, without a call
			dst = append(dst, `{"time":"`...)
			dst = s.second.append(dst, r.Sec, r.Nsec)
			dst = append(dst, `",`...)
		default:
			dst = append(dst, `{"time":`...)
			dst = f.appendTime(dst, &s.second, r)
			dst = append(dst, ',')
		}
		dst = appendLevelAndMsgKey(dst, r.Level)
		dst = jsonline.AppendString(dst, r.Message)
		if filled.slots == 0 && r.Source == nil && !r.HasTrace && ctx == nil {
			dst = append(dst, logger.head...)
		} else {
			for set := slotsSet(logger, ctx, r) | filled.slots; set != 0; set &= set - 1 {
				slot := bits.TrailingZeros(set)
				if filled.slots&(1<<slot) != 0 {
					dst = f.appendFilled(dst, slot, slotKeys[slot], attrs, filled.at)
				} else {
					dst = f.appendSlotOf(dst, slot, slotKeys[slot], logger, ctx, r)
				}
			}
		}
		if len(logger.attrs) > 0 || len(attrs) > bits.OnesCount64(filled.at) || ctx != nil {
			mark := len(dst)
			dst = append(dst, `,"attrs":{`...)
			inside := len(dst)
			if dst = f.appendAllAttrs(dst, logger, ctx, attrs, filled, &odd); len(dst) > inside {
				dst = append(dst, '}')
			} else {
				dst = dst[:mark]
			}
		}
		dst = append(dst, "}\n"...)
	}
	if odd && !r.unique {
		return f.appendUnique(dst[:start], s, logger, ctx, r, attrs)
	}
	return dst
}

// appendLayout appends the JSON line in a layout of the user's.
func (f *Format) appendLayout(dst []byte, cache *secondCache, logger, ctx *Scope, r *Record, attrs []slog.Attr, filled filling, odd *bool) []byte {
	dst = append(dst, '{')
	for i := range f.fields {
		field := &f.fields[i]
		if list := f.replaced(r, field); list != nil {
			dst = f.appendJSONAttrs(dst, list, 0, nil)
			continue
		}
		mark := len(dst)
		switch field.what {
		case fieldTime:
			if r.HasTime {
				dst = append(appendComma(dst), field.key...)
				dst = f.appendTime(dst, cache, r)
			}
		case fieldLevel:
			dst = append(appendComma(dst), field.key...)
			dst = f.appendLevel(dst, r.Level)
		case fieldMsg:
			dst = append(appendComma(dst), field.key...)
			dst = jsonline.AppendString(dst, r.Message)
		case fieldConstant:
			dst = append(appendComma(dst), field.key...)
		case fieldAttrs:
			if field.key != "" {
				dst = append(appendComma(dst), field.key...)
				dst = append(dst, '{')
			}
			inside := len(dst)
			if dst = f.appendAllAttrs(dst, logger, ctx, attrs, filled, odd); len(dst) == inside {
				dst = dst[:mark]
			} else if field.key != "" {
				dst = append(dst, '}')
			}
		default:
			if filled.slots&(1<<field.what) != 0 {
				dst = f.appendFilled(dst, field.what, field.key, attrs, filled.at)
			} else {
				dst = f.appendSlotOf(dst, field.what, field.key, logger, ctx, r)
			}
			if field.prefix != nil && len(dst) > mark {
				at := mark + len(field.key) + 1 // after the quote of the text
				if dst[mark] == ',' {
					at++
				}
				dst = slices.Insert(dst, at, field.prefix...)
			}
			if field.inside && len(dst) > mark {
				dst = append(dst, '}')
			}
		}
	}
	return append(dst, "}\n"...)
}

// appendLevel appends a level as a JSON value.
func (f *Format) appendLevel(dst []byte, l slog.Level) []byte {
	form := &levelForms[f.Level]
	if form.number {
		return form.append(dst, l)
	}
	return append(form.append(append(dst, '"'), l), '"')
}

// levelForms are in the order of rollway.LevelFormat.
var levelForms = [...]struct {
	append func([]byte, slog.Level) []byte
	number bool
}{
	{append: levels.Append},
	{append: levels.AppendLower},
	{func(dst []byte, l slog.Level) []byte { return strconv.AppendInt(dst, int64(l), 10) }, true},
	{func(dst []byte, l slog.Level) []byte { return strconv.AppendInt(dst, int64(levels.Severity(l)), 10) }, true},
	{append: func(dst []byte, l slog.Level) []byte { return append(dst, levels.SeverityNames[levels.Severity(l)]...) }},
}

// appendTime appends the record's time as a JSON value.
func (f *Format) appendTime(dst []byte, cache *secondCache, r *Record) []byte {
	if f.Time == RFC3339Nano && f.Location == nil {
		dst = append(dst, '"')
		dst = cache.append(dst, r.Sec, r.Nsec)
		return append(dst, '"')
	}
	return f.appendTimeValue(dst, r.time())
}

// appendLevelAndMsgKey appends what is between the time and the message.
func appendLevelAndMsgKey(dst []byte, l slog.Level) []byte {
	switch l {
	case slog.LevelInfo:
		return append(dst, `"level":"INFO","msg":`...)
	case slog.LevelDebug:
		return append(dst, `"level":"DEBUG","msg":`...)
	case slog.LevelWarn:
		return append(dst, `"level":"WARN","msg":`...)
	case slog.LevelError:
		return append(dst, `"level":"ERROR","msg":`...)
	}
	dst = append(dst, `"level":"`...)
	dst = levels.Append(dst, l)
	return append(dst, `","msg":`...)
}

// slotsSet returns a bit for each slot that is set, except by the attributes of the
// call.
func slotsSet(logger, ctx *Scope, r *Record) uint {
	set := logger.set
	if ctx != nil {
		set |= ctx.set
	}
	if r.Source != nil {
		set |= 1 << slotSource
	}
	if r.HasTrace {
		set |= 1<<slotTraceID | 1<<slotSpanID
	}
	return set
}

// appendFilled appends a slot that an attribute of the call fills, one of those in
// at.
func (f *Format) appendFilled(dst []byte, slot int, key string, attrs []slog.Attr, at uint64) []byte {
	dst = append(appendComma(dst), key...)
	v := slotValue(slot, attrs, bits.TrailingZeros64(at))
	if f.plain && viewOf(v).isPlainError() { // like appendJSONValue, without a copy of v
		return jsonline.AppendString(dst, viewOf(v).any().(error).Error())
	}
	return f.appendSlotValue(dst, slot, *v)
}

// appendSlotValue appends the value of an attribute that fills slot.
func (f *Format) appendSlotValue(dst []byte, slot int, v slog.Value) []byte {
	if slot == slotError && f.ErrorECS && v.Kind() != slog.KindAny {
		dst = jsonline.AppendString(append(dst, `{"message":`...), v.String())
		return append(dst, '}')
	}
	return f.appendJSONValue(dst, v, 0)
}

// appendSlotOf appends a slot that no attribute of the call fills, if it is set. The
// value nearest to the call wins: caller, trace, the context's attributes, the
// Logger's.
func (f *Format) appendSlotOf(dst []byte, slot int, key string, logger, ctx *Scope, r *Record) []byte {
	value := logger.slots[slot]
	if ctx != nil && ctx.slots[slot] != "" {
		value = ctx.slots[slot]
	}
	switch {
	case slot == slotSource && r.Source != nil:
		return append(append(appendComma(dst), key...), r.Source.JSON[f.Source]...)
	case slot == slotTraceID && r.HasTrace:
		return appendHex(append(appendComma(dst), key...), r.TraceID[:])
	case slot == slotSpanID && r.HasTrace:
		return appendHex(append(appendComma(dst), key...), r.SpanID[:])
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

// slotValue returns the value of the attribute that fills slot, the first from index
// from on.
func slotValue(slot int, attrs []slog.Attr, from int) *slog.Value {
	for i := from; i < len(attrs); i++ {
		if attrs[i].Key == slotNames[slot] {
			return &attrs[i].Value
		}
	}
	return new(slog.Value) // unreachable: slot is one of slotsIn(attrs)
}

// appendAllAttrs appends the attributes of the context, the Logger and the call as
// members of the object that dst ends in, except those that fill slots.
func (f *Format) appendAllAttrs(dst []byte, logger, ctx *Scope, attrs []slog.Attr, filled filling, odd *bool) []byte {
	if ctx != nil && len(ctx.attrs) > 0 {
		dst = append(appendComma(dst), ctx.attrs...)
	}
	if len(logger.attrs) > 0 {
		dst = append(appendComma(dst), logger.attrs...)
	}
	mark, open := len(dst), logger.open
	for _, name := range logger.pending {
		dst = append(jsonline.AppendKey(dst, name), '{')
	}
	inside := len(dst)
	if filled.at != 0 {
		from := 0
		for i := range attrs {
			if filled.at>>(i&63)&1 != 0 && (len(attrs) <= 64 || f.fills(&attrs[i])) {
				dst = f.appendJSONAttrs(dst, attrs[from:i], 0, odd)
				from = i + 1
			}
		}
		attrs = attrs[from:]
	}
	dst = f.appendJSONAttrs(dst, attrs, 0, odd)
	if len(dst) == inside { // empty groups are left out
		dst = dst[:mark]
	} else {
		open += len(logger.pending)
	}
	for range open {
		dst = append(dst, '}')
	}
	return dst
}

// appendComma appends a comma if the next member needs one. The last byte of a
// complete value is never an opening brace; an empty dst is the inside of an object
// that With begins.
func appendComma(dst []byte) []byte {
	if n := len(dst); n > 0 && dst[n-1] != '{' {
		return append(dst, ',')
	}
	return dst
}

// appendJSONAttrs appends attributes as members of the object that dst ends in. The
// empty attribute and groups without members append nothing; a group without a name
// appends its members. It sets odd, if that is not nil, when a key is not written as
// given.
func (f *Format) appendJSONAttrs(dst []byte, attrs []slog.Attr, depth int, odd *bool) []byte {
	for i := range attrs {
		a := &attrs[i]
		v := viewOf(&a.Value)
		switch {
		case !viewable:
		case v.typ == kindType: // the common kinds, without another call
			switch *(*slog.Kind)(v.data) {
			case slog.KindDuration:
				if f.Unit != time.Nanosecond {
					break
				}
				fallthrough
			case slog.KindInt64:
				dst = jsonline.AppendCheckedKey(dst, a.Key, odd)
				if n := int64(v.num); n >= 0 {
					dst = jsonline.AppendUint(dst, v.num)
				} else {
					dst = jsonline.AppendInt(dst, n)
				}
				continue
			case slog.KindBool:
				dst = strconv.AppendBool(jsonline.AppendCheckedKey(dst, a.Key, odd), v.num == 1)
				continue
			case slog.KindFloat64:
				dst = jsonline.AppendFloat(jsonline.AppendCheckedKey(dst, a.Key, odd), math.Float64frombits(v.num))
				continue
			}
		case v.typ == textType:
			dst = jsonline.AppendString(jsonline.AppendCheckedKey(dst, a.Key, odd), v.text())
			continue
		case v.typ == timeType && v.data != nil && f.Time == RFC3339Nano && f.Location == nil:
			dst = append(jsonline.AppendCheckedKey(dst, a.Key, odd), '"')
			dst = append(appendUnixNano(dst, int64(v.num)), '"')
			continue
		case v.isPlainError() && f.plain && a.Key != "":
			dst = jsonline.AppendString(jsonline.AppendCheckedKey(dst, a.Key, odd), v.any().(error).Error())
			continue
		}
		dst = f.appendJSONOther(dst, a, depth, odd)
	}
	return dst
}

// appendJSONOther is appendJSONAttrs for one attribute that may append nothing, or
// that is of a less common kind.
func (f *Format) appendJSONOther(dst []byte, a *slog.Attr, depth int, odd *bool) []byte {
	v, kind := a.Value, a.Value.Kind()
	if kind == slog.KindLogValuer {
		v = resolve(v)
		kind = v.Kind()
	}
	switch {
	case kind == slog.KindGroup && a.Key == "" && depth < maxDepth && !f.tooLong(dst):
		return f.appendJSONAttrs(dst, v.Group(), depth+1, odd)
	case kind == slog.KindAny && a.Key == "" && isNothing(v):
		return dst
	}
	mark := len(dst)
	dst = jsonline.AppendCheckedKey(dst, a.Key, odd)
	inside := len(dst) + 1
	dst = f.appendJSONKind(dst, kind, v, depth)
	if kind == slog.KindGroup && len(dst) == inside+1 { // its brace
		return dst[:mark]
	}
	return dst
}

// appendMembers appends the members of a group, each key once, to the object that dst
// ends in.
func (f *Format) appendMembers(dst []byte, group []slog.Attr, depth int) []byte {
	start, odd := len(dst), f.repeated(group, nil, nil, false)
	if !odd {
		dst = f.appendJSONAttrs(dst, group, depth+1, &odd)
	}
	if !odd {
		return dst
	}
	dst = dst[:start]
	nodes := maxNodes
	return f.appendJSONAttrs(dst, unique(f.settle(nil, within, group, depth, &nodes), 0, 0), depth+1, nil)
}
