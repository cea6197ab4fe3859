package encode

import (
	"log/slog"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rollway/rollway/internal/levels"
)

// The colors of lines for people, as SGR sequences.
const (
	ColorReset  = "\x1b[0m"
	ColorFaint  = "\x1b[2m"
	ColorRed    = "\x1b[31m"
	ColorGreen  = "\x1b[32m"
	ColorYellow = "\x1b[33m"
	ColorCyan   = "\x1b[36m"
	ColorAlarm  = "\x1b[1;37;41m"
)

// LevelColor returns the color of a level's name.
func LevelColor(l slog.Level) string {
	switch {
	case l >= levels.Panic:
		return ColorAlarm
	case l >= slog.LevelError:
		return ColorRed
	case l >= slog.LevelWarn:
		return ColorYellow
	case l >= slog.LevelInfo:
		return ColorGreen
	default:
		return ColorCyan
	}
}

func (t *textLine) color(color string) {
	if t.f.Color {
		t.dst = append(t.dst, color...)
	}
}

// clock appends the record's time as the console shows it.
func (t *textLine) clock(at time.Time) {
	switch f := t.f; f.Clock {
	case UnixSeconds, UnixMilli, UnixNano, UnixFloat, RFC3339Milli:
		of := Format{Options: Options{Time: f.Clock, Location: f.ClockLocation}}
		if f.Clock == RFC3339Milli {
			t.dst = of.appendLayoutTime(t.dst, at)
		} else {
			t.dst = of.appendTimeValue(t.dst, at)
		}
	default:
		t.dst = at.In(f.ClockLocation).AppendFormat(t.dst, f.Clock)
	}
}

// appendConsoleMessage appends a message. It is quoted if it contains an equals sign,
// since it could be mistaken for an attribute, or if it begins a line with a space,
// since that could be mistaken for a line below a record.
func (f *Format) appendConsoleMessage(dst []byte, msg string, first bool) []byte {
	if strings.IndexByte(msg, '=') >= 0 || first && (msg == "" || msg[0] == ' ') {
		return f.appendWord(dst, msg)
	}
	return appendPrintable(dst, msg, escapeBare)
}

// Lines below a record are indented, and no line of a record begins with a space, so
// neither can be mistaken for the other.

// beginBelow begins a line below the record's.
func (t *textLine) beginBelow() {
	t.below = append(t.below, "\n    "...)
	if t.f.Color {
		t.below = append(t.below, ColorFaint...)
	}
}

func (t *textLine) endBelow() {
	if t.f.Color {
		t.below = append(t.below, ColorReset...)
	}
}

func (t *textLine) padBelow(from, width int) {
	for n := utf8.RuneCount(t.below[from:]); n < width; n++ {
		t.below = append(t.below, ' ')
	}
}

// errorBelow writes the type of an error, its causes and its stack below the line.
// Joined errors are indented further than the error that joins them.
func (t *textLine) errorBelow(key string, err error) {
	const causedBy, oneOf = "caused by", "one of"
	t.beginBelow()
	mark := len(t.below)
	if t.verbatim && !t.inField {
		t.below = append(t.below, key...)
	} else {
		t.below = t.f.appendKey(t.below, bytesAsString(t.prefix), key)
	}
	t.padBelow(mark, len(causedBy))
	width := utf8.RuneCount(t.below[mark:])
	t.below = append(t.below, "  "...)
	t.below = appendPrintable(t.below, typeName(err), escapeBare) // its text is on the line
	t.endBelow()
	left := maxCauses
	t.json = eachCause(t.json[:0], err, 0, &left, func(_ []byte, e error, depth int, joined bool) {
		t.beginBelow()
		for range depth {
			t.below = append(t.below, "  "...)
		}
		mark := len(t.below)
		if joined {
			t.below = append(t.below, oneOf...)
		} else {
			t.below = append(t.below, causedBy...)
		}
		t.padBelow(mark, width)
		t.below = append(t.below, "  "...)
		t.below = appendPrintable(t.below, typeName(e), escapeBare)
		t.below = append(t.below, ": "...)
		t.below = appendPrintable(t.below, errorText(e), escapeBare)
		t.endBelow()
	})
	if pcs := callersIn(err); len(pcs) > 0 {
		t.stack(FormatStack(pcs))
	}
}

// isStack reports whether an attribute is a stack, which the console shows below the
// line.
func (t *textLine) isStack(key, s string) bool {
	return key == "stack" && t.f.Kind == Console && len(t.prefix) == len(t.f.attrsPrefix) && strings.IndexByte(s, '\n') >= 0
}

// maxFunction bounds the column of functions in a stack.
const maxFunction = 60

// stack writes a stack below the line: functions and, in a second column, their files
// and lines. Text in another form is written line by line.
func (t *textLine) stack(stack string) {
	width := 0
	for function, at := range frames(stack) {
		if n := utf8.RuneCountInString(function); at != "" && n <= maxFunction {
			width = max(width, n)
		}
	}
	for function, at := range frames(stack) {
		t.beginBelow()
		mark := len(t.below)
		t.below = appendPrintable(t.below, function, escapeBare)
		if at != "" {
			t.padBelow(mark, width)
			t.below = append(t.below, "  "...)
			t.below = appendPrintable(t.below, at, escapeBare)
		}
		t.endBelow()
	}
}

// frames yields the lines of a stack as the runtime writes it, each with the line
// after it if that begins with a tab.
func frames(stack string) func(yield func(function, at string) bool) {
	return func(yield func(function, at string) bool) {
		for more := true; more; {
			var function, at string
			function, stack, more = strings.Cut(strings.TrimSuffix(stack, "\n"), "\n")
			if strings.HasPrefix(stack, "\t") {
				at, stack, more = strings.Cut(stack[1:], "\n")
			}
			if !yield(function, at) {
				return
			}
		}
	}
}
