package remote

import (
	"bytes"
	"fmt"
	"log/slog"
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rollway/rollway/internal/jsonwalk"
	"github.com/rollway/rollway/internal/levels"
)

// A record is what a line says of itself. It refers to the line's bytes.
type record struct {
	object   bool // the line is one JSON object; nothing else is set if not
	time     time.Time
	level    slog.Level
	hasLevel bool
	msg      []byte // JSON string without its quotes; nil if there is none
	stamped  bool   // there is a field "@timestamp"
	fields   []field

	check jsonwalk.Checker // here so that it is not allocated for each line
}

// A field is one that is not the time, level or msg of a line. The members of
// "attrs" are fields of their own.
type field struct {
	key   []byte // JSON string without its quotes
	value []byte // JSON
	attr  bool   // it stood in attrs
}

// maxDepth is how deep values of a line may be nested.
const maxDepth = 200

// read reads line, which has no line end: a canonical line, or one of another
// logger that uses common names. If several members can be the time, the level or the
// message, the first that is valid counts. read fills fields only if all is true.
func (r *record) read(line []byte, all bool) {
	*r = record{fields: r.fields[:0], check: jsonwalk.Checker{MaxDepth: maxDepth}}
	w := r.check.Members(line, jsonwalk.SkipSpace(line, 0))
	for w.Next() {
		name, value := w.RawName(), w.RawValue()
		if key := name[1 : len(name)-1]; !r.take(key, value) && all {
			r.appendField(key, value)
		}
	}
	if end := w.End(); end < 0 || jsonwalk.SkipSpace(line, end) != len(line) {
		*r = record{fields: r.fields[:0]}
		return
	}
	r.object = true
}

// take reports whether the member is the time, the level or the message.
func (r *record) take(key, value []byte) (ok bool) {
	switch string(key) {
	case "time", "ts", "timestamp", "@timestamp":
		r.stamped = r.stamped || key[0] == '@'
		if r.time.IsZero() {
			var t time.Time
			if t, ok = parseTime(value); ok {
				r.time = t
			}
		}
	case "level", "severity", "lvl":
		if !r.hasLevel {
			r.level, r.hasLevel = parseLevel(value)
			ok = r.hasLevel
		}
	case "msg", "message":
		if r.msg == nil && value[0] == '"' {
			r.msg, ok = value[1:len(value)-1], true
		}
	}
	return ok
}

// appendField appends a member to fields, and those of attrs one by one.
func (r *record) appendField(key, value []byte) {
	if string(key) != "attrs" || value[0] != '{' {
		r.fields = append(r.fields, field{key, value, false})
		return
	}
	for w := jsonwalk.Members(value, 0); w.Next(); {
		name := w.RawName()
		r.fields = append(r.fields, field{name[1 : len(name)-1], w.RawValue(), true})
	}
}

// parseTime reads a time as loggers write it: RFC 3339, or a number of seconds,
// milliseconds, microseconds or nanoseconds since 1970, told apart by size.
func parseTime(value []byte) (t time.Time, ok bool) {
	if value[0] == '"' {
		t, err := time.Parse(time.RFC3339Nano, string(value[1:len(value)-1]))
		return t, err == nil && plausible(t)
	}
	if n, err := strconv.ParseInt(string(value), 10, 64); err == nil {
		for unit := int64(time.Second); ; unit /= 1000 {
			if n < int64(1e11)*(int64(time.Second)/unit) || unit == 1 {
				t := time.Unix(n/(int64(time.Second)/unit), n%(int64(time.Second)/unit)*unit)
				return t, plausible(t)
			}
		}
	}
	f, err := strconv.ParseFloat(string(value), 64)
	if err != nil || !(f > 0 && f < 1e18) {
		return t, false
	}
	for f >= 1e11 {
		f /= 1000
	}
	sec := int64(f)
	t = time.Unix(sec, int64((f-float64(sec))*1e9))
	return t, plausible(t)
}

// plausible reports whether every protocol here can write t: nanoseconds since
// 1970 that fit 63 bits.
func plausible(t time.Time) bool { return t.Year() >= 1970 && t.Year() < 2262 && t.Unix() > 0 }

var levelNames = map[string]slog.Level{
	"warning": slog.LevelWarn, "err": slog.LevelError, "dpanic": levels.Panic,
	"notice": slog.LevelInfo + 2, "critical": levels.Fatal, "crit": levels.Fatal,
	"alert": levels.Fatal + 1, "emergency": levels.Fatal + 2, "emerg": levels.Fatal + 2,
}

func parseLevel(value []byte) (slog.Level, bool) {
	if value[0] != '"' {
		return 0, false
	}
	name := value[1 : len(value)-1]
	if l, ok := levels.Parse(name); ok {
		return l, true
	}
	l, ok := levelNames[string(bytes.ToLower(name))]
	return l, ok
}

// appendText appends the text of a JSON string, whose quotes are off. Without
// raw, control characters are written as escapes, so that the text is one line.
// Bytes that are not valid UTF-8 become U+FFFD.
func appendText(dst, inner []byte, raw bool) []byte {
	for len(inner) > 0 {
		c := inner[0]
		if c >= ' ' && c < 0x7f && c != '\\' {
			dst, inner = append(dst, c), inner[1:]
			continue
		}
		r, n := rune(0), 0
		if c == '\\' {
			r, n = jsonwalk.Escape(inner)
		} else {
			r, n = utf8.DecodeRune(inner)
		}
		switch {
		case raw || !unicode.IsControl(r):
			dst = utf8.AppendRune(dst, r)
		case n == len(`\n`) && c == '\\':
			dst = append(dst, inner[:n]...)
		default:
			dst = fmt.Appendf(dst, `\u%04x`, r)
		}
		inner = inner[n:]
	}
	return dst
}
