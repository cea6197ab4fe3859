package query

import (
	"strings"

	"github.com/rollway/rollway/internal/jsonwalk"
)

// find returns the JSON of the field in a canonical line, or nil. A field with several
// values has the first.
func (f field) find(line []byte) []byte {
	w := jsonwalk.Members(line, 0)
	for w.NextName() {
		name := w.RawName()
		switch id := fieldOf(name[1 : len(name)-1]); {
		case id == f.id && f.path == "":
			if w.SkipValue() {
				return w.RawValue()
			}
			return nil
		case id == f.id && id == fieldAttrs:
			return findPath(line, w.Value.Start, f.path)
		case id == f.id:
			if raw := findPath(line, w.Value.Start, f.path); raw != nil {
				return raw
			}
		case id == fieldAttrs && f.path != "":
			return findPath(line, w.Value.Start, f.id.name()+"."+f.path)
		case id > f.id && f.path == "":
			return nil // fields have an order
		}
		if !w.SkipValue() {
			return nil
		}
	}
	return nil
}

// findPath returns the value at a path of the object that begins at line[at]; keys may have
// points in them.
func findPath(line []byte, at int, path string) []byte {
	if at >= len(line) || line[at] != '{' {
		return nil
	}
	w := jsonwalk.Members(line, at)
	for w.NextName() {
		var buf [64]byte
		key, _ := jsonwalk.Text(w.RawName(), buf[:0])
		if string(key) == path {
			if w.SkipValue() {
				return w.RawValue()
			}
			return nil
		}
		if len(key) < len(path) && path[len(key)] == '.' && strings.HasPrefix(path, string(key)) {
			if raw := findPath(line, w.Value.Start, path[len(key)+1:]); raw != nil {
				return raw
			}
		}
		if !w.SkipValue() {
			return nil
		}
	}
	return nil
}
