// Package iface is package plain with the event behind an interface.
package iface

import "io"

// Out is where messages go.
var Out io.Writer

type event struct {
	text  []byte
	level int
	after func([]byte) // called once the text is out, if set
}

type emitter interface{ emit() }

func (e event) emit() {
	if e.after != nil {
		defer e.after(e.text)
	}
	Out.Write(e.text)
}

func newEvent(text []byte, level int, after func([]byte)) *event {
	return &event{text: text, level: level, after: after}
}

func newEmitter(text []byte, level int, after func([]byte)) emitter {
	return newEvent(text, level, after)
}

// Info writes msg.
func Info(msg string) {
	e := newEmitter([]byte(msg), 1, nil)
	e.emit()
}

//go:noinline
func newEmitterCalled(text []byte, level int, after func([]byte)) emitter {
	return newEvent(text, level, after)
}

// InfoCalled writes msg. The compiler does not see what kind of emitter it has.
func InfoCalled(msg string) {
	e := newEmitterCalled([]byte(msg), 1, nil)
	e.emit()
}
