package main

import (
	"bytes"
	"encoding/json"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/internal/jsonline"
)

// An encoder turns lines into events.
type encoder struct {
	service string
	attrs   attrList
	file    string // for lines of text; empty: none
	fixed   []byte // a line with invalid UTF-8 replaced
}

// appendEvent appends the event of line, without a line end. A JSON object stays as it
// is; -service and -attr are added at its end if it lacks them.
func (e *encoder) appendEvent(dst, line []byte) []byte {
	if object, ok := e.object(line); ok {
		if e.service == "" && len(e.attrs) == 0 {
			return append(dst, object...)
		}
		return e.appendObject(dst, object)
	}
	dst = append(dst, `{"msg":`...)
	dst = jsonline.AppendStringBytes(dst, line)
	if e.service != "" {
		dst = append(dst, `,"service":`...)
		dst = jsonline.AppendString(dst, e.service)
	}
	if e.file != "" || len(e.attrs) > 0 {
		dst = append(dst, `,"attrs":`...)
		dst = e.appendAttrs(dst, e.file)
	}
	return append(dst, '}')
}

func (e *encoder) appendAttrs(dst []byte, file string) []byte {
	dst = append(dst, '{')
	if file != "" {
		dst = append(dst, `"file":`...)
		dst = jsonline.AppendString(dst, file)
	}
	for _, a := range e.attrs {
		if dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
		dst = jsonline.AppendString(dst, a.key)
		dst = append(dst, ':')
		dst = jsonline.AppendString(dst, a.value)
	}
	return append(dst, '}')
}

// object returns line if it is a JSON object, with invalid UTF-8 replaced.
func (e *encoder) object(line []byte) ([]byte, bool) {
	trimmed := bytes.Trim(line, " \t\r")
	if len(trimmed) < 2 || trimmed[0] != '{' || trimmed[len(trimmed)-1] != '}' {
		return nil, false
	}
	if !utf8.Valid(trimmed) {
		e.fixed = appendValidUTF8(e.fixed[:0], trimmed)
		trimmed = e.fixed
	}
	return trimmed, json.Valid(trimmed)
}

// appendObject appends a JSON object with -service and -attr at its end.
func (e *encoder) appendObject(dst, object []byte) []byte {
	names, err := topNames(object)
	if err != nil {
		return append(dst, object...) // the collector reports the error
	}
	dst = append(dst, bytes.TrimRight(object[:len(object)-1], " \t\r")...)
	add := func(name string) {
		if dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
		dst = jsonline.AppendString(dst, name)
		dst = append(dst, ':')
	}
	saysService := func(name string) bool {
		slot, _ := normalize.ReadAs(name)
		return slot == "service"
	}
	if e.service != "" && !slices.ContainsFunc(names, saysService) {
		add("service")
		dst = jsonline.AppendString(dst, e.service)
	}
	if len(e.attrs) > 0 {
		// The collector merges objects with these names.
		for _, name := range []string{"attrs", "attributes", "metadata", "fields", "context"} {
			if !slices.Contains(names, name) {
				add(name)
				dst = e.appendAttrs(dst, "")
				break
			}
		}
	}
	return append(dst, '}')
}

// topNames lists the keys of object.
func topNames(object []byte) (names []string, err error) {
	d := jsontext.NewDecoder(bytes.NewReader(object), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		names = append(names, name.String())
		if err := d.SkipValue(); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// appendValidUTF8 appends b with each invalid byte replaced by U+FFFD.
func appendValidUTF8(dst, b []byte) []byte {
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		if r == utf8.RuneError && size == 1 {
			dst = append(dst, "\uFFFD"...)
		} else {
			dst = append(dst, b[:size]...)
		}
		b = b[size:]
	}
	return dst
}
