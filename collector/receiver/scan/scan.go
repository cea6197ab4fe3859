// Package scan takes JSON apart for the protocols whose events are JSON:
// a Checker finds values and checks them, Members and Elements walk through
// what was checked. Nothing is decoded or allocated.
package scan

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rollway/rollway/collector/normalize"
)

// A Checker reads values in a row. The zero value is ready. It is for one
// goroutine at a time.
type Checker struct {
	dec  *jsontext.Decoder
	src  bytes.Buffer
	text []byte
}

// Equal names and bytes that are not UTF-8 are for the caller to judge.
var options = []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}

// Begin begins to read text.
func (c *Checker) Begin(text []byte) {
	c.text = text
	c.src = *bytes.NewBuffer(text)
	if c.dec == nil {
		c.dec = jsontext.NewDecoder(&c.src, options...)
		return
	}
	c.dec.Reset(&c.src, options...)
}

// End keeps nothing of the text.
func (c *Checker) End() { c.Begin(nil) }

// Next returns the next value, a part of the text; io.EOF if only white space
// is left. Another error says for a human why there is no value.
func (c *Checker) Next() ([]byte, error) {
	value, err := c.dec.ReadValue()
	if err == nil || err == io.EOF {
		return value, err
	}
	return nil, explain(err)
}

// Rest is what was not read yet: behind an error, what Next has stopped in.
func (c *Checker) Rest() []byte { return c.text[c.dec.InputOffset():] }

// One returns the value that text consists of, but for white space.
func (c *Checker) One(text []byte) ([]byte, error) {
	c.Begin(text)
	value, err := c.Next()
	if err == io.EOF {
		return nil, errEmpty
	}
	if err != nil {
		return nil, err
	}
	if _, err := c.dec.ReadValue(); err != io.EOF {
		return nil, errTwo
	}
	return value, nil
}

var (
	errEmpty = errors.New("there is no value")
	errTwo   = errors.New("there is something behind the value")
)

func explain(err error) error {
	var bad *jsontext.SyntacticError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the text ends inside a value")
	case errors.As(err, &bad):
		return fmt.Errorf("not valid JSON at offset %d: %w", bad.ByteOffset, bad.Err)
	}
	return err
}

// Walk is a walk through the members of an object or the elements of an array,
// which must be valid JSON without white space around it.
type Walk struct {
	Name  []byte // of a member, as in the text, with its quotes
	Value []byte // as in the text

	rest    []byte
	members bool
}

// Members walks through an object.
func Members(object []byte) Walk { return Walk{rest: object[1:], members: true} }

// Elements walks through an array.
func Elements(array []byte) Walk { return Walk{rest: array[1:]} }

// Next goes to the next member or element; false if there is none.
func (w *Walk) Next() bool {
	i := space(w.rest, 0)
	if w.rest[i] == ',' {
		i = space(w.rest, i+1)
	}
	if w.rest[i] == '}' || w.rest[i] == ']' {
		w.rest = w.rest[i:]
		return false
	}
	if w.members {
		end := skip(w.rest, i)
		w.Name = w.rest[i:end]
		i = space(w.rest, space(w.rest, end)+1) // past the colon
	}
	end := skip(w.rest, i)
	w.Value, w.rest = w.rest[i:end], w.rest[end:]
	return true
}

// Is reports whether the name is s, which has no character that needs an
// escape.
func (w *Walk) Is(s string) bool { return Equal(w.Name, s) }

// Equal reports whether raw is the string s, which has no character that needs
// an escape.
func Equal(raw []byte, s string) bool {
	if raw[0] != '"' {
		return false
	}
	if len(raw) == len(s)+2 && string(raw[1:len(raw)-1]) == s {
		return true
	}
	if len(raw) <= len(s)+2 || bytes.IndexByte(raw, '\\') < 0 {
		return false
	}
	var buf [64]byte
	plain, err := jsontext.AppendUnquote(buf[:0], raw)
	return err == nil && string(plain) == s
}

// Get returns the value of the first member with the name, nil if there is
// none.
func Get(object []byte, name string) []byte {
	for w := Members(object); w.Next(); {
		if w.Is(name) {
			return w.Value
		}
	}
	return nil
}

// Plain returns the text of a string, in buf if it has escapes.
func Plain(buf, raw []byte) (plain, newBuf []byte) {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1], buf
	}
	// The error is about lone surrogates, which become U+FFFD.
	buf, _ = jsontext.AppendUnquote(buf[:0], raw)
	return buf, buf
}

// Value gives b the value of a Field. The members of an object are given one by one,
// as those of some are merged into attrs; buf is for names that have escapes.
func Value(b *normalize.Builder, buf, v []byte) (newBuf []byte) {
	if !IsObject(v) {
		b.JSON(v)
		return buf
	}
	b.BeginObject()
	for w := Members(v); w.Next() && !b.Failed(); {
		var name []byte
		name, buf = Plain(buf, w.Name)
		b.Name(name)
		b.JSON(w.Value)
	}
	b.EndObject()
	return buf
}

// IsObject tells the kind of a value.
func IsObject(v []byte) bool { return len(v) > 0 && v[0] == '{' }

// IsArray tells the kind of a value.
func IsArray(v []byte) bool { return len(v) > 0 && v[0] == '[' }

// IsString tells the kind of a value.
func IsString(v []byte) bool { return len(v) > 0 && v[0] == '"' }

// IsNull tells the kind of a value.
func IsNull(v []byte) bool { return len(v) > 0 && v[0] == 'n' }

func space(b []byte, i int) int {
	for b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t' {
		i++
	}
	return i
}

// skip returns the end of the value that begins at b[i].
func skip(b []byte, i int) int {
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		for level := 0; ; i++ {
			switch b[i] {
			case '"':
				i = skipString(b, i) - 1
			case '{', '[':
				level++
			case '}', ']':
				if level--; level == 0 {
					return i + 1
				}
			}
		}
	}
	for i < len(b) {
		switch b[i] {
		case ',', '}', ']', ' ', '\n', '\r', '\t':
			return i
		}
		i++
	}
	return i
}

func skipString(b []byte, i int) int {
	for i++; b[i] != '"'; i++ {
		if b[i] == '\\' {
			i++
		}
	}
	return i + 1
}
