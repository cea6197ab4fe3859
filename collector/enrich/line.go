package enrich

import (
	"slices"
	"strconv"

	"github.com/rollway/rollway/internal/jsonwalk"
)

// members walks through an object of a canonical line, which has no white space. Of the
// line itself it does not look at the value of attrs, the last one.
type members struct {
	line  []byte
	top   bool   // it is the line
	at    int    // where the object begins, then the end of the latest member
	name  []byte // with its quotes
	value int    // where it begins; it ends at at
}

func (m *members) next() bool {
	i := m.at + 1
	if m.line[m.at] == '}' || m.line[i] == '}' {
		return false
	}
	end, _ := jsonwalk.SkipString(m.line, i)
	m.name, m.value = m.line[i:end], end+1
	if m.top && string(m.name) == `"attrs"` {
		m.at = len(m.line) - 1
	} else {
		m.at = jsonwalk.SkipValue(m.line, m.value)
	}
	return true
}

// raw is the value.
func (m *members) raw() []byte { return m.line[m.value:m.at] }

// plain returns the text of a JSON string, in buf if it has escapes.
func plain(raw []byte, buf *[]byte) (text []byte) {
	text, *buf = jsonwalk.Text(raw, *buf)
	return text
}

// attrsOf returns the attributes of a line.
func attrsOf(line []byte) (attrs members, has bool) {
	for m := (members{line: line, top: true}); m.next(); {
		if string(m.name) == `"attrs"` {
			return members{line: line, at: m.value}, true
		}
	}
	return members{}, false
}

// hasAttr reports whether the line has an attribute of the name, a JSON string.
func hasAttr(line, name []byte, buf *[]byte) bool {
	m, has := attrsOf(line)
	var own []byte
	want := plain(name, &own)
	for has && m.next() {
		if string(plain(m.name, buf)) == string(want) {
			return true
		}
	}
	return false
}

// appendUnique gives the name dst[start:], a JSON string, the first suffix from
// _k on with which the line has no attribute, and returns which that was.
func appendUnique(dst []byte, start int, line []byte, k int, buf *[]byte) ([]byte, int) {
	end := len(dst) - 1
	for k = max(k, 2); ; k++ {
		dst = append(dst[:end], '_')
		dst = strconv.AppendInt(dst, int64(k), 10)
		dst = append(dst, '"')
		if !hasAttr(line, dst[start:], buf) {
			return dst, k
		}
	}
}

// openAttrs takes the last braces off a line, for one more attribute and
// "}}". has tells that it has attributes.
func openAttrs(line []byte, has bool) []byte {
	if has {
		return append(line[:len(line)-2], ',')
	}
	return append(line[:len(line)-1], `,"attrs":{`...)
}

// slotOrder are the keys of a line that a value can be moved to, in their order.
var slotOrder = []string{"msg", "service", "logger", "source", "trace_id", "span_id", "error"}

// slotAt returns whether a line has a slot, and where it belongs if not.
func slotAt(line []byte, slot string) (at int, has bool) {
	for m := (members{line: line, top: true}); m.next(); {
		name := m.name[1 : len(m.name)-1]
		switch {
		case string(name) == slot:
			return at, true
		case string(name) == "attrs" || slices.Index(slotOrder, string(name)) > slices.Index(slotOrder, slot):
			return at, false
		}
		at = m.at
	}
	return at, false
}
