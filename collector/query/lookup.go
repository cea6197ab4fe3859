package query

import (
	"bytes"
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

// maxNesting is how many objects inside each other are taken apart.
const maxNesting = 8

// eachField gives take the name and the JSON of each value of a line. Objects are taken apart,
// except empty ones and those deeper than maxNesting. The name is valid during the call.
func eachField(line []byte, take func(name, raw []byte) error) error {
	var buf [256]byte
	w := jsonwalk.Members(line, 0)
	for w.Next() {
		id := fieldOf(w.RawName()[1 : len(w.RawName())-1])
		if id == fieldAttrs && w.Kind() == '{' {
			if err := eachAttr(line, w.Value.Start, buf[:0], take); err != nil {
				return err
			}
			continue
		}
		if id == fieldUnknown {
			continue
		}
		if err := eachInside(line, w.Value, append(buf[:0], id.name()...), 0, take); err != nil {
			return err
		}
	}
	return nil
}

// eachAttr is eachField for the object of attributes at line[at].
func eachAttr(line []byte, at int, name []byte, take func(name, raw []byte) error) error {
	w := jsonwalk.Members(line, at)
	for w.Next() {
		key := w.RawName()[1 : len(w.RawName())-1]
		name = name[:0]
		if id := fieldOf(key); id == fieldAttrs || id != fieldUnknown && w.Kind() != '{' || bytes.HasPrefix(key, []byte("attrs.")) {
			name = append(name, "attrs."...) // without it, it is the name of something else
		}
		name = jsonwalk.AppendText(name, key)
		if err := eachInside(line, w.Value, name, 1, take); err != nil {
			return err
		}
	}
	return nil
}

// eachInside is eachField for the value called name.
func eachInside(line []byte, value jsonwalk.Span, name []byte, depth int, take func(name, raw []byte) error) error {
	if line[value.Start] != '{' || value.Len() <= len("{}") || depth == maxNesting {
		return take(name, value.Of(line))
	}
	w := jsonwalk.Members(line, value.Start)
	for w.Next() {
		inner := jsonwalk.AppendText(append(name, '.'), w.RawName()[1:len(w.RawName())-1])
		if err := eachInside(line, w.Value, inner, depth+1, take); err != nil {
			return err
		}
	}
	return nil
}
