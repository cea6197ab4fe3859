package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/rollway/rollway/internal/jsonwalk"
)

// JSON reads a request in JSON. Its methods take and return offsets in Body, and check
// the text on the way. It is for one goroutine; Begin comes first.
type JSON struct {
	Body []byte

	what    string // the request is, for errors
	escapes bool   // there is a backslash somewhere
	check   jsonwalk.Checker
	text    []byte // scratch of Text
}

// maxNested is how many objects and arrays may be in one another, as in jsontext.
const maxNested = 10_000

// Begin begins to read body, which is called what in errors.
func (j *JSON) Begin(body []byte, what string) {
	j.Body, j.what, j.check = body, what, jsonwalk.Checker{MaxDepth: maxNested}
	j.escapes = bytes.IndexByte(body, '\\') >= 0
}

// Release keeps nothing of the body, and no scratch memory of more than keep bytes.
func (j *JSON) Release(keep int) {
	j.Body = nil
	if cap(j.text) > keep {
		j.text = nil
	}
}

// Memory is the scratch memory, for package pool.
func (j *JSON) Memory() []byte { return j.text }

// errSyntax is the error for text that is not JSON, until Finish says what is wrong.
var errSyntax = errors.New("not JSON")

// Finish returns the error of a request whose value ends at an offset, or that could
// not be read because of err.
func (j *JSON) Finish(end int, err error) error {
	if err == nil && jsonwalk.SkipSpace(j.Body, end) < len(j.Body) {
		return j.Invalid(end, errors.New("there is more after its end"))
	}
	if err != errSyntax {
		return err
	}
	at, problem := jsonwalk.Fault(j.Body, maxNested)
	if problem == "" {
		return j.Invalid(at, io.ErrUnexpectedEOF)
	}
	return j.Invalid(at, errors.New(problem))
}

// Invalid is the error for a request in which err is wrong at an offset.
func (j *JSON) Invalid(at int, err error) error {
	return fmt.Errorf("the body is not a valid %s in JSON at offset %d: %w; nothing was stored", j.what, at, err)
}

// Mismatch is the error for the value at an offset that is not what should says.
func (j *JSON) Mismatch(at int, should string) error {
	end := j.check.Value(j.Body, at)
	if end < 0 {
		return errSyntax
	}
	return j.Invalid(at, fmt.Errorf("%s, but this is %.50q", should, j.Body[at:end]))
}

// Start returns the offset of the request.
func (j *JSON) Start() int { return jsonwalk.SkipSpace(j.Body, 0) }

// Object returns a walk through the object at an offset, which is called what.
func (j *JSON) Object(at int, what string) (w jsonwalk.Walk, err error) {
	if j.Kind(at) != '{' {
		return w, j.Mismatch(at, what+" is an object")
	}
	return j.check.Members(j.Body, at), nil
}

// Members has read read the values of the members of the object at an offset, which is
// called what, except for nulls. read gets the text of the name, which is valid until
// the next one, and returns the end of the value, or 0 to pass over it. Members returns
// the end of the object.
func (j *JSON) Members(at int, what string, read func(name []byte, at int) (end int, err error)) (end int, err error) {
	w, err := j.Object(at, what)
	if err != nil {
		return 0, err
	}
	for w.NextName() {
		end := 0
		if j.Kind(w.Value.Start) != 'n' {
			if end, err = read(j.Name(&w), w.Value.Start); err != nil {
				return 0, err
			}
		}
		if end > 0 {
			w.SetEnd(end)
		} else {
			w.SkipValue()
		}
	}
	return End(&w)
}

// Each has read read the elements of the array at an offset, which is called what.
// read returns the end of the element, Each that of the array.
func (j *JSON) Each(at int, what string, read func(at int) (end int, err error)) (end int, err error) {
	if j.Kind(at) != '[' {
		return 0, j.Mismatch(at, what+" is an array")
	}
	w := j.check.Elements(j.Body, at)
	for w.NextName() {
		if end, err = read(w.Value.Start); err != nil {
			return 0, err
		}
		w.SetEnd(end)
	}
	return End(&w)
}

// Elements returns a walk through the array at an offset, if there is one.
func (j *JSON) Elements(at int) jsonwalk.Walk { return j.check.Elements(j.Body, at) }

// End returns the end of the object or array that was walked through.
func End(w *jsonwalk.Walk) (end int, err error) {
	if end = w.End(); end < 0 {
		return 0, errSyntax
	}
	return end, nil
}

// Name returns the name of the member that a walk has reached, valid until the next
// call of Name or Text.
func (j *JSON) Name(w *jsonwalk.Walk) []byte { return j.Text(w.Name.Of(j.Body)) }

// Skip returns the end of the value at an offset.
func (j *JSON) Skip(at int) (end int, err error) {
	if end = j.check.Value(j.Body, at); end < 0 {
		return 0, errSyntax
	}
	return end, nil
}

// Kind returns the byte that the value at an offset begins with; or 0.
func (j *JSON) Kind(at int) byte {
	if at >= len(j.Body) {
		return 0
	}
	return j.Body[at]
}

// After returns the end of token, if it is at an offset and there is more after it,
// and else -1.
func (j *JSON) After(token string, at int) (end int) {
	if at < 0 || len(j.Body)-at <= len(token) || string(j.Body[at:at+len(token)]) != token {
		return -1
	}
	return at + len(token)
}

// StringEnd returns the end of the string at an offset, or -1.
func (j *JSON) StringEnd(at int) (end int) {
	if at < 0 || j.Body[at] != '"' {
		return -1
	}
	return jsonwalk.CheckString(j.Body, at)
}

// Text returns the text of a string, which has its quotes, valid until the next call.
func (j *JSON) Text(raw []byte) (text []byte) {
	if !j.escapes { // as in nearly all
		return raw[1 : len(raw)-1]
	}
	text, j.text = jsonwalk.Text(raw, j.text)
	return text
}
