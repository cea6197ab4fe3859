package encode

import (
	"encoding/json"
	"log/slog"
	"strings"
	"unicode/utf8"

	"github.com/rollway/rollway/internal/jsonline"
)

// The attributes of a shortened line: how many bytes it had, and the keys of the
// attributes without room.
const (
	cutKey     = "cut_from_bytes"
	LeftOutKey = "left_out"
)

// leastText is the least part of a long text that is worth writing, in bytes.
const leastText = 32

// shorten encodes r again so that its line has at most f.MaxLine bytes. Attributes
// that fit are written whole, in order. Long texts then share the remaining room
// equally, and attributes without room are named. dst ends with the line that is too
// long, from start on.
func (f *Format) shorten(dst []byte, start int, s *Scratch, logger, ctx *Scope, r *Record, attrs []slog.Attr) []byte {
	bare, bareCtx, list := f.gather(s, logger, ctx, r, attrs)
	nodes := maxNodes
	list = f.freeze(list, 0, &nodes)
	short := *r
	short.unique, short.Outer = true, nil
	from := slog.Int(cutKey, len(dst)-start)
	c := cutter{f: f}
	c.dropSlots(bare)
	if bareCtx != nil {
		c.dropSlots(bareCtx)
	}
	if r.Replaced != nil {
		short.Replaced = r.Replaced.bounded(&c)
	}
	slots := len(c.names)
	for less := 0; less < f.MaxLine; { // a Custom format may write more than estimated
		room := f.MaxLine/2 - less/2 // of the message
		short.Message = f.cutText(r.Message, room, true)
		dst = f.append(dst[:start], s, bare, bareCtx, &short, []slog.Attr{from})
		c.room, c.names, c.long = f.MaxLine-(len(dst)-start)-less, c.names[:slots], c.long[:0]
		fitting := c.fit(list, "")
		c.cutLong()
		if short.Message != r.Message {
			short.Message = f.cutText(r.Message, room+c.room, true)
		}
		if len(c.names) > 0 {
			fitting = append(fitting, slog.Any(LeftOutKey, c.names))
		}
		dst = f.append(dst[:start], s, bare, bareCtx, &short, unique(append(fitting, from), 0, 0))
		over := len(dst) - start - f.MaxLine
		if over <= 0 {
			return dst
		}
		less += over
	}
	short.Message = f.cutText(r.Message, f.MaxLine/32, true)
	dst = f.append(dst[:start], s, &Scope{}, nil, &short, []slog.Attr{from})
	return f.cutEnd(dst, start) // only a LineEncoder writes more than it gets
}

// cutEnd cuts the line from start on at MaxLine, wherever that is.
func (f *Format) cutEnd(dst []byte, start int) []byte {
	if len(dst)-start > f.MaxLine {
		dst = append(dst[:start+runeStart(bytesAsString(dst[start:]), f.MaxLine-1)], '\n')
	}
	return dst
}

// cutter selects the attributes of a line that have room.
type cutter struct {
	f     *Format
	room  int        // bytes that are left
	names []string   // of attributes without room
	long  []longText // texts that are written as far as they have room
}

type longText struct {
	attr *slog.Attr
	path string // of the groups around it, ending with a dot
}

// dropSlots leaves out slots whose values are too long.
func (c *cutter) dropSlots(logger *Scope) {
	most := c.f.MaxLine / 16
	for slot, value := range logger.slots {
		switch {
		case len(value) <= most:
			continue
		case c.f.Kind == Custom:
			value = Shorten(value, most)
		default:
			c.leave(string(slotKeys[slot][1 : len(slotKeys[slot])-2]))
			value = ""
		}
		logger.slots[slot] = value
	}
	if logger.slots[slotError] == "" || len(logger.slotBelow) > most {
		logger.slotBelow = ""
	}
	logger.joinHead()
}

// fit returns the attributes of list that have room, and all long texts.
func (c *cutter) fit(list []slog.Attr, path string) []slog.Attr {
	sizes := make([]int, len(list)) // 0: it is in the line
	for i, a := range list {
		if sizes[i] = c.f.sizeOf(a); sizes[i] <= c.room {
			c.room -= sizes[i]
			sizes[i] = 0
		}
	}
	out := make([]slog.Attr, 0, len(list)+2)
	for i, a := range list {
		if sizes[i] == 0 {
			out = append(out, a)
			continue
		}
		text, isText := textOf(a.Value)
		switch {
		case a.Value.Kind() == slog.KindGroup:
			braces := c.f.sizeOf(slog.String(a.Key, ""))
			c.room -= braces
			if inside := c.fit(a.Value.Group(), path+a.Key+"."); len(inside) > 0 {
				out = append(out, slog.Attr{Key: a.Key, Value: slog.GroupValue(inside...)})
			} else {
				c.room += braces
			}
		case isText:
			out = append(out, slog.String(a.Key, text))
			c.long = append(c.long, longText{&out[len(out)-1], path})
		default:
			c.leave(path + a.Key)
		}
	}
	return out
}

// cutLong divides the remaining room among the long texts.
func (c *cutter) cutLong() {
	for len(c.long) > 0 {
		last := c.long[len(c.long)-1]
		if need := c.f.sizeOf(slog.String(last.attr.Key, "")) + leastText; c.room/len(c.long) >= need {
			break
		}
		c.long = c.long[:len(c.long)-1]
		c.leave(last.path + last.attr.Key)
		*last.attr = slog.Attr{}
	}
	for i, long := range c.long {
		a := long.attr
		text := a.Value.String()
		a.Value = slog.StringValue("")
		a.Value = slog.StringValue(c.f.cutText(text, c.room/(len(c.long)-i)-c.f.sizeOf(*a), false))
		c.room -= c.f.sizeOf(*a)
	}
}

// leave adds the name of an attribute that is left out, if there is room for it.
func (c *cutter) leave(name string) {
	name = Shorten(name, 64)
	n := len(c.names)
	if n > 0 && c.names[n-1] == ellipsis {
		return
	}
	before := 0
	if n > 0 {
		before = c.f.sizeOf(slog.Any(LeftOutKey, c.names))
	}
	c.names = append(c.names, name)
	after := c.f.sizeOf(slog.Any(LeftOutKey, c.names))
	if after > min(c.f.MaxLine/8, 1024) {
		c.names[n] = ellipsis
		after = c.f.sizeOf(slog.Any(LeftOutKey, c.names))
	}
	c.room -= after - before
}

// textOf returns the text of a value that may be cut.
func textOf(v slog.Value) (string, bool) {
	if v.Kind() == slog.KindString {
		return v.String(), true
	}
	if v.Kind() == slog.KindAny {
		switch v := v.Any().(type) {
		case encoded:
			return v.text, v.text != ""
		case error:
			return errorText(v), true
		}
	}
	return "", false
}

// sizeOf returns the number of bytes that a takes in a line; in a Custom format, in a
// JSON line.
func (f *Format) sizeOf(a slog.Attr) int {
	s := getScratch()
	defer s.free()
	if !f.isText() {
		s.Buf = f.appendJSONAttrs(s.Buf[:0], []slog.Attr{a}, 0, nil)
		return len(s.Buf) + 1
	}
	t := &s.text
	t.begin(f, s.Buf[:0], 0, "")
	t.verbatim, t.inField = true, f.fills(&a)
	t.attrs([]slog.Attr{a}, 0, 0)
	s.Buf = t.dst
	n := len(t.dst) + len(t.below) + 1
	t.end()
	return n
}

// freeze replaces the values of list, in place, by values that cannot change.
func (f *Format) freeze(list []slog.Attr, depth int, nodes *int) []slog.Attr {
	for i := range list {
		a := &list[i]
		if *nodes--; *nodes < 0 {
			return list[:i]
		}
		switch a.Value = resolved(a.Value); {
		case a.Value.Kind() == slog.KindGroup && depth < maxDepth:
			members := unique(f.settle(nil, within, a.Value.Group(), depth+1, nodes), 0, 0)
			a.Value = slog.GroupValue(f.freeze(members, depth+1, nodes)...)
		case a.Value.Kind() == slog.KindGroup:
			a.Value = slog.StringValue(tooDeep)
		case a.Value.Kind() == slog.KindAny && f.Kind != Custom:
			a.Value = f.frozen(a)
		}
	}
	return list
}

// encoded is a value as written in the line.
type encoded struct {
	line, below string
	text        string // of an error
}

// frozen returns the value of a, which is of any type, as one that cannot change.
func (f *Format) frozen(a *slog.Attr) slog.Value {
	var e encoded
	switch value := a.Value.Any().(type) {
	case nil, encoded:
		return a.Value
	case error:
		_, marshals := value.(json.Marshaler)
		if e.text = errorText(value); !f.ErrorDetail && (f.isText() || !marshals) {
			return slog.StringValue(e.text)
		}
	}
	if !f.isText() {
		e.line = string(f.appendJSONAny(nil, a.Value.Any(), 0))
		return slog.AnyValue(e)
	}
	s := getScratch()
	defer s.free()
	t := &s.text
	t.begin(f, nil, 0, "")
	t.verbatim, t.inField = true, f.fills(a)
	t.any(a.Key, a.Value.Any())
	e.line, e.below = string(t.dst), string(t.below)
	t.end()
	return slog.AnyValue(e)
}

// maxNodes bounds the attributes of a record that are handled one by one, so that a
// LogValuer whose group contains itself twice ends.
const maxNodes = 10_000

const ellipsis = "…"

// cutText returns s, or as much of it as takes n bytes between quotes, followed by an
// ellipsis. Most messages on the console have no quotes.
func (f *Format) cutText(s string, n int, message bool) string {
	style := escapeJSON
	if f.Kind == Console {
		style = escapeGo
		if message && strings.IndexByte(s, '=') < 0 {
			style = escapeBare
		}
	}
	n -= len(ellipsis)
	end := 0
	for step := 256; end < len(s); {
		next := s[end:runeStart(s, end+step)]
		if size := f.printedLen(next, style); size <= n && next != "" {
			n, end = n-size, end+len(next)
		} else if step /= 2; step == 0 {
			return s[:end] + ellipsis
		}
	}
	return s
}

// printedLen returns the number of bytes that s takes between quotes.
func (f *Format) printedLen(s string, style escapeStyle) int {
	var room [1024]byte
	if f.isText() {
		return len(appendPrintable(room[:0], s, style))
	}
	return len(jsonline.AppendEscaped(room[:0], s))
}

// runeStart returns the length of the longest prefix of s that has at most n bytes
// and no partial rune. What is not UTF-8 may end anywhere.
func runeStart(s string, n int) int {
	if n >= len(s) {
		return len(s)
	}
	for end := n; end >= 0 && end > n-utf8.UTFMax; end-- {
		if utf8.RuneStart(s[end]) {
			return end
		}
	}
	return max(n, 0)
}

// Shorten returns s, or as much of it as fits into n bytes with an ellipsis.
func Shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:runeStart(s, n-len(ellipsis))] + ellipsis
}
