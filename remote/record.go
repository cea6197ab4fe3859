package remote

import (
	"bytes"
	"log/slog"
	"strconv"
	"time"

	"github.com/rollway/rollway/internal/jsonline"
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
// logger with the usual names. Of several fields for one thing the first that
// can be read counts. fields is filled only if all is true.
func (r *record) read(line []byte, all bool) {
	*r = record{fields: r.fields[:0]}
	s := scanner{p: line}
	ok := s.object(func(key, value []byte) bool {
		switch string(key) {
		case "time", "ts", "timestamp", "@timestamp":
			r.stamped = r.stamped || key[0] == '@'
			if r.time.IsZero() {
				if t, ok := parseTime(value); ok {
					r.time = t
					return true
				}
			}
		case "level", "severity", "lvl":
			if !r.hasLevel {
				if r.level, r.hasLevel = parseLevel(value); r.hasLevel {
					return true
				}
			}
		case "msg", "message":
			if r.msg == nil && value[0] == '"' {
				r.msg = value[1 : len(value)-1]
				return true
			}
		case "attrs":
			if all && value[0] == '{' {
				inner := scanner{p: value}
				return inner.object(func(key, value []byte) bool {
					r.fields = append(r.fields, field{key, value, true})
					return true
				})
			}
		}
		if all {
			r.fields = append(r.fields, field{key, value, false})
		}
		return true
	})
	s.space()
	if r.object = ok && s.i == len(line); !r.object {
		*r = record{fields: r.fields[:0]}
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
	"warning": slog.LevelWarn, "err": slog.LevelError, "dpanic": jsonline.LevelPanic,
	"notice": slog.LevelInfo + 2, "critical": jsonline.LevelFatal, "crit": jsonline.LevelFatal,
	"alert": jsonline.LevelFatal + 1, "emergency": jsonline.LevelFatal + 2, "emerg": jsonline.LevelFatal + 2,
}

func parseLevel(value []byte) (slog.Level, bool) {
	if value[0] != '"' {
		return 0, false
	}
	name := value[1 : len(value)-1]
	if l, ok := jsonline.ParseLevel(string(name)); ok {
		return l, true
	}
	l, ok := levelNames[string(bytes.ToLower(name))]
	return l, ok
}
