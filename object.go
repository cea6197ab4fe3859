package rollway

import (
	"encoding/json"
	"log/slog"
	"reflect"
	"sync"

	"github.com/rollway/rollway/internal/encode"
	"github.com/rollway/rollway/internal/jsonline"
)

// ObjectAppender is implemented by types that log themselves as an object
// without reflection:
//
//	func (u *User) AppendLog(o *rollway.Object) {
//		o.Add(slog.Int("id", u.ID), slog.String("name", u.Name))
//	}
type ObjectAppender interface {
	AppendLog(o *Object)
}

// ArrayAppender is implemented by types that log themselves as an array
// without reflection.
type ArrayAppender interface {
	AppendLog(a *Array)
}

// Object collects the members of an object for an [ObjectAppender], which must
// not keep it.
type Object struct{ value }

// Add appends members. To write a []byte or a slice without an allocation, pass
// slog.Any a pointer to it.
func (o *Object) Add(attrs ...slog.Attr) {
	dst := o.lend()
	o.dst = o.f.AppendAttrs(dst, attrs, o.depth)
}

// Object appends a member that is an object. If v panics, the text of the panic
// takes its place.
func (o *Object) Object(key string, v ObjectAppender) {
	o.dst = jsonline.AppendKey(o.dst, key)
	o.appendNested(v)
}

// Raw appends a member that is JSON already. If v is not valid JSON, a string
// that says so takes its place.
func (o *Object) Raw(key string, v json.RawMessage) {
	o.dst = encode.AppendRawJSON(jsonline.AppendKey(o.dst, key), v)
}

// Array collects the elements of an array for an [ArrayAppender], which must not
// keep it.
type Array struct {
	value
	object *Object // for the elements that are objects, or nil
}

// Add appends elements.
func (a *Array) Add(values ...slog.Value) {
	dst := a.lend()
	for _, v := range values {
		dst = a.f.AppendElement(dst, v, a.depth)
	}
	a.dst = dst
}

// Object appends an element that is an object. If v panics, the text of the panic
// takes its place.
func (a *Array) Object(v ObjectAppender) {
	o := a.object
	if o == nil {
		o = objects.Get().(*Object)
		o.f, o.depth = a.f, a.depth
	}
	a.object = nil // in use: v may hold a
	o.dst = encode.AppendArrayComma(a.lend())
	o.appendNested(v)
	a.dst, a.object = o.dst, o
	o.dst = nil
}

// value is an object or array that is being written.
type value struct {
	f     *encode.Format
	dst   []byte
	depth int
}

// lend returns dst to append a value to. The value may hold p. What it appends to
// p meanwhile goes to a copy and is lost, since it would overwrite what is appended
// to dst.
func (p *value) lend() []byte {
	dst := p.dst
	p.dst = p.dst[:len(p.dst):len(p.dst)]
	return dst
}

var (
	objects = sync.Pool{New: func() any { return new(Object) }}
	arrays  = sync.Pool{New: func() any { return new(Array) }}
)

func init() {
	encode.SelfAppenders = []reflect.Type{reflect.TypeFor[ObjectAppender](), reflect.TypeFor[ArrayAppender]()}
	encode.AppendSelf = appendSelf
}

// appendSelf appends an ObjectAppender or ArrayAppender, and reports whether v is
// one.
func appendSelf(f *encode.Format, dst []byte, v any, depth int) ([]byte, bool) {
	switch v := v.(type) {
	case ObjectAppender:
		return appendObject(f, dst, v, depth), true
	case ArrayAppender:
		return appendArray(f, dst, v, depth), true
	}
	return dst, false
}

func appendObject(f *encode.Format, dst []byte, v ObjectAppender, depth int) []byte {
	o := objects.Get().(*Object)
	defer o.free()
	o.value = value{f, dst, depth}
	o.append(v)
	return o.dst
}

// append appends v as an object.
func (o *Object) append(v ObjectAppender) {
	if o.f.IsTooDeep(o.dst, o.depth) {
		o.dst = encode.AppendTooDeep(o.dst)
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
			o.dst = encode.AppendPanic(o.dst[:mark], v, r)
		}
	}()
	o.append(v)
}

// free gives o back. A value that kept it now writes to an unused buffer.
func (o *Object) free() {
	o.value = value{}
	objects.Put(o)
}

func appendArray(f *encode.Format, dst []byte, v ArrayAppender, depth int) []byte {
	if f.IsTooDeep(dst, depth) {
		return encode.AppendTooDeep(dst)
	}
	a := arrays.Get().(*Array)
	defer a.free()
	a.value = value{f, append(dst, '['), depth + 1}
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
