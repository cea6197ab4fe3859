package query

import (
	"bytes"
	"strings"

	"github.com/rollway/rollway/collector/columns"
)

// prunes reports whether mayBeIn can exclude a block.
func (n *Need) prunes() bool {
	switch n.Kind {
	case NeedAll:
		for i := range n.Kids {
			if n.Kids[i].prunes() {
				return true
			}
		}
	case NeedOne:
		for i := range n.Kids {
			if !n.Kids[i].prunes() {
				return false
			}
		}
		return len(n.Kids) > 0
	case NeedField:
		_, ok := n.column()
		return ok && !n.Number && (n.Op == OpEqual || n.Op == OpPrefix || n.Op == OpContains)
	}
	return false
}

// mayBeIn reports whether a line of a block of columns may fulfill n. size is the length of
// its lines in bytes, and b is memory.
func (n *Need) mayBeIn(b *columns.Block, block []byte, size int) bool {
	if !n.prunes() {
		return true
	}
	switch n.Kind {
	case NeedAll:
		for i := range n.Kids {
			if !n.Kids[i].mayBeIn(b, block, size) {
				return false
			}
		}
		return true
	case NeedOne:
		if _, ok := n.column(); ok {
			break // all look into it together
		}
		for i := range n.Kids {
			if n.Kids[i].mayBeIn(b, block, size) {
				return true
			}
		}
		return false
	}
	want, _ := n.column()
	return b.Find(block, size, func(path string, any func(func([]byte) bool) bool) bool {
		switch path = strings.TrimSuffix(strings.ReplaceAll(path, "\x00", "."), "."); {
		case path == "": // whole lines
			return true
		case path == want:
			return any(n.mayBe)
		case strings.HasPrefix(path, want+"."): // the value is an object
			return true
		case strings.HasPrefix(want, path+"."): // it may be inside
			return any(isNested)
		}
		return false
	})
}

// column returns the dotted path of the one column that may have values of the field;
// false: there may be others.
func (n *Need) column() (string, bool) {
	switch {
	case n.Kind == NeedOne:
		want, ok := n.Kids[0].column()
		for i := range n.Kids {
			if other, _ := n.Kids[i].column(); other != want {
				return "", false
			}
		}
		return want, ok
	case n.Field == "attrs" && n.Path != "":
		return "attrs." + n.Path, true
	case n.Path == "" && (n.Field == "service" || n.Field == "logger" || n.Field == "trace_id" || n.Field == "span_id"):
		return n.Field, true
	}
	return "", false
}

func isNested(value []byte) bool {
	return len(value) > 0 && (value[0] == '{' || value[0] == '[')
}

// mayBe reports whether a value, as it is in a line, may be what n asks for.
func (n *Need) mayBe(value []byte) bool {
	if isNested(value) || bytes.IndexByte(value, '\\') >= 0 {
		return true
	}
	if len(value) > 1 && value[0] == '"' {
		value = value[1 : len(value)-1]
	}
	return n.is(value)
}

// is compares a value without its quotes.
func (n *Need) is(value []byte) bool {
	if n.Kind == NeedOne {
		for i := range n.Kids {
			if n.Kids[i].is(value) {
				return true
			}
		}
		return false
	}
	switch n.Op {
	case OpEqual:
		return string(value) == n.Text
	case OpPrefix:
		return bytes.HasPrefix(value, []byte(n.Text))
	}
	return bytes.Contains(value, []byte(n.Text))
}
