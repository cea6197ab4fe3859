package query

import (
	"log/slog"
	"strconv"
	"strings"

	"github.com/rollway/rollway/internal/jsonline"
)

// Bounds of the levels that an expression may compare with. Plain numbers stop
// at maxNumber: the 20 to 60 of pino and bunyan are not slog's, and a comparison
// with them would find nothing without a word why.
const (
	maxLevel  = 1 << 31
	maxNumber = 19
)

// parseLevel reads a level as an expression may name it: as a canonical line
// writes it in any case, by another common name, which stands for the level that
// normalization gives it, or by slog's number.
func parseLevel(s string) (slog.Level, bool) {
	var l slog.Level
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return slog.Level(n), n >= -maxLevel && n <= maxNumber
	} else if named, ok := jsonline.ParseLevel(s); ok {
		l = named
	} else {
		switch strings.ToLower(s) {
		case "verbose":
			l = jsonline.LevelTrace
		case "information":
			l = slog.LevelInfo
		case "notice":
			l = slog.LevelInfo + 2
		case "warning":
			l = slog.LevelWarn
		case "err":
			l = slog.LevelError
		case "critical", "crit":
			l = jsonline.LevelFatal
		case "alert":
			l = jsonline.LevelFatal + 1
		case "emergency", "emerg":
			l = jsonline.LevelFatal + 2
		default:
			return 0, false
		}
	}
	return l, l >= -maxLevel && l <= maxLevel
}

// levelOf reads the level of a canonical line without allocating.
func levelOf(raw []byte) (slog.Level, bool) {
	name, offset := raw, slog.Level(0)
	for i, c := range raw {
		if c != '+' && c != '-' {
			continue
		}
		digits := raw[i+1:]
		if len(digits) == 0 || len(digits) > 18 {
			return 0, false
		}
		for _, d := range digits {
			if d < '0' || d > '9' {
				return 0, false
			}
			offset = offset*10 + slog.Level(d-'0')
		}
		if c == '-' {
			offset = -offset
		}
		name = raw[:i]
		break
	}
	switch string(name) {
	case "INFO":
		return slog.LevelInfo + offset, true
	case "DEBUG":
		return slog.LevelDebug + offset, true
	case "WARN":
		return slog.LevelWarn + offset, true
	case "ERROR":
		return slog.LevelError + offset, true
	case "TRACE":
		return jsonline.LevelTrace + offset, true
	case "PANIC":
		return jsonline.LevelPanic + offset, true
	case "FATAL":
		return jsonline.LevelFatal + offset, true
	}
	return 0, false
}
