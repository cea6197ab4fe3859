// Package pooliface is package pooled with the event behind an interface.
package pooliface

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

type emitter interface{ emit() }

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

func newEmitter(text []byte, level int, after func([]byte)) emitter {
	return newEvent(text, level, after)
}

func put(e emitter) {
	if _, ok := e.(*event); !ok {
		panic("not from this pool")
	}
	events.Put(e)
}

// Info writes msg.
func Info(msg string) {
	e := newEmitter([]byte(msg), 1, nil)
	e.emit()
	put(e)
}
