// Package direct is package pooled but for one thing: the string is appended
// as it is.
package direct

import (
	"io"
	"sync"
)

// Out is where messages go.
var Out io.Writer

type event struct {
	text  []byte
	level int
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

func newEvent(text string, level int, after func([]byte)) *event {
	e := events.Get().(*event)
	e.text = append(e.text[:0], text...)
	e.level = level
	e.after = after
	return e
}

// Info writes msg.
func Info(msg string) {
	e := newEvent(msg, 1, nil)
	e.emit()
	events.Put(e)
}
