// Package study has the designs of the article, and what its rules are about. It is a
// module of its own, which the oldest toolchain takes; the benchmarks are generated.
package study

import (
	"io"
	"strings"
	"sync"
	"time"
)

// Values that the compiler cannot know.
var (
	m4      = message(4)
	m32     = message(32)
	m33     = message(33)
	m40     = message(40)
	m500    = message(500)
	m501    = message(501)
	n7      = len(message(7))
	n32     = len(message(32))
	n64     = len(message(64))
	n1000   = len(message(1000))
	bytes64 = []byte(message(64))
	request = &Request{ID: 1, Size: 2}
	utc     = dynamic("UTC")
	local   = dynamic("Local")
	saigon  = dynamic("Asia/Ho_Chi_Minh")
	ict     = dynamic("ICT")
	loaded  = mustLoad(saigon)
)

//go:noinline
func dynamic(s string) string { return s }

//go:noinline
func message(n int) string { return strings.Repeat("m", n) }

// discard is a writer that the compiler does not see behind io.Writer.
type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

var out io.Writer = discard{}

type event struct {
	text  []byte
	level int
	after func([]byte) // called once the text is out, if set
}

func (e event) emit() {
	if e.after != nil {
		defer e.after(e.text)
	}
	out.Write(e.text)
}

// plain makes an event for each message.
func plain(msg string) {
	e := newEvent([]byte(msg), 1, nil)
	e.emit()
}

func newEvent(text []byte, level int, after func([]byte)) *event {
	return &event{text: text, level: level, after: after}
}

var events = sync.Pool{New: func() interface{} {
	return &event{text: make([]byte, 0, 500)}
}}

// pooled takes events from a pool. The message is converted to bytes, and these are
// appended to the event's own, which begin with room for 500.
func pooled(msg string) {
	e := pooledEvent([]byte(msg), 1, nil)
	e.emit()
	events.Put(e)
}

func pooledEvent(text []byte, level int, after func([]byte)) *event {
	e := events.Get().(*event)
	e.text = append(e.text[:0], text...)
	e.level = level
	e.after = after
	return e
}

// direct is pooled, except that the string is appended as it is.
func direct(msg string) {
	e := events.Get().(*event)
	e.text = append(e.text[:0], msg...)
	e.level = 1
	e.after = nil
	e.emit()
	events.Put(e)
}

type emitter interface{ emit() }

// iface is plain with the event behind an interface.
func iface(msg string) {
	e := newEmitter([]byte(msg), 1, nil)
	e.emit()
}

func newEmitter(text []byte, level int, after func([]byte)) emitter {
	return newEvent(text, level, after)
}

// ifaceCalled does not let the compiler see what kind of emitter it has.
func ifaceCalled(msg string) {
	e := newEmitterCalled([]byte(msg), 1, nil)
	e.emit()
}

//go:noinline
func newEmitterCalled(text []byte, level int, after func([]byte)) emitter {
	return newEvent(text, level, after)
}

// pooliface is pooled with the event behind an interface.
func pooliface(msg string) {
	e := pooledEmitter([]byte(msg), 1, nil)
	e.emit()
	put(e)
}

func pooledEmitter(text []byte, level int, after func([]byte)) emitter {
	return pooledEvent(text, level, after)
}

func put(e emitter) {
	if _, ok := e.(*event); !ok {
		panic("not from this pool")
	}
	events.Put(e)
}

// Values, not pointers, in interfaces that are kept.
type small struct {
	text  string
	level int
}

func (s small) size() int { return len(s.text) + s.level }

type sizer interface{ size() int }

var (
	keptSizer sizer
	kept      interface{}
)

func boxEvent(msg string) { keptSizer = small{text: msg, level: 1} }

//go:noinline
func boxAny(v interface{}) { kept = v }

// A pooled event with a function to call after the write.
func write(msg string, after func([]byte)) {
	e := events.Get().(*event)
	e.text = append(e.text[:0], msg...)
	e.after = after
	e.emit()
	events.Put(e)
}

func exit([]byte) {}

func closureNamed(msg string) { write(msg, exit) }

func closureLiteral(msg string) {
	write(msg, func([]byte) {})
}

func closureCapturing(msg string, code int) {
	write(msg, func([]byte) { exitWith(code) })
}

//go:noinline
func exitWith(int) {}

//go:noinline
func call(f func()) { f() }

func closureCapturingNotKept(code int) {
	call(func() { exitWith(code) })
}

// Request is what a pooled event points to.
type Request struct{ ID, Size int }

type pointing struct {
	text    []byte
	request *Request
}

var pointers = sync.Pool{New: func() interface{} {
	return &pointing{text: make([]byte, 0, 500)}
}}

func point(msg string, request *Request) {
	e := pointers.Get().(*pointing)
	e.text = append(e.text[:0], msg...)
	e.request = request
	out.Write(e.text)
	e.request = nil
	pointers.Put(e)
}

func pointerNew(msg string, id int) { point(msg, &Request{ID: id, Size: len(msg)}) }

//go:noinline
func sum(r *Request) int { return r.ID + r.Size }

// pointerLocal points to a new variable, and the pointer is not kept.
func pointerLocal(id int) int {
	r := &Request{ID: id, Size: 1}
	return sum(r)
}

//go:noinline
func fill(b []byte) int {
	for i := range b {
		b[i] = 'x'
	}
	return len(b)
}

func sliceMake() int {
	b := make([]byte, 64)
	return fill(b)
}

func sliceSized(n int) int {
	b := make([]byte, n)
	return fill(b)
}

func sliceMakeWrite() {
	b := make([]byte, 64)
	out.Write(b)
}

func sliceAssign(b []byte) int {
	c := b
	return fill(c)
}

func sliceGrow(n int) int {
	var b []byte
	for i := 0; i < n; i++ {
		b = append(b, byte(i))
	}
	return fill(b)
}

func sliceGrowWrite(n int) {
	var b []byte
	for i := 0; i < n; i++ {
		b = append(b, byte(i))
	}
	out.Write(b)
}

func array() int {
	var a [64]byte
	return fill(a[:])
}

func arrayWrite() {
	var a [64]byte
	out.Write(a[:])
}

var buffers = sync.Pool{New: func() interface{} {
	b := make([]byte, 0, 64)
	return &b
}}

func slicePooled(n int) {
	p := buffers.Get().(*[]byte)
	b := (*p)[:0]
	for i := 0; i < n; i++ {
		b = append(b, byte(i))
	}
	out.Write(b)
	*p = b
	buffers.Put(p)
}

var values sync.Pool

// slicePooledValue puts the slice itself, not a pointer to it, into the pool.
func slicePooledValue(n int) {
	b, _ := values.Get().([]byte)
	b = b[:0]
	for i := 0; i < n; i++ {
		b = append(b, byte(i))
	}
	out.Write(b)
	values.Put(b)
}

var (
	moment = time.Unix(1664323200, 123456789)
	last   time.Time // what keeps the compiler from leaving the work out
	length int
	text   string
	number int64
)

func zoneLoad(name string) { last = moment.In(mustLoad(name)) }

func mustLoad(name string) *time.Location {
	l, err := time.LoadLocation(name)
	if err != nil {
		panic(err)
	}
	return l
}

func zoneIn(l *time.Location) { last = moment.In(l) }

func zoneFixed(name string, offset int) { last = moment.In(time.FixedZone(name, offset)) }

func appendRoom() {
	var a [64]byte
	length = len(moment.UTC().AppendFormat(a[:0], time.RFC3339Nano))
}

func appendTight() {
	var a [16]byte
	length = len(moment.UTC().AppendFormat(a[:0], time.RFC3339Nano))
}

func format() { text = moment.UTC().Format(time.RFC3339Nano) }

func unix() { number = moment.UnixNano() }
