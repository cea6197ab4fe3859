package rollway

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/rollway/rollway/internal/jsonline"
)

// What logfmt and the console share: ` prefix.key=value` for each attribute.

// appendTextAttrs appends attrs, with the names of the groups they stand in
// joined in prefix.
func (f *format) appendTextAttrs(dst []byte, prefix string, attrs []slog.Attr, depth int) []byte {
	for i := range attrs {
		v := attrs[i].Value
		if v.Kind() == slog.KindLogValuer {
			v = resolve(v)
		}
		key := attrs[i].Key
		switch {
		case v.Kind() == slog.KindGroup:
			dst = f.appendTextGroup(dst, prefix, key, v.Group(), depth)
		case key == "" && v.Kind() == slog.KindAny && v.Any() == nil:
		default:
			dst = f.appendTextKey(dst, prefix, key)
			dst = f.appendTextValue(dst, v)
		}
	}
	return dst
}

func (f *format) appendTextGroup(dst []byte, prefix, key string, group []slog.Attr, depth int) []byte {
	if depth >= maxDepth || f.tooLong(dst) {
		dst = f.appendTextKey(dst, prefix, key)
		return append(dst, tooDeep...)
	}
	if key != "" {
		if f.kind == kindConsole {
			key = string(appendConsoleText(nil, key))
		}
		prefix += key + "."
	}
	return f.appendTextAttrs(dst, prefix, group, depth+1)
}

func (f *format) appendTextKey(dst []byte, prefix, key string) []byte {
	dst = append(dst, ' ')
	if f.kind == kindLogfmt {
		if prefix == "" && key == "" {
			key = "_"
		}
		dst = appendLogfmtKey(dst, prefix)
		dst = appendLogfmtKey(dst, key)
		return append(dst, '=')
	}
	dst = f.appendColor(dst, colorFaint)
	dst = append(dst, prefix...)
	dst = appendConsoleWord(dst, key)
	dst = append(dst, '=')
	return f.appendColor(dst, colorReset)
}

// appendTextValue appends v as a word, in quotes where it would otherwise not
// be seen where it ends.
func (f *format) appendTextValue(dst []byte, v slog.Value) []byte {
	switch v.Kind() {
	case slog.KindString:
		return f.appendWord(dst, v.String())
	case slog.KindInt64:
		return strconv.AppendInt(dst, v.Int64(), 10)
	case slog.KindUint64:
		return strconv.AppendUint(dst, v.Uint64(), 10)
	case slog.KindFloat64:
		return strconv.AppendFloat(dst, v.Float64(), 'g', -1, 64)
	case slog.KindBool:
		return strconv.AppendBool(dst, v.Bool())
	case slog.KindDuration:
		if f.duration == DurationString {
			return append(dst, v.Duration().String()...)
		}
		return f.appendDuration(dst, v.Duration())
	case slog.KindTime:
		if f.kind == kindConsole || f.time == RFC3339Nano && f.location == nil {
			return jsonline.AppendTime(dst, v.Time())
		}
		return f.appendTextTime(dst, v.Time())
	default:
		return f.appendWord(dst, f.anyText(v.Any()))
	}
}

func (f *format) appendWord(dst []byte, s string) []byte {
	if f.kind == kindLogfmt {
		return appendLogfmtWord(dst, s)
	}
	return appendConsoleWord(dst, s)
}

// anyText formats a value of any type; one that panics becomes !PANIC.
func (f *format) anyText(value any) (text string) {
	defer func() {
		if r := recover(); r != nil {
			text = panicText(value, r)
		}
	}()
	switch v := value.(type) {
	case error:
		return v.Error()
	case fmt.Stringer:
		return v.String()
	case []byte:
		return string(v)
	}
	// As JSON, which encoding/json ends where a value holds itself; package fmt
	// would not.
	return jsonText(f.appendJSONAny(nil, value, 0))
}

// jsonText returns what a JSON string says, and other JSON as it is.
func jsonText(encoded []byte) string {
	var s string
	if len(encoded) > 0 && encoded[0] == '"' && json.Unmarshal(encoded, &s) == nil {
		return s
	}
	return string(encoded)
}

// appendTextRest appends what follows the message: the attributes of the
// context, of the Logger and of the call, and the trace.
func (f *format) appendTextRest(dst []byte, st, ctx *state, r *record, attrs []slog.Attr) []byte {
	if ctx != nil {
		dst = append(dst, ctx.attrs...)
	}
	dst = f.appendTextAttrs(dst, "", r.extracted, 0)
	dst = append(dst, st.attrs...)
	dst = f.appendTextAttrs(dst, st.prefix, attrs, 0)
	if r.hasTrace {
		dst = f.appendTextKey(dst, "", "trace_id")
		dst = hex.AppendEncode(dst, r.traceID[:])
		dst = f.appendTextKey(dst, "", "span_id")
		dst = hex.AppendEncode(dst, r.spanID[:])
	}
	if r.source != "" {
		dst = f.appendTextKey(dst, "", "source")
		dst = f.appendWord(dst, r.source)
	}
	if r.cutFrom > 0 {
		dst = f.appendTextKey(dst, "", cutKey)
		dst = strconv.AppendInt(dst, int64(r.cutFrom), 10)
	}
	return dst
}

// needsEscape reports whether r could end a line, move the cursor, reorder the
// text or is not text at all.
func needsEscape(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' || r == 0x7f
	}
	return r == utf8.RuneError || !unicode.IsPrint(r)
}
