package remote

import (
	"fmt"
	"log/slog"
	"sort"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rollway/rollway/internal/jsonwalk"
	"github.com/rollway/rollway/internal/levels"
	"github.com/rollway/rollway/internal/times"
)

// A record is the known members of a line. It refers to the line's bytes.
type record struct {
	object   bool // the line is one JSON object; nothing else is set if not
	time     time.Time
	level    slog.Level
	hasLevel bool
	msg      []byte // JSON string without its quotes, or nil
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

// read reads line, which has no line end, by the names that loggers commonly use. If
// several members can be the time, the level or the message, the first that is valid
// counts. read fills fields only if all is true.
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
			if t, valid := parseTime(value); valid {
				r.time, ok = t, true
			}
		}
	case "level", "severity", "lvl":
		if !r.hasLevel {
			if value[0] == '"' {
				r.level, r.hasLevel = levels.ParseNamed(value[1 : len(value)-1])
			}
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

// levelIn returns how many of bounds, which grow, are at l or below it.
func levelIn(bounds []slog.Level, l slog.Level) int {
	return sort.Search(len(bounds), func(i int) bool { return l < bounds[i] })
}

// parseTime reads a text or a number of seconds, milliseconds, microseconds or
// nanoseconds since 1970.
func parseTime(value []byte) (t time.Time, ok bool) {
	read := times.Unix
	if value[0] == '"' {
		read, value = times.Parse, value[1:len(value)-1]
	}
	sec, nsec, ok := read(value)
	t = time.Unix(sec, int64(nsec))
	return t, ok && plausible(t)
}

// plausible reports whether t is nanoseconds since 1970 that fit 63 bits, which every
// protocol here can write.
func plausible(t time.Time) bool { return t.Year() >= 1970 && t.Year() < 2262 && t.Unix() > 0 }

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
