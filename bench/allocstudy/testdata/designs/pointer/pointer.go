// Package pointer gives a pooled event a field that is a pointer.
package pointer

import (
	"io"
	"sync"
)

// Out is where messages go.
var Out io.Writer

// Request is what an event points to.
type Request struct{ ID, Size int }

type event struct {
	text    []byte
	request *Request
}

var events = sync.Pool{New: func() interface{} {
	return &event{text: make([]byte, 0, 500)}
}}

func write(msg string, request *Request) {
	e := events.Get().(*event)
	e.text = append(e.text[:0], msg...)
	e.request = request
	Out.Write(e.text)
	e.request = nil
	events.Put(e)
}

// Existing stores a pointer that the caller has.
func Existing(msg string, r *Request) { write(msg, r) }

// New stores a pointer to a new variable.
func New(msg string, id int) { write(msg, &Request{ID: id, Size: len(msg)}) }

//go:noinline
func sum(r *Request) int { return r.ID + r.Size }

// Local points to a new variable, and the pointer is not kept.
func Local(id int) int {
	r := &Request{ID: id, Size: 1}
	return sum(r)
}
