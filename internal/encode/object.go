package encode

import (
	"log/slog"
	"reflect"

	"github.com/rollway/rollway/internal/jsonline"
)

// Types of package rollway say by a method how their values are written. The
// method takes a type of that package, which this one cannot name. So package
// rollway sets the variables below before it makes a Format.
var (
	// SelfAppenders are the interfaces of such types.
	SelfAppenders []reflect.Type

	// AppendSelf appends value if it implements one of SelfAppenders, and reports
	// whether it does. depth is the number of values around it.
	AppendSelf = func(f *Format, dst []byte, value any, depth int) ([]byte, bool) { return dst, false }
)

// AppendAttrs appends attributes as members of the JSON object that dst ends in.
func (f *Format) AppendAttrs(dst []byte, attrs []slog.Attr, depth int) []byte {
	return f.appendJSONAttrs(dst, attrs, depth, nil)
}

// AppendElement appends v as an element of the JSON array that dst ends in.
func (f *Format) AppendElement(dst []byte, v slog.Value, depth int) []byte {
	return f.appendJSONValue(AppendArrayComma(dst), v, depth)
}

// AppendArrayComma appends the comma that the array in which dst ends needs
// before its next element.
func AppendArrayComma(dst []byte) []byte {
	if dst[len(dst)-1] != '[' {
		return append(dst, ',')
	}
	return dst
}

// IsTooDeep reports whether a value inside depth others, or on a line that ends in
// dst, must not be encoded.
func (f *Format) IsTooDeep(dst []byte, depth int) bool { return depth >= maxDepth || f.tooLong(dst) }

// AppendTooDeep appends the text that replaces such a value.
func AppendTooDeep(dst []byte) []byte { return jsonline.AppendString(dst, tooDeep) }

// AppendPanic appends the text that replaces a value whose method panicked with p.
func AppendPanic(dst []byte, value, p any) []byte {
	return jsonline.AppendString(dst, panicText(value, p))
}

// IsNil reports whether v is nil or contains a nil pointer or function, as that of
// a failed Open whose error was ignored.
func IsNil(v any) bool {
	if v == nil {
		return true
	}
	rv := reflect.ValueOf(v)
	return (rv.Kind() == reflect.Pointer || rv.Kind() == reflect.Func) && rv.IsNil()
}
