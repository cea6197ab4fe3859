package pipe

import (
	"bytes"
	"cmp"

	"github.com/rollway/rollway/internal/jsonline"
	"github.com/rollway/rollway/internal/jsonwalk"
	"github.com/rollway/rollway/internal/levels"
)

// A Kind is a kind of Value.
type Kind uint8

// The kinds of values, in the order that sort gives them; a String that contains a
// number is sorted as that number.
const (
	Number Kind = iota + 1 // as JSON writes it
	String                 // its text
	Other                  // true, false, null, a list or an object, as JSON writes it
	Absent Kind = 0        // comes last
)

// A Value is one value of a row.
type Value struct {
	Kind Kind
	Text []byte
}

// valueOf returns the value of raw, which is JSON or nil. Its text is in raw or, if there
// are escapes, at the end of *buf.
func valueOf(raw []byte, buf *[]byte) Value {
	if len(raw) == 0 {
		return Value{}
	}
	switch c := raw[0]; {
	case c == '"' && len(raw) > 1:
		inner := raw[1 : len(raw)-1]
		if bytes.IndexByte(inner, '\\') < 0 {
			return Value{String, inner}
		}
		start := len(*buf)
		*buf = jsonwalk.AppendText(*buf, inner)
		return Value{String, (*buf)[start:len(*buf):len(*buf)]}
	case c == '-', jsonwalk.IsDigit(c):
		return Value{Number, raw}
	}
	return Value{Other, raw}
}

// decimal returns the number that v is or, as a String, contains.
func (v Value) decimal() (jsonwalk.Decimal, bool) {
	n := len(v.Text)
	if v.Kind != Number && v.Kind != String || n == 0 || !jsonwalk.IsDigit(v.Text[n-1]) { // most texts, and times
		return jsonwalk.Decimal{}, false
	}
	return jsonwalk.ParseDecimal(v.Text)
}

// compare is the order of values. Numbers compare exactly, texts byte by byte. It is 0 for
// two ways to write one number.
func compare(a, b Value) int {
	x, xNumber := a.decimal()
	y, yNumber := b.decimal()
	if xNumber && yNumber {
		return x.Compare(y)
	}
	return cmp.Or(cmp.Compare(a.rank(xNumber), b.rank(yNumber)), bytes.Compare(a.Text, b.Text))
}

func (v Value) rank(number bool) Kind {
	switch {
	case number:
		return Number
	case v.Kind == Absent:
		return Other + 1
	}
	return v.Kind
}

// compareLevels is compare for the values of a field that is a level. Values that are none come after
// levels.
func compareLevels(a, b Value) int {
	x, xOK := levels.Parse(a.Text)
	y, yOK := levels.Parse(b.Text)
	switch {
	case xOK && yOK:
		return cmp.Compare(x, y)
	case xOK:
		return -1
	case yOK:
		return 1
	}
	return compare(a, b)
}

// AppendJSON appends v, which is not Absent.
func (v Value) AppendJSON(dst []byte) []byte {
	if v.Kind == String {
		return jsonline.AppendStringBytes(dst, v.Text)
	}
	return append(dst, v.Text...)
}
