package jsonline

import (
	"log/slog"
	"strconv"
	"strings"
)

// The named levels; the middle four are slog's.
const (
	LevelTrace = slog.Level(-8)
	LevelPanic = slog.Level(10)
	LevelFatal = slog.Level(12)
)

// levelNames from the most to the least important.
var levelNames = [...]struct {
	level slog.Level
	name  string
}{
	{LevelFatal, "FATAL"},
	{LevelPanic, "PANIC"},
	{slog.LevelError, "ERROR"},
	{slog.LevelWarn, "WARN"},
	{slog.LevelInfo, "INFO"},
	{slog.LevelDebug, "DEBUG"},
	{LevelTrace, "TRACE"},
}

// AppendLevel appends the name of l, without quotes: the nearest named level
// at or below it and, if they differ, the distance, as in WARN+1. Levels below
// TRACE are written as TRACE-n.
func AppendLevel(dst []byte, l slog.Level) []byte {
	i := 0
	for i < len(levelNames)-1 && l < levelNames[i].level {
		i++
	}
	dst = append(dst, levelNames[i].name...)
	switch d := int64(l - levelNames[i].level); {
	case d > 0:
		return strconv.AppendInt(append(dst, '+'), d, 10)
	case d < 0:
		return strconv.AppendInt(dst, d, 10)
	}
	return dst
}

// ParseLevel is the inverse of AppendLevel, in upper or lower case. It knows
// no other names; the collector's normalization does.
func ParseLevel(s string) (slog.Level, bool) {
	name, offset := s, 0
	if i := strings.IndexAny(s, "+-"); i > 0 {
		n, err := strconv.Atoi(s[i:])
		if err != nil {
			return 0, false
		}
		name, offset = s[:i], n
	}
	for i := range levelNames {
		if strings.EqualFold(name, levelNames[i].name) {
			return levelNames[i].level + slog.Level(offset), true
		}
	}
	return 0, false
}
