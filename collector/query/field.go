package query

import "strings"

// fieldID names a key at the top level of a canonical line, in the order in
// which a line holds them.
type fieldID uint8

const (
	fieldTime fieldID = iota
	fieldLevel
	fieldMsg
	fieldService
	fieldLogger
	fieldSource
	fieldTraceID
	fieldSpanID
	fieldError
	fieldAttrs
	numFields
	fieldUnknown = numFields
)

var fieldNames = [numFields]string{
	"time", "level", "msg", "service", "logger", "source", "trace_id", "span_id", "error", "attrs",
}

func (id fieldID) name() string { return fieldNames[id] }

// fieldOf finds the field that a line's key names.
func fieldOf(key []byte) fieldID {
	for id := range numFields {
		if string(key) == fieldNames[id] {
			return id
		}
	}
	return fieldUnknown
}

// field is what a name in an expression refers to.
//
//	level          {fieldLevel, ""}        the top-level value
//	customer_id    {fieldAttrs, path}      an attribute, its path dotted
//	attrs.level    {fieldAttrs, "level"}   the attribute, not the top-level value
//	error.kind     {fieldError, "kind"}    inside error, or the attribute error.kind
//	attrs          {fieldAttrs, ""}        all attributes
type field struct {
	id   fieldID
	path string
}

func resolve(name string) field {
	if id := fieldOf([]byte(name)); id != fieldUnknown {
		return field{id: id}
	}
	first, rest, dotted := strings.Cut(name, ".")
	if dotted && rest != "" {
		switch id := fieldOf([]byte(first)); id {
		case fieldAttrs, fieldError, fieldSource:
			return field{id, rest}
		}
	}
	return field{fieldAttrs, name}
}

// name is the shortest name that resolves to f.
func (f field) name() string {
	switch {
	case f.path == "":
		return f.id.name()
	case f.id != fieldAttrs:
		return f.id.name() + "." + f.path
	case resolve(f.path) == f:
		return f.path
	}
	return "attrs." + f.path
}
