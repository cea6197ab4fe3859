package query

import (
	"bytes"
	"cmp"
	"log/slog"
	"math"
	"net/netip"
	"strconv"
	"time"

	"github.com/rollway/rollway/collector/columns"
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
	opIn      // one of members holds
	opRange   // both members hold
	opNetwork // the field is an address in the network
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

	fold bool // letters of either case are equal
	word bool // of opText and opContains: no letter, digit or underscore is before or after the text

	members []*term      // of opIn and opRange
	set     *set         // of opIn: members
	network netip.Prefix // of opNetwork

	needle  []byte   // text again, in one case if fold
	pattern *pattern // of opText and opContains: text is a regular expression; nil: it is a text
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
		text: string(jsonline.AppendTime(nil, t)), needle: jsonline.AppendTime(nil, t),
	}
}

func newLevelTerm(o op, l slog.Level) *term {
	return &term{op: o, field: field{id: fieldLevel}, isLevel: true, level: l}
}

func newTextTerm(w written) *term {
	t := newValueTerm(opText, field{}, w.text, false)
	t.modify(w)
	return t
}

// newValueTerm compares any field with text; bare tells that it was not
// quoted, and so may be a number.
func newValueTerm(o op, f field, text string, bare bool) *term {
	t := &term{op: o, field: f, text: text, needle: []byte(text)}
	if bare && (o == opEqual || o >= opLess) {
		t.number, t.isNumber = jsonwalk.ParseDecimal([]byte(text))
	}
	return t
}

// modify has t compare as the letters before the quotes say.
func (t *term) modify(w written) {
	t.word = w.word
	if t.fold = w.fold && caseless(t.text) != t.text; t.fold {
		t.needle = appendFolded(nil, t.needle)
	}
}

// literals returns texts: a line for which t holds has one of them, or an escape. Without any,
// nothing is known.
func (t *term) literals() []string {
	text := t.text
	switch {
	case t.op == opIn:
		var all []string
		for _, m := range t.members {
			l := m.literals()
			if all = append(all, l...); len(l) == 0 || len(all) > maxLiterals {
				return nil
			}
		}
		return all
	case t.isTime, t.isLevel, t.isNumber, t.op == opPresent, t.op >= opLess:
		return nil
	case t.pattern != nil:
		return t.pattern.literals
	case t.fold:
		text = caseless(text)
	}
	if text == "" {
		return nil
	}
	return []string{text}
}

func (t *term) timeRange() (minimum, maximum int64) {
	minimum, maximum = math.MinInt64, math.MaxInt64
	if !t.isTime {
		return minimum, maximum
	}
	at := unixNano(t.when)
	inside := at > math.MinInt64 && at < math.MaxInt64
	switch {
	case t.op == opLess && inside:
		return minimum, at - 1
	case t.op == opLess, t.op == opLessEqual:
		return minimum, at
	case t.op == opGreater && inside:
		return at + 1, maximum
	case t.op == opGreater, t.op == opGreaterEqual:
		return at, maximum
	}
	return at, at
}

// hasNumbers reports whether numbers tells what holds of numbers.
func (t *term) hasNumbers() bool {
	return t.isNumber || t.op == opRange && t.members[0].isNumber
}

// numbers returns which numbers hold for t, in units of 10 to the power of -digits.
func (t *term) numbers(digits int) columns.Range {
	const most = 1e18 // columns of numbers have at most 18 digits
	if t.op == opRange {
		low, high := t.members[0].numbers(digits), t.members[1].numbers(digits)
		return columns.Range{First: max(low.First, high.First), Last: min(low.Last, high.Last)}
	}
	var buf []byte
	// from returns the first number that is above t.number, or equal to it.
	from := func(above int) int64 {
		low, high := int64(-most), int64(most)
		for low < high {
			middle := low + (high-low)/2
			buf = strconv.AppendInt(append(strconv.AppendInt(buf[:0], middle, 10), "e-"...), int64(digits), 10)
			if d, _ := jsonwalk.ParseDecimal(buf); d.Compare(t.number) >= above {
				high = middle
			} else {
				low = middle + 1
			}
		}
		return low
	}
	switch t.op {
	case opLess:
		return columns.Range{First: -most, Last: from(0) - 1}
	case opLessEqual:
		return columns.Range{First: -most, Last: from(1) - 1}
	case opGreater:
		return columns.Range{First: from(1), Last: most}
	case opGreaterEqual:
		return columns.Range{First: from(0), Last: most}
	}
	return columns.Range{First: from(0), Last: from(1) - 1}
}

// holds compares a scalar with t: the text of a string, or a number, true, false or
// null as it is written; if t.fold, folded. rest is as for Expression.Match.
func (t *term) holds(text []byte, isString bool, rest func() error) bool {
	switch {
	case t.op == opPresent:
		return true
	case t.isTime:
		return isString && len(text) == len(t.text) && ordered(t.op, bytes.Compare(text, t.needle))
	case t.isLevel:
		l, ok := levels.Parse(text)
		return ok && isString && ordered(t.op, cmp.Compare(l, t.level))
	case t.pattern != nil:
		return (t.op == opContains || isString || isNumberStart(text)) && t.pattern.find(text, rest)
	case t.op == opText && !isString && !isNumberStart(text):
		return false
	case t.word:
		return containsWord(text, t.needle)
	case t.op == opText, t.op == opContains:
		return bytes.Contains(text, t.needle)
	case t.op == opPrefix:
		return bytes.HasPrefix(text, t.needle)
	case t.op == opRange:
		return t.members[0].holds(text, isString, nil) && t.members[1].holds(text, isString, nil)
	case t.op == opNetwork:
		addr, ok := address(text)
		return ok && isString && t.network.Contains(addr)
	case t.isNumber && (t.op != opEqual || !isString):
		n, ok := jsonwalk.ParseDecimal(text)
		return ok && ordered(t.op, n.Compare(t.number))
	}
	return (isString || t.op == opEqual) && ordered(t.op, bytes.Compare(text, t.needle))
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

func isNumberStart(raw []byte) bool {
	return len(raw) > 0 && (raw[0] == '-' || raw[0]-'0' <= 9)
}
