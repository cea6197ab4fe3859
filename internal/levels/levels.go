// Package levels is the table of levels: the names that canonical lines have, and
// what other libraries and protocols call the same.
package levels

import (
	"bytes"
	"log/slog"
	"strconv"
)

// The named levels; the other four are slog's.
const (
	Trace = slog.Level(-8)
	Panic = slog.Level(10)
	Fatal = slog.Level(12)
)

// canonical are the levels with a name of their own in lines, from the most to the
// least important.
var canonical = [...]struct {
	level slog.Level
	name  string
}{
	{Fatal, "FATAL"},
	{Panic, "PANIC"},
	{slog.LevelError, "ERROR"},
	{slog.LevelWarn, "WARN"},
	{slog.LevelInfo, "INFO"},
	{slog.LevelDebug, "DEBUG"},
	{Trace, "TRACE"},
}

// Append appends the name of l, without quotes: the nearest named level at or below
// it and, if they differ, the distance, as in WARN+1. Levels below TRACE are written
// as TRACE-n.
func Append(dst []byte, l slog.Level) []byte {
	i := 0
	for i < len(canonical)-1 && l < canonical[i].level {
		i++
	}
	dst = append(dst, canonical[i].name...)
	switch d := int64(l - canonical[i].level); {
	case d > 0:
		return strconv.AppendInt(append(dst, '+'), d, 10)
	case d < 0:
		return strconv.AppendInt(dst, d, 10)
	}
	return dst
}

// Parse is the inverse of Append, in letters of any case.
func Parse(text []byte) (slog.Level, bool) {
	var distance int64
	for i := 1; i < len(text); i++ {
		if text[i] == '+' || text[i] == '-' {
			var ok bool
			if distance, ok = number(text[i:]); !ok {
				return 0, false
			}
			text = text[:i]
			break
		}
	}
	level, ok := parseName(text)
	return level + slog.Level(distance), ok
}

// parseName reads one of the canonical names.
func parseName(text []byte) (slog.Level, bool) {
	switch string(text) { // the usual ones first: a query asks for each line
	case "INFO":
		return slog.LevelInfo, true
	case "DEBUG":
		return slog.LevelDebug, true
	case "WARN":
		return slog.LevelWarn, true
	case "ERROR":
		return slog.LevelError, true
	}
	for i := range canonical {
		if len(text) == len(canonical[i].name) && bytes.EqualFold(text, []byte(canonical[i].name)) {
			return canonical[i].level, true
		}
	}
	return 0, false
}

// maxText is longer than any level: informational, FATAL+2147483647.
const maxText = 24

// ParseAny reads the level names and numbers of the common libraries: what
// ParseNamed reads, and numbers, which may have white space around them.
//
// Numbers from −8 to 9 and 12 are slog's; multiples of 5 from 10 to 60 are those of
// pino and bunyan: 10 is TRACE, 20 DEBUG, 30 INFO, 40 WARN, 50 ERROR, 60 FATAL, and
// each step of 5 in between is 2 of slog's. 100 DEBUG, 200 INFO, 250 NOTICE, 300
// WARN, 400 ERROR, 500 FATAL, 550 and 600 are Monolog's; 5000 TRACE to 50000 FATAL in
// steps of 10000 are Logback's. Python's numbers mean other levels and are read as
// pino's; those of syslog, whose highest is 0, are read as slog's.
func ParseAny(text []byte) (slog.Level, bool) {
	if level, known := ParseNamed(text); known {
		return level, true
	}
	text = bytes.TrimSpace(text)
	n, numeric := number(text)
	switch {
	case !numeric:
		return ParseNamed(text)
	case text[0] == '+':
		return 0, false
	case n >= -8 && n <= 9 || n == 12:
		return slog.Level(n), true
	case n >= 10 && n <= 60 && n%5 == 0:
		return slog.Level((n - 30) * 4 / 10), true
	}
	level, known := largeNumbers[n]
	return level, known
}

// largeNumbers are the levels of Monolog and Logback.
var largeNumbers = map[int64]slog.Level{
	100: slog.LevelDebug, 200: slog.LevelInfo, 250: slog.LevelInfo + 2, 300: slog.LevelWarn,
	400: slog.LevelError, 500: Fatal, 550: Fatal + 1, 600: Fatal + 2,
	5000: Trace, 10_000: slog.LevelDebug, 20_000: slog.LevelInfo, 30_000: slog.LevelWarn,
	40_000: slog.LevelError, 50_000: Fatal,
}

// ParseNamed reads a level by one of its names below, in letters of any case, or by what
// Append writes, such as WARN+1. verbose is the lowest level, as for Serilog and Android,
// not as for npm; critical is the highest of Python's library, and with it the levels of
// syslog keep their order.
func ParseNamed(text []byte) (slog.Level, bool) {
	if len(text) > maxText {
		return 0, false
	}
	var buf [maxText]byte
	name := lower(&buf, text)
	if name == nil {
		return Parse(text)
	}
	return byName(name)
}

// lower returns text in small letters, in buf; nil if there is something else in it.
func lower(buf *[maxText]byte, text []byte) []byte {
	if len(text) > len(buf) {
		return nil
	}
	for i, c := range text {
		if c |= 0x20; c < 'a' || c > 'z' {
			return nil
		}
		buf[i] = c
	}
	return buf[:len(text)]
}

func byName(name []byte) (slog.Level, bool) {
	switch string(name) {
	case "trace", "trc", "trce", "verbose", "verb", "vrb", "silly", "spam", "finest", "finer", "t", "v":
		return Trace, true
	case "debug", "dbg", "dbug", "debu", "debg", "fine", "d":
		return slog.LevelDebug, true
	case "config", "http":
		return slog.LevelDebug + 2, true
	case "info", "information", "informational", "inf", "log", "note", "i":
		return slog.LevelInfo, true
	case "notice", "success":
		return slog.LevelInfo + 2, true
	case "warn", "warning", "wrn", "w":
		return slog.LevelWarn, true
	case "error", "err", "eror", "erro", "severe", "fail", "failure", "e":
		return slog.LevelError, true
	case "dpanic":
		return slog.LevelError + 1, true
	case "panic", "pnc":
		return Panic, true
	case "fatal", "fatl", "fata", "ftl", "critical", "crit", "fault", "assert", "wtf", "f":
		return Fatal, true
	case "alert":
		return Fatal + 1, true
	case "emergency", "emerg", "emer":
		return Fatal + 2, true
	}
	return 0, false
}

// A Use says where in the head of a line of text a word is a level.
type Use uint8

const (
	Never   Use = iota // it is no level, or more often something else
	Capital            // in capitals, set off from what comes after it
	SetOff             // set off from what comes after it
	Word               // hardly anything else
)

// ParseWord reads a word of a line of text as ParseNamed does, and TRACE1 to TRACE8 and
// DEBUG1 to DEBUG5, and tells where it counts.
func ParseWord(text []byte) (level slog.Level, use Use) {
	if n := len(text) - 1; n == len("trace") && text[n] >= '1' && text[n] <= '8' {
		text = text[:n]
		if level, use = ParseWord(text); level >= slog.LevelInfo {
			return 0, Never
		}
		return level, use
	}
	var buf [maxText]byte
	name := lower(&buf, text)
	level, known := byName(name)
	switch string(name) {
	case "", "t", "d", "i", "w", "e", "f", "v", "silly", "spam", "verb", "http", "fail", "assert", "wtf":
		known = false
	case "fine", "finer", "finest", "config", "log", "success":
		return level, Capital
	case "verbose", "note", "failure", "fault", "alert", "emerg", "emergency", "emer", "panic":
		return level, SetOff
	}
	if !known {
		return 0, Never
	}
	return level, Word
}

// Syslog are the levels of syslog's severities, from 0, emergency, to 7, debug.
var Syslog = [8]slog.Level{Fatal + 2, Fatal + 1, Fatal, slog.LevelError, slog.LevelWarn, slog.LevelInfo + 2, slog.LevelInfo, slog.LevelDebug}

// Severity returns the severity of syslog for l.
func Severity(l slog.Level) int {
	for severity, lowest := range Syslog {
		if l >= lowest || l >= Panic && lowest == Fatal {
			return severity
		}
	}
	return len(Syslog) - 1
}

// SeverityNames are the names of syslog's severities, as Google Cloud has them.
var SeverityNames = [len(Syslog)]string{"EMERGENCY", "ALERT", "CRITICAL", "ERROR", "WARNING", "NOTICE", "INFO", "DEBUG"}

// AppendLower is Append in small letters.
func AppendLower(dst []byte, l slog.Level) []byte {
	mark := len(dst)
	dst = Append(dst, l)
	for i, c := range dst[mark:] {
		if c >= 'A' {
			dst[mark+i] = c | 0x20
		}
	}
	return dst
}

// ParseSyslog reads a severity of syslog: a name, or a number.
func ParseSyslog(text []byte) (slog.Level, bool) {
	if len(text) != 1 || text[0] < '0' || text[0] > '7' {
		return ParseNamed(text)
	}
	return Syslog[text[0]-'0'], true
}

// OTel returns the level of a severity number of OpenTelemetry, which is from 1 to
// 24; 9 is INFO.
func OTel(severity int64) (slog.Level, bool) {
	return slog.Level(severity - 9), severity >= 1 && severity <= 24
}

// ParseOTel reads a severity of OpenTelemetry: a name, or a number.
func ParseOTel(text []byte) (slog.Level, bool) {
	if n, numeric := number(text); numeric {
		return OTel(n)
	}
	return ParseNamed(text)
}

// number reads a decimal integer with or without a sign, of no more than 32 bits.
func number(text []byte) (int64, bool) {
	negative := len(text) > 0 && text[0] == '-'
	if negative || len(text) > 0 && text[0] == '+' {
		text = text[1:]
	}
	if len(text) == 0 || len(text) > 10 {
		return 0, false
	}
	n := int64(0)
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return 0, false
		}
		n = n*10 + int64(text[i]-'0')
	}
	if negative {
		n = -n
	}
	return n, n >= -1<<31 && n <= 1<<31
}
