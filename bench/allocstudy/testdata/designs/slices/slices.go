// Package slices makes, grows and passes on slices and arrays.
package slices

import (
	"io"
	"sync"
)

// Out is where bytes go.
var Out io.Writer

//go:noinline
func fill(b []byte) int {
	for i := range b {
		b[i] = 'x'
	}
	return len(b)
}

// Make uses a slice of constant size here alone.
func Make() int {
	b := make([]byte, 64)
	return fill(b)
}

// MakeSized uses a slice of n bytes here alone.
func MakeSized(n int) int {
	b := make([]byte, n)
	return fill(b)
}

// MakeWrite passes a slice of constant size to a writer.
func MakeWrite() {
	b := make([]byte, 64)
	Out.Write(b)
}

// Assign gives the same bytes to a second variable.
func Assign(b []byte) int {
	c := b
	return fill(c)
}

// Grow appends n bytes to nothing, one after the other.
func Grow(n int) int {
	var b []byte
	for i := 0; i < n; i++ {
		b = append(b, byte(i))
	}
	return fill(b)
}

// GrowWrite does the same and passes them to a writer.
func GrowWrite(n int) {
	var b []byte
	for i := 0; i < n; i++ {
		b = append(b, byte(i))
	}
	Out.Write(b)
}

// Array uses an array here alone.
func Array() int {
	var a [64]byte
	return fill(a[:])
}

// ArrayWrite passes an array to a writer.
func ArrayWrite() {
	var a [64]byte
	Out.Write(a[:])
}

var buffers = sync.Pool{New: func() interface{} {
	b := make([]byte, 0, 64)
	return &b
}}

// Pooled appends n bytes to a slice from a pool and passes them to a writer.
func Pooled(n int) {
	p := buffers.Get().(*[]byte)
	b := (*p)[:0]
	for i := 0; i < n; i++ {
		b = append(b, byte(i))
	}
	Out.Write(b)
	*p = b
	buffers.Put(p)
}

// PooledValue puts the slice itself, not a pointer to it, into the pool.
func PooledValue(n int) {
	b, _ := values.Get().([]byte)
	b = b[:0]
	for i := 0; i < n; i++ {
		b = append(b, byte(i))
	}
	Out.Write(b)
	values.Put(b)
}

var values sync.Pool
