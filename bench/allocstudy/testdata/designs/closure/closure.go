// Package closure gives a pooled event a function to call after the write.
package closure

import (
	"io"
	"sync"
)

// Out is where messages go.
var Out io.Writer

type event struct {
	text  []byte
	after func([]byte) // called once the text is out, if set
}

var events = sync.Pool{New: func() interface{} {
	return &event{text: make([]byte, 0, 500)}
}}

func (e event) emit() {
	if e.after != nil {
		defer e.after(e.text)
	}
	Out.Write(e.text)
}

func write(msg string, after func([]byte)) {
	e := events.Get().(*event)
	e.text = append(e.text[:0], msg...)
	e.after = after
	e.emit()
	events.Put(e)
}

func exit([]byte) {}

// Named passes a declared function.
func Named(msg string) { write(msg, exit) }

// Literal passes a function literal that uses nothing from around it.
func Literal(msg string) {
	write(msg, func([]byte) {})
}

// Capturing passes a function literal that uses a variable from around it, and
// the event keeps it.
func Capturing(msg string, code int) {
	write(msg, func([]byte) { exitWith(code) })
}

//go:noinline
func exitWith(int) {}

//go:noinline
func call(f func()) { f() }

// CapturingNotKept passes such a literal to a function that only calls it.
func CapturingNotKept(code int) {
	call(func() { exitWith(code) })
}
