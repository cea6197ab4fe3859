package normalize

import (
	"bytes"
	"log/slog"

	"github.com/rollway/rollway/internal/jsonline"
)

// ParseLevel reads the level names and numbers of the common libraries. Names,
// in upper or lower case:
//
//	TRACE    trace trc trce verbose verb vrb silly spam finest finer t v
//	DEBUG    debug dbg dbug debu fine d
//	DEBUG+2  config http
//	INFO     info information informational inf log i
//	INFO+2   notice success
//	WARN     warn warning wrn w
//	ERROR    error err eror erro severe fail e
//	ERROR+1  dpanic
//	PANIC    panic pnc
//	FATAL    fatal fatl ftl critical crit fault assert wtf f
//	FATAL+1  alert
//	FATAL+2  emergency emerg
//
// TRACE, DEBUG, INFO, WARN, ERROR, PANIC and FATAL may be followed by a
// distance, as in WARN+1 or TRACE-1. verbose is what Serilog and Android mean
// by it, the lowest, and npm does not; critical is Python's, the highest of its
// library; with it the levels of syslog keep their order.
//
// Numbers from −8 to 9 and 12 are slog's; multiples of 5 from 10 to 60 are
// those of pino and bunyan, where 10 is TRACE, 20 DEBUG, 30 INFO, 40 WARN,
// 50 ERROR, 60 FATAL and each step of 5 in between is 2 of slog's; 100 DEBUG,
// 200 INFO, 250 NOTICE, 300 WARN, 400 ERROR, 500 FATAL, 550 and 600 are Monolog's;
// 5000 TRACE to 50000 FATAL in steps of 10000 are Logback's. Numbers may come as
// text. Python's, which mean other levels, are read as pino's, and syslog's, of
// which 0 is the highest, as slog's.
func ParseLevel(s string) (slog.Level, bool) {
	var buf [maxLevelText]byte
	if len(s) > len(buf) {
		return 0, false
	}
	return parseLevel(buf[:copy(buf[:], s)])
}

// maxLevelText is longer than any level: informational, FATAL+2147483647.
const maxLevelText = 24

func parseLevel(text []byte) (slog.Level, bool) {
	if level, known := levelOfLetters(text); known {
		return level, true
	}
	text = bytes.TrimSpace(text)
	if len(text) == 0 || len(text) > maxLevelText || text[0] == '+' {
		return 0, false
	}
	if n, numeric := smallInt(text); numeric {
		switch {
		case n >= -8 && n <= 9 || n == 12:
			return slog.Level(n), true
		case n >= 10 && n <= 60 && n%5 == 0:
			return slog.Level((n - 30) * 4 / 10), true
		}
		return largeLevel(n)
	}
	distance := 0
	if i := bytes.IndexAny(text, "+-"); i > 0 {
		var numeric bool
		if distance, numeric = smallInt(text[i:]); !numeric {
			return 0, false
		}
		text = text[:i]
	}
	var buf [maxLevelText]byte
	for i, c := range text {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		buf[i] = c
	}
	name := buf[:len(text)]
	if distance == 0 {
		return levelByName(name)
	}
	return canonicalLevel(name, distance)
}

// largeLevel is a level of Monolog or Logback.
func largeLevel(n int) (slog.Level, bool) {
	switch n {
	case 5000:
		return jsonline.LevelTrace, true
	case 100, 10_000:
		return slog.LevelDebug, true
	case 200, 20_000:
		return slog.LevelInfo, true
	case 250:
		return slog.LevelInfo + 2, true
	case 300, 30_000:
		return slog.LevelWarn, true
	case 400, 40_000:
		return slog.LevelError, true
	case 500, 50_000:
		return jsonline.LevelFatal, true
	case 550:
		return jsonline.LevelFatal + 1, true
	case 600:
		return jsonline.LevelFatal + 2, true
	}
	return 0, false
}

// levelOfLetters is parseLevel for a text of letters alone.
func levelOfLetters(text []byte) (slog.Level, bool) {
	var buf [maxLevelText]byte
	if len(text) > len(buf) {
		return 0, false
	}
	for i, c := range text {
		if c |= 0x20; c < 'a' || c > 'z' {
			return 0, false
		}
		buf[i] = c
	}
	return levelByName(buf[:len(text)])
}

func levelByName(name []byte) (slog.Level, bool) {
	switch string(name) {
	case "trace", "trc", "trce", "verbose", "verb", "vrb", "silly", "spam", "finest", "finer", "t", "v":
		return jsonline.LevelTrace, true
	case "debug", "dbg", "dbug", "debu", "fine", "d":
		return slog.LevelDebug, true
	case "config", "http":
		return slog.LevelDebug + 2, true
	case "info", "information", "informational", "inf", "log", "i":
		return slog.LevelInfo, true
	case "notice", "success":
		return slog.LevelInfo + 2, true
	case "warn", "warning", "wrn", "w":
		return slog.LevelWarn, true
	case "error", "err", "eror", "erro", "severe", "fail", "e":
		return slog.LevelError, true
	case "dpanic":
		return slog.LevelError + 1, true
	case "panic", "pnc":
		return jsonline.LevelPanic, true
	case "fatal", "fatl", "ftl", "critical", "crit", "fault", "assert", "wtf", "f":
		return jsonline.LevelFatal, true
	case "alert":
		return jsonline.LevelFatal + 1, true
	case "emergency", "emerg":
		return jsonline.LevelFatal + 2, true
	}
	return 0, false
}

// canonicalLevel is the level at a distance from one of the seven that the
// canonical line names.
func canonicalLevel(name []byte, distance int) (slog.Level, bool) {
	switch string(name) {
	case "trace", "debug", "info", "warn", "error", "panic", "fatal":
		l, named := levelByName(name)
		return l + slog.Level(distance), named
	}
	return 0, false
}

// smallInt reads a decimal integer of at most nine digits with or without a
// sign.
func smallInt(text []byte) (int, bool) {
	negative := text[0] == '-'
	if negative || text[0] == '+' {
		text = text[1:]
	}
	if len(text) == 0 || len(text) > 9 {
		return 0, false
	}
	n := 0
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	if negative {
		n = -n
	}
	return n, true
}
