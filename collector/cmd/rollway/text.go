package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// appendPlain appends s for a terminal. It writes unprintable characters, line ends and
// changes of text direction included, as Go escapes (\n, \x1b, \u202e).
func appendPlain[T string | []byte](dst []byte, s T) []byte {
	text := string(s)
	for text != "" {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			dst = append(dst, "\uFFFD"...)
		case strconv.IsPrint(r):
			dst = append(dst, text[:size]...)
		default:
			quoted := strconv.AppendQuoteRuneToASCII(nil, r)
			dst = append(dst, quoted[1:len(quoted)-1]...)
		}
		text = text[size:]
	}
	return dst
}

// count writes n with a comma between thousands.
func count(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func lines(n int) string { return plural(n, "line") }

func plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return count(n) + " " + noun
}

// areMany returns n with its noun and the verb.
func areMany(n int, noun string) string {
	if n == 1 {
		return "1 " + noun + " is"
	}
	return plural(n, noun) + " are"
}

// byteCount writes n with three or four digits and a decimal unit.
func byteCount(n int64) string {
	if n < 1000 {
		return strconv.FormatInt(n, 10) + " B"
	}
	value, unit := float64(n), ""
	for _, unit = range []string{"KB", "MB", "GB", "TB", "PB"} {
		if value /= 1000; value < 999.95 {
			break
		}
	}
	return fmt.Sprintf("%.1f %s", value, unit)
}

// shortTime writes d with three figures, rounded down: some durations are promises.
func shortTime(d time.Duration) string { return d.Truncate(lastFigure(d)).String() }

// lastFigure returns the unit of the third figure of d.
func lastFigure(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return unit
}

// A statusLine is a line on a terminal that is overwritten. It is not safe for
// concurrent use.
type statusLine struct {
	w     io.Writer // the terminal itself, which gets carriage returns
	on    bool
	width func() int // columns of the terminal; nil or 0: unknown
	shown int        // columns to clear
	last  time.Time  // when it was written
}

// show replaces the line with text, at most ten times a second.
func (l *statusLine) show(text func() string) {
	if !l.on || time.Since(l.last) < 100*time.Millisecond {
		return
	}
	l.last = time.Now()
	s := text()
	n := utf8.RuneCountInString(s)
	if l.width != nil {
		// A line that wraps cannot be overwritten.
		if w := l.width(); w > 0 && n >= w {
			s = string([]rune(s)[:w-1])
			n = w - 1
		}
	}
	fmt.Fprintf(l.w, "\r%s%s", s, strings.Repeat(" ", max(0, l.shown-n)))
	l.shown = n
}

func (l *statusLine) clear() {
	if l.shown > 0 {
		fmt.Fprintf(l.w, "\r%s\r", strings.Repeat(" ", l.shown))
		l.shown = 0
	}
}
