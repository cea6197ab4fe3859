package rollway

import (
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/rollway/rollway/internal/jsonline"
)

// ObjectAppender is implemented by types that log themselves as an object
// without reflection:
//
//	func (u *User) AppendLog(o *rollway.Object) {
//		o.Int("id", u.ID)
//		o.String("name", u.Name)
//	}
type ObjectAppender interface {
	AppendLog(o *Object)
}

// ArrayAppender is implemented by types that log themselves as an array
// without reflection.
type ArrayAppender interface {
	AppendLog(a *Array)
}

// Object is being written by an ObjectAppender. It must not be kept.
type Object struct{ appender }

// Add appends members.
func (o *Object) Add(attrs ...slog.Attr) {
	for i := range attrs {
		o.dst = o.f.appendJSONAttr(o.dst, &attrs[i], o.depth, nil)
	}
}

// The methods named after slog's constructors append one member each. They do
// what Add does with that attribute, in less time.

func (o *Object) String(key, v string)          { o.dst = jsonline.AppendString(o.key(key), v) }
func (o *Object) Int(key string, v int)         { o.dst = jsonline.AppendInt(o.key(key), int64(v)) }
func (o *Object) Int64(key string, v int64)     { o.dst = jsonline.AppendInt(o.key(key), v) }
func (o *Object) Uint64(key string, v uint64)   { o.dst = jsonline.AppendUint(o.key(key), v) }
func (o *Object) Float64(key string, v float64) { o.dst = jsonline.AppendFloat(o.key(key), v) }
func (o *Object) Bool(key string, v bool)       { o.dst = strconv.AppendBool(o.key(key), v) }

func (o *Object) Time(key string, v time.Time) {
	o.dst = o.f.appendTimeValue(o.key(key), v)
}

func (o *Object) Duration(key string, v time.Duration) {
	o.dst = o.f.appendDuration(o.key(key), v)
}

func (o *Object) Any(key string, v any) { o.Add(slog.Any(key, v)) }

// Object appends a member that is an object. Where v panics, the text of the
// panic stands in its place.
func (o *Object) Object(key string, v ObjectAppender) {
	o.dst = o.f.appendGuarded(o.key(key), v, o.depth)
}

func (o *Object) key(k string) []byte { return jsonline.AppendKey(o.dst, k) }

// Array is being written by an ArrayAppender. It must not be kept.
type Array struct{ appender }

// Add appends elements.
func (a *Array) Add(values ...slog.Value) {
	for _, v := range values {
		a.dst = a.f.appendJSONValue(a.comma(), v, a.depth)
	}
}

// Object appends an element that is an object. Where v panics, the text of the
// panic stands in its place.
func (a *Array) Object(v ObjectAppender) {
	a.dst = a.f.appendGuarded(a.comma(), v, a.depth)
}

func (a *Array) comma() []byte {
	if a.dst[len(a.dst)-1] != '[' {
		return append(a.dst, ',')
	}
	return a.dst
}

type appender struct {
	f     *format
	dst   []byte
	depth int
}

var (
	objects = sync.Pool{New: func() any { return new(Object) }}
	arrays  = sync.Pool{New: func() any { return new(Array) }}
)

// appendGuarded is appendObject for a v that may panic.
func (f *format) appendGuarded(dst []byte, v ObjectAppender, depth int) (out []byte) {
	if v == nil {
		return append(dst, "null"...)
	}
	defer func() {
		if r := recover(); r != nil {
			out = jsonline.AppendString(dst, panicText(v, r))
		}
	}()
	return f.appendObject(dst, v, depth)
}

func (f *format) appendObject(dst []byte, v ObjectAppender, depth int) []byte {
	if depth >= maxDepth || f.tooLong(dst) {
		return jsonline.AppendString(dst, tooDeep)
	}
	o := objects.Get().(*Object)
	o.appender = appender{f, append(dst, '{'), depth + 1}
	v.AppendLog(o)
	dst = append(o.dst, '}')
	o.appender = appender{} // what was kept of it writes nowhere that matters
	objects.Put(o)
	return dst
}

func (f *format) appendArray(dst []byte, v ArrayAppender, depth int) []byte {
	if depth >= maxDepth || f.tooLong(dst) {
		return jsonline.AppendString(dst, tooDeep)
	}
	a := arrays.Get().(*Array)
	a.appender = appender{f, append(dst, '['), depth + 1}
	v.AppendLog(a)
	dst = append(a.dst, ']')
	a.appender = appender{}
	arrays.Put(a)
	return dst
}
