package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// appendPlain appends s so that a terminal shows it and nothing else: control
// and other unprintable characters, line ends and changes of text direction
// among them, are written as Go escapes (\n, \x1b, \u202e).
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

// lines is n with its noun.
func lines(n int) string { return plural(n, "line") }

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return count(n) + " " + noun + "s"
}

// byteCount writes n in the unit in which it reads best.
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

// roundDuration keeps what a person reads.
func roundDuration(d time.Duration) time.Duration {
	switch {
	case d >= 10*time.Second:
		return d.Round(time.Second)
	case d >= time.Second:
		return d.Round(100 * time.Millisecond)
	case d >= 10*time.Millisecond:
		return d.Round(time.Millisecond)
	}
	return d.Round(10 * time.Microsecond)
}

// A statusLine is one line on a terminal that is written over. It is used by
// one goroutine.
type statusLine struct {
	w     io.Writer
	on    bool
	width func() int // columns of the terminal; nil or 0: not known
	shown int        // columns to wipe
	last  time.Time  // when it was written
}

// show writes text over the line, at most ten times a second.
func (l *statusLine) show(text func() string) {
	if !l.on || time.Since(l.last) < 100*time.Millisecond {
		return
	}
	l.last = time.Now()
	s := text()
	n := utf8.RuneCountInString(s)
	if l.width != nil {
		// A line that the terminal breaks cannot be written over.
		if w := l.width(); w > 0 && n >= w {
			s = string([]rune(s)[:w-1])
			n = w - 1
		}
	}
	fmt.Fprintf(l.w, "\r%s%s", s, strings.Repeat(" ", max(0, l.shown-n)))
	l.shown = n
}

// clear wipes the line.
func (l *statusLine) clear() {
	if l.shown > 0 {
		fmt.Fprintf(l.w, "\r%s\r", strings.Repeat(" ", l.shown))
		l.shown = 0
	}
}
