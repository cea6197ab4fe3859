package query

import (
	"log/slog"
	"math"
	"time"

	"github.com/rollway/rollway/internal/jsonline"
	"github.com/rollway/rollway/internal/jsonwalk"
	"github.com/rollway/rollway/internal/levels"
)

type op uint8

const (
	opText    op = iota // msg, error or an attribute contains the text
	opPresent           // the field is there
	opEqual
	opPrefix
	opContains
	opLess
	opLessEqual
	opGreater
	opGreaterEqual
)

// term is one comparison: the leaf of an expression. Immutable once built.
type term struct {
	op     op
	field  field            // not of opText
	text   string           // the value; the canonical time for an order of times
	number jsonwalk.Decimal // the value as a number, if isNumber
	level  slog.Level
	when   time.Time

	isNumber bool // an unquoted number
	isLevel  bool // compares level with the member level
	isTime   bool // compares time with when and text

	needle []byte   // text again, of opText and opContains
	next   []uint16 // failure links of text, of opText and opContains
}

// newTimeTerm compares the time of a line with t, which it holds in the years
// 0 to 9999.
func newTimeTerm(o op, t time.Time) *term {
	t = t.UTC()
	if t.Year() < 0 {
		t = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)
	} else if t.Year() > 9999 {
		t = time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC)
	}
	return &term{
		op: o, field: field{id: fieldTime}, isTime: true, when: t,
		text: string(jsonline.AppendTime(nil, t)),
	}
}

func newLevelTerm(o op, l slog.Level) *term {
	return &term{op: o, field: field{id: fieldLevel}, isLevel: true, level: l}
}

func newTextTerm(text string) *term {
	return &term{op: opText, text: text, needle: []byte(text), next: failureLinks(text)}
}

// newValueTerm compares any field with text; bare tells that it was not
// quoted, and so may be a number.
func newValueTerm(o op, f field, text string, bare bool) *term {
	t := &term{op: o, field: f, text: text}
	if bare && (o == opEqual || o >= opLess) {
		t.number, t.isNumber = jsonwalk.ParseDecimal([]byte(text))
	}
	if o == opContains {
		t.needle, t.next = []byte(text), failureLinks(text)
	}
	return t
}

// literal returns bytes that any line for which t holds contains, unless it
// holds them with an escape. Empty if there are none.
func (t *term) literal() string {
	switch {
	case t.isTime, t.isLevel, t.isNumber, t.op == opPresent, t.op >= opLess:
		return ""
	}
	for i := range len(t.text) {
		if c := t.text[i]; c < ' ' || c == '"' || c == '\\' {
			return ""
		}
	}
	return t.text
}

func (t *term) timeRange() (minimum, maximum int64) {
	minimum, maximum = math.MinInt64, math.MaxInt64
	if !t.isTime {
		return minimum, maximum
	}
	at := unixNano(t.when)
	switch t.op {
	case opEqual:
		return at, at
	case opLess:
		if at > math.MinInt64 && at < math.MaxInt64 {
			at--
		}
		return minimum, at
	case opLessEqual:
		return minimum, at
	case opGreater:
		if at < math.MaxInt64 && at > math.MinInt64 {
			at++
		}
		return at, maximum
	case opGreaterEqual:
		return at, maximum
	}
	return minimum, maximum
}

// holds compares a scalar with t: the bytes between the quotes of a string, or
// a number, true, false or null as it stands.
func (t *term) holds(raw []byte, isString, escaped bool) bool {
	switch {
	case t.op == opPresent:
		return true
	case t.isTime:
		return isString && len(raw) == len(t.text) && ordered(t.op, compareBytes(raw, t.text))
	case t.isLevel:
		l, ok := levels.Parse(raw)
		return ok && isString && ordered(t.op, compareInts(int64(l), int64(t.level)))
	}
	switch t.op {
	case opText:
		return (isString || isNumberStart(raw)) && t.in(raw, escaped)
	case opContains:
		return t.in(raw, escaped)
	case opPrefix:
		_, prefix := compareText(raw, escaped, t.text)
		return prefix
	case opEqual:
		if t.isNumber && !isString {
			n, ok := jsonwalk.ParseDecimal(raw)
			return ok && n.Compare(t.number) == 0
		}
		c, _ := compareText(raw, escaped, t.text)
		return c == 0
	}
	if t.isNumber {
		n, ok := jsonwalk.ParseDecimal(raw)
		return ok && ordered(t.op, n.Compare(t.number))
	}
	if !isString {
		return false
	}
	c, _ := compareText(raw, escaped, t.text)
	return ordered(t.op, c)
}

// ordered tells whether a comparison that came out as c satisfies o.
func ordered(o op, c int) bool {
	switch o {
	case opEqual:
		return c == 0
	case opLess:
		return c < 0
	case opLessEqual:
		return c <= 0
	case opGreater:
		return c > 0
	default:
		return c >= 0
	}
}

func compareInts(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func isNumberStart(raw []byte) bool {
	return len(raw) > 0 && (raw[0] == '-' || raw[0]-'0' <= 9)
}
