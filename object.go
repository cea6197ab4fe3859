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
	dst := o.lend()
	o.dst = o.f.appendJSONAttrs(dst, attrs, o.depth, nil)
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
	o.dst = o.key(key)
	o.appendNested(v)
}

func (o *Object) key(k string) []byte { return jsonline.AppendKey(o.dst, k) }

// Array is being written by an ArrayAppender. It must not be kept.
type Array struct {
	appender
	object *Object // for the elements that are objects, or nil
}

// Add appends elements.
func (a *Array) Add(values ...slog.Value) {
	dst := a.lend()
	for _, v := range values {
		dst = a.f.appendJSONValue(comma(dst), v, a.depth)
	}
	a.dst = dst
}

// Object appends an element that is an object. Where v panics, the text of the
// panic stands in its place.
func (a *Array) Object(v ObjectAppender) {
	o := a.object
	if o == nil {
		o = objects.Get().(*Object)
		o.f, o.depth = a.f, a.depth
	}
	a.object = nil // in use: v may hold a
	o.dst = comma(a.lend())
	o.appendNested(v)
	a.dst, a.object = o.dst, o
	o.dst = nil
}

// comma is appendComma for an array.
func comma(dst []byte) []byte {
	if dst[len(dst)-1] != '[' {
		return append(dst, ',')
	}
	return dst
}

type appender struct {
	f     *format
	dst   []byte
	depth int
}

// lend returns dst to append a value to. The value may hold p: what it appends
// to p meanwhile goes to a copy, for it would overwrite what is appended to dst,
// and is lost.
func (p *appender) lend() []byte {
	dst := p.dst
	p.dst = p.dst[:len(p.dst):len(p.dst)]
	return dst
}

var (
	objects = sync.Pool{New: func() any { return new(Object) }}
	arrays  = sync.Pool{New: func() any { return new(Array) }}
)

func (f *format) appendObject(dst []byte, v ObjectAppender, depth int) []byte {
	o := objects.Get().(*Object)
	defer o.free()
	o.appender = appender{f, dst, depth}
	o.append(v)
	return o.dst
}

// append appends v as an object.
func (o *Object) append(v ObjectAppender) {
	if o.depth >= maxDepth || o.f.tooLong(o.dst) {
		o.dst = jsonline.AppendString(o.dst, tooDeep)
		return
	}
	o.dst = append(o.dst, '{')
	o.depth++
	v.AppendLog(o)
	o.depth--
	o.dst = append(o.dst, '}')
}

// appendNested is append for a v in another value, which may be nil or panic.
func (o *Object) appendNested(v ObjectAppender) {
	if v == nil {
		o.dst = append(o.dst, "null"...)
		return
	}
	mark, depth := len(o.dst), o.depth
	defer func() {
		if r := recover(); r != nil {
			o.depth = depth
			o.dst = jsonline.AppendString(o.dst[:mark], panicText(v, r))
		}
	}()
	o.append(v)
}

// free gives o back. What was kept of it writes nowhere that matters.
func (o *Object) free() {
	o.appender = appender{}
	objects.Put(o)
}

func (f *format) appendArray(dst []byte, v ArrayAppender, depth int) []byte {
	if depth >= maxDepth || f.tooLong(dst) {
		return jsonline.AppendString(dst, tooDeep)
	}
	a := arrays.Get().(*Array)
	defer a.free()
	a.appender = appender{f, append(dst, '['), depth + 1}
	v.AppendLog(a)
	return append(a.dst, ']')
}

// free gives a back, as Object's free does.
func (a *Array) free() {
	if a.object != nil {
		a.object.free()
	}
	*a = Array{}
	arrays.Put(a)
}
