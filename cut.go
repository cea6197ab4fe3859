package rollway

import (
	"log/slog"
	"strconv"
	"unicode/utf8"

	"github.com/rollway/rollway/internal/jsonline"
)

// cutKey is the attribute that says how many bytes a line had before it was cut.
const cutKey = "cut_from_bytes"

// cut encodes r again so that its line has at most f.maxLine bytes: with the
// message and the values cut shorter and shorter until it fits. The line stays
// valid and says by cut_from_bytes how long it was. dst ends with the line that
// is too long, from start on.
func (f *format) cut(dst []byte, start int, s *scratch, st, ctx *state, r *record, attrs []slog.Attr) []byte {
	short := *r
	short.cutFrom = len(dst) - start
	short.stack = cutString(r.stack, f.maxLine/4)
	shortState, shortCtx := st, ctx
	if len(st.attrs)+len(st.head)+len(st.below)+len(st.slotBelow) > f.maxLine/2 {
		shortState = st.withoutAttrs(f)
	}
	if ctx != nil && len(ctx.attrs)+len(ctx.head)+len(ctx.below)+len(ctx.slotBelow) > f.maxLine/4 {
		shortCtx = nil
	}
	for room := f.maxLine / 2; room >= 8; room /= 4 {
		short.msg = cutString(r.msg, room)
		nodes := maxNodes
		dst = f.append(dst[:start], s, shortState, shortCtx, &short, f.cutAttrs(attrs, room, 0, &nodes))
		if len(dst)-start <= f.maxLine {
			return dst
		}
	}
	short.msg, short.stack = cutString(r.msg, f.maxLine/32), ""
	bare := st.withoutAttrs(f)
	bare.pending, bare.prefix, bare.raw = nil, "", nil
	dst = f.append(dst[:start], s, bare, nil, &short, nil)
	if len(dst)-start > f.maxLine { // only a LineEncoder writes more than it is given
		dst = append(dst[:start+lastRuneStart(dst[start:start+f.maxLine-1])], '\n')
	}
	return dst
}

// withoutAttrs returns st with its groups and the logger's name, cut if it is
// long, and nothing else.
func (st *state) withoutAttrs(f *format) *state {
	bare := &state{pending: st.groups, groups: st.groups, prefix: cutString(st.prefix, f.maxLine/32)}
	for _, level := range st.raw {
		bare.raw = append(bare.raw, rawLevel{group: level.group})
	}
	name := st.slots[slotLogger]
	if len(name) > f.maxLine/32 {
		switch name = cutString(name, f.maxLine/32); f.kind { // of a value in quotes the last would be lost
		case kindJSON:
			name = string(jsonline.AppendString(nil, "!CUT"))
		case kindConsole, kindLogfmt:
			name = "!CUT"
		}
	}
	bare.slots[slotLogger] = name
	bare.joinHead()
	return bare
}

// maxNodes bounds the attributes that are looked at one by one in a record, for
// instance by cut, so that a LogValuer whose group holds itself twice ends.
const maxNodes = 10_000

// cutAttrs returns a copy of attrs in which no value is much longer than room.
func (f *format) cutAttrs(attrs []slog.Attr, room, depth int, nodes *int) []slog.Attr {
	short := make([]slog.Attr, 0, min(len(attrs), *nodes))
	for _, a := range attrs {
		if *nodes--; *nodes < 0 {
			break
		}
		v := a.Value
		if v.Kind() == slog.KindLogValuer {
			v = resolve(v)
		}
		switch v.Kind() {
		case slog.KindString:
			v = slog.StringValue(cutString(v.String(), room))
		case slog.KindGroup:
			if depth < maxDepth {
				v = slog.GroupValue(f.cutAttrs(v.Group(), room, depth+1, nodes)...)
			}
		case slog.KindAny:
			if err, ok := v.Any().(error); ok {
				v = slog.StringValue(cutString(errorText(err), room))
			} else if n := len(f.appendJSONAny(nil, v.Any(), depth)); n > room {
				v = slog.StringValue("!CUT: " + strconv.Itoa(n) + " bytes")
			}
		}
		short = append(short, slog.Attr{Key: cutString(a.Key, max(room, 64)), Value: v})
	}
	return short
}

const ellipsis = "…"

// cutString returns s, or as much of it as fits into n bytes with an ellipsis
// behind it.
func cutString(s string, n int) string {
	if len(s) <= n {
		return s
	}
	n = max(n-len(ellipsis), 0)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + ellipsis
}

// lastRuneStart returns the length of p without a rune that is cut off.
func lastRuneStart(p []byte) int {
	n := len(p)
	for i := n - 1; i >= 0 && i >= n-utf8.UTFMax; i-- {
		if utf8.RuneStart(p[i]) {
			if utf8.FullRune(p[i:]) {
				return n
			}
			return i
		}
	}
	return n
}
