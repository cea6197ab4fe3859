package query

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/rollway/rollway/internal/levels"
	"github.com/rollway/rollway/internal/times"
)

// comparison is a comparison as it was written, on its way to a node.
type comparison struct {
	*parser
	at       int // byte offset of the value
	field    field
	operator string
	value    written
}

// operators without the negated ones, which node takes off.
var operators = map[string]op{
	"=": opEqual, "~": opContains, "=~": opContains, "<": opLess, "<=": opLessEqual, ">": opGreater, ">=": opGreaterEqual,
}

func (c *comparison) node() (*node, error) {
	operator, negated := strings.CutPrefix(c.operator, "!")
	n, err := c.positive(operators[operator])
	if err != nil || !negated {
		return n, err
	}
	return negate(n), nil
}

func (c *comparison) positive(o op) (*node, error) {
	value := c.value.text
	expression := strings.HasSuffix(c.operator, "=~")
	if !c.value.quoted && !expression && strings.Contains(value, "*") {
		head, tail, _ := strings.Cut(value, "*")
		switch {
		case o != opEqual || tail != "":
			return nil, c.fail(c.at, show(value),
				`"*" only after = or !=, alone (present) or at the end (begins with); use ~ for contains, and quotes for the character`)
		case head == "":
			return termNode(newValueTerm(opPresent, c.field, "", false)), nil
		}
		o, value = opPrefix, head
	}
	if c.field == (field{id: fieldAttrs}) {
		if err := c.scan(c.at); err != nil {
			return nil, err
		}
	}
	switch {
	case c.value.word && o != opContains:
		return nil, c.fail(c.at, "`w`", `w"…" only after ~ or !~, or without a field: = compares with the whole value`)
	case c.value.fold && o != opContains && o != opEqual:
		return nil, c.fail(c.at, "`i`", `i"…" only after = != ~ or !~, or without a field`)
	case o == opContains && value == "":
		return nil, c.fail(c.at, `""`, "a text that is not empty")
	case c.field.id == fieldLevel && c.field.path == "":
		return c.levelNode(o, value)
	case c.field.id == fieldTime && c.field.path == "" && o != opContains && o != opPrefix:
		return c.timeNode(o, value)
	}
	t := newValueTerm(o, c.field, value, !c.value.quoted)
	t.modify(c.value)
	if expression {
		x, err := c.newPattern(c.at, value)
		if err != nil {
			return nil, err
		}
		t.pattern = x
	}
	return termNode(t), nil
}

// scan counts what takes a pass of its own through all attributes.
func (p *parser) scan(at int) error {
	if p.scans++; p.scans > MaxScans {
		return p.fail(at, fmt.Sprintf("comparison %d with all attributes", p.scans), fmt.Sprintf(`at most %d: name the attributes, or search for texts without attrs~ and w"…"`, MaxScans))
	}
	return nil
}

func (c *comparison) levelNode(o op, value string) (*node, error) {
	if o == opContains || o == opPrefix {
		return nil, c.fail(c.at, show(value), "level to be compared with = != < <= > >= (attrs.level is the attribute of that name)")
	}
	l, ok := parseLevel(value)
	if !ok {
		return nil, c.fail(c.at, show(value),
			"a level: trace, debug, info, notice, warn, error, panic, fatal, one with a distance such as warn+1, or slog's number (debug -4, info 0, warn 4, error 8, fatal 12)")
	}
	return termNode(newLevelTerm(o, l)), nil
}

func (c *comparison) timeNode(o op, value string) (*node, error) {
	t, span, ok := times.ParseMoment(value, c.now)
	if !ok {
		return nil, c.fail(c.at, show(value), times.Expected)
	}
	if o == opEqual && span > 0 {
		// A day, a minute or a second is all of it.
		if err := c.countTerm(c.at); err != nil {
			return nil, err
		}
		end := t.Add(span - time.Nanosecond)
		return join(nodeAnd, []*node{timeNode(opGreaterEqual, t), timeNode(opLessEqual, end)}), nil
	}
	return timeNode(o, t), nil
}

// ParseTime reads a time as since, until and comparisons with time take it, see
// [times.ParseMoment].
func ParseTime(s string, now time.Time) (time.Time, error) {
	t, _, ok := times.ParseMoment(s, now)
	if !ok {
		return time.Time{}, fmt.Errorf("found %s, expected %s", show(s), times.Expected)
	}
	return t, nil
}

// Bounds of the levels that an expression may compare with. Plain numbers stop
// at maxNumber: the 20 to 60 of pino and bunyan are not slog's, and a comparison
// with them would find nothing without a word why.
const (
	maxLevel  = 1 << 31
	maxNumber = 19
)

// parseLevel reads a level as an expression may name it: by a name that
// normalization knows, with or without a distance, or by slog's number.
func parseLevel(s string) (slog.Level, bool) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return slog.Level(n), n >= -maxLevel && n <= maxNumber
	}
	l, ok := levels.ParseNamed([]byte(s))
	return l, ok && l >= -maxLevel && l <= maxLevel
}
