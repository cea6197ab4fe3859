// Package pooled takes events from a pool. The message is converted to bytes
// and these are appended to the event's own, which begin with room for 500.
package pooled

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

func newEvent(text []byte, level int, after func([]byte)) *event {
	e := events.Get().(*event)
	e.text = append(e.text[:0], text...)
	e.level = level
	e.after = after
	return e
}

// Info writes msg.
func Info(msg string) {
	e := newEvent([]byte(msg), 1, nil)
	e.emit()
	events.Put(e)
}
