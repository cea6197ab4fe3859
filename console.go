package rollway

import (
	"log/slog"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rollway/rollway/internal/jsonline"
)

// The colours of a console line, as SGR sequences.
const (
	colorReset  = "\x1b[0m"
	colorFaint  = "\x1b[2m"
	colorRed    = "\x1b[31m"
	colorGreen  = "\x1b[32m"
	colorYellow = "\x1b[33m"
	colorCyan   = "\x1b[36m"
	colorAlarm  = "\x1b[1;37;41m"
)

// appendConsole appends the line for people for r.
func (f *format) appendConsole(dst []byte, st, ctx *state, r *record, attrs []slog.Attr) []byte {
	if r.hasTime {
		dst = f.appendColor(dst, colorFaint)
		dst = r.time().In(f.location).AppendFormat(dst, string(f.time))
		dst = f.appendColor(dst, colorReset)
		dst = append(dst, ' ')
	}
	dst = f.appendColor(dst, levelColor(r.level))
	start := len(dst)
	dst = jsonline.AppendLevel(dst, r.level)
	for len(dst)-start < len("ERROR") {
		dst = append(dst, ' ')
	}
	dst = f.appendColor(dst, colorReset)
	dst = append(dst, ' ')
	if name := st.slots[slotLogger]; name != "" {
		dst = append(dst, name...)
		dst = append(dst, ": "...)
	}
	dst = appendConsoleText(dst, r.msg)
	dst = f.appendTextRest(dst, st, ctx, r, attrs)
	if r.stack != "" {
		dst = f.appendConsoleStack(dst, r.stack)
	}
	return append(dst, '\n')
}

// appendConsoleStack appends the stack below the line, indented, so that its
// lines cannot be taken for records.
func (f *format) appendConsoleStack(dst []byte, stack string) []byte {
	for line := range strings.SplitSeq(stack, "\n") {
		dst = append(dst, "\n    "...)
		dst = f.appendColor(dst, colorFaint)
		dst = appendConsoleText(dst, line)
		dst = f.appendColor(dst, colorReset)
	}
	return dst
}

func levelColor(l slog.Level) string {
	switch {
	case l >= LevelPanic:
		return colorAlarm
	case l >= LevelError:
		return colorRed
	case l >= LevelWarn:
		return colorYellow
	case l >= LevelInfo:
		return colorGreen
	default:
		return colorCyan
	}
}

func (f *format) appendColor(dst []byte, color string) []byte {
	if !f.color {
		return dst
	}
	return append(dst, color...)
}

// appendConsoleWord appends s, in double quotes if it is empty or holds a
// space, a quote, an equals sign or anything that must be escaped.
func appendConsoleWord(dst []byte, s string) []byte {
	if s == "" {
		return append(dst, `""`...)
	}
	for _, r := range s {
		if r == ' ' || r == '"' || r == '=' || r == '\\' || needsEscape(r) {
			dst = append(dst, '"')
			dst = appendConsoleEscaped(dst, s, true)
			return append(dst, '"')
		}
	}
	return append(dst, s...)
}

// appendConsoleText appends a message or a name, escaped but not quoted.
func appendConsoleText(dst []byte, s string) []byte {
	return appendConsoleEscaped(dst, s, false)
}

func appendConsoleEscaped(dst []byte, s string, quoted bool) []byte {
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if quoted && (c == '"' || c == '\\') {
				dst = append(dst, '\\', c)
			} else if c >= ' ' && c != 0x7f {
				dst = append(dst, c)
			} else {
				dst = appendEscapedRune(dst, rune(c))
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			dst = append(dst, "\uFFFD"...)
		case needsEscape(r) && r != utf8.RuneError:
			dst = appendEscapedRune(dst, r)
		default:
			dst = append(dst, s[i:i+size]...)
		}
		i += size
	}
	return dst
}

func appendEscapedRune(dst []byte, r rune) []byte {
	switch r {
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	}
	quoted := strconv.AppendQuoteRuneToASCII(nil, r) // 'x'
	return append(dst, quoted[1:len(quoted)-1]...)
}
