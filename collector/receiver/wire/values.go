package wire

import (
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/rollway/rollway/internal/jsonwalk"
)

// Values reads values of JSON in a row. Equal names and bytes that are not UTF-8 are
// for the caller to judge.
type Values struct{ rest []byte }

// ValuesOf returns the values of a text.
func ValuesOf(text []byte) Values { return Values{text} }

// Next returns the next value, a part of the text; io.EOF if only white space is left.
// Another error says for a human why there is no value, as long as the text is there.
func (v *Values) Next() ([]byte, error) {
	start := jsonwalk.SkipSpace(v.rest, 0)
	if start == len(v.rest) {
		return nil, io.EOF
	}
	check := jsonwalk.Checker{MaxDepth: maxNested}
	end := check.Value(v.rest, start)
	if end < 0 {
		err := &notJSON{v.rest}
		v.rest = v.rest[start:]
		return nil, err
	}
	value := v.rest[start:end]
	v.rest = v.rest[end:]
	return value, nil
}

// Each goes over values in a row, and the elements of arrays among them. An error, which says
// why there is no value, comes last, with the text that is left.
func Each(text []byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for v := ValuesOf(text); ; {
			value, err := v.Next()
			switch {
			case err == io.EOF:
				return
			case err != nil:
				yield(v.rest, err)
				return
			case IsArray(value):
				for w := Elements(value); w.Next(); {
					if !yield(w.RawValue(), nil) {
						return
					}
				}
			case !yield(value, nil):
				return
			}
		}
	}
}

// Value returns the value that text consists of, apart from white space.
func Value(text []byte) ([]byte, error) {
	v := ValuesOf(text)
	value, err := v.Next()
	switch {
	case err == io.EOF:
		return nil, errors.New("there is no value")
	case err == nil && jsonwalk.SkipSpace(v.rest, 0) < len(v.rest):
		return nil, errors.New("there is something after the value")
	}
	return value, err
}

// notJSON is the error of a text that does not begin with a value. To say why costs
// about as much as to read it, so that is left to Error.
type notJSON struct{ text []byte }

func (e *notJSON) Error() string {
	at, problem := jsonwalk.Fault(e.text, maxNested)
	if problem == "" {
		return "the text ends inside a value"
	}
	return fmt.Sprintf("not valid JSON at offset %d: %s", at, problem)
}

// Members walks through an object that is known to be valid.
func Members(object []byte) jsonwalk.Walk { return jsonwalk.Members(object, 0) }

// Elements walks through an array that is known to be valid.
func Elements(array []byte) jsonwalk.Walk { return jsonwalk.Elements(array, 0) }

// Get returns the value of the first member with the name, or nil.
func Get(object []byte, name string) []byte {
	for w := Members(object); w.Next(); {
		if w.Is(name) {
			return w.RawValue()
		}
	}
	return nil
}

// IsWholeObject reports whether text is one JSON object, with white space
// around it or without.
func IsWholeObject(text []byte) bool {
	start := jsonwalk.SkipSpace(text, 0)
	return IsObject(text[start:]) && jsonwalk.Valid(text[start:], maxNested)
}

// IsObject tells the kind of a value.
func IsObject(v []byte) bool { return len(v) > 0 && v[0] == '{' }

// IsArray tells the kind of a value.
func IsArray(v []byte) bool { return len(v) > 0 && v[0] == '[' }

// IsString tells the kind of a value.
func IsString(v []byte) bool { return len(v) > 0 && v[0] == '"' }

// IsNull tells the kind of a value.
func IsNull(v []byte) bool { return len(v) > 0 && v[0] == 'n' }
