// Package plain makes an event for each message.
package plain

import "io"

// Out is where messages go.
var Out io.Writer

type event struct {
	text  []byte
	level int
	after func([]byte) // called once the text is out, if set
}

func (e event) emit() {
	if e.after != nil {
		defer e.after(e.text)
	}
	Out.Write(e.text)
}

func newEvent(text []byte, level int, after func([]byte)) *event {
	return &event{text: text, level: level, after: after}
}

// Info writes msg.
func Info(msg string) {
	e := newEvent([]byte(msg), 1, nil)
	e.emit()
}
