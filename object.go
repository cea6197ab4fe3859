package rollway

import (
	"log/slog"
	"sync"
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

// Object is being written by an ObjectAppender. It must not be kept.
type Object struct{ appender }

// Add appends members.
func (o *Object) Add(attrs ...slog.Attr) {
	for i := range attrs {
		o.dst = o.f.appendJSONAttr(o.dst, &attrs[i], o.depth)
	}
}

// Array is being written by an ArrayAppender. It must not be kept.
type Array struct{ appender }

// Add appends elements.
func (a *Array) Add(values ...slog.Value) {
	for _, v := range values {
		if a.dst[len(a.dst)-1] != '[' {
			a.dst = append(a.dst, ',')
		}
		a.dst = a.f.appendJSONValue(a.dst, v, a.depth)
	}
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

func (f *format) appendObject(dst []byte, v ObjectAppender, depth int) []byte {
	if depth >= maxDepth || f.tooLong(dst) {
		return append(dst, tooDeep...)
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
		return append(dst, tooDeep...)
	}
	a := arrays.Get().(*Array)
	a.appender = appender{f, append(dst, '['), depth + 1}
	v.AppendLog(a)
	dst = append(a.dst, ']')
	a.appender = appender{}
	arrays.Put(a)
	return dst
}
