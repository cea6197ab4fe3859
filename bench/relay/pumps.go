package relay

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// A pump copies one direction until src ends, the way most Go relays do.
type pump func(dst io.Writer, src io.Reader) error

// stackBytes is the odd size of the buffer in the published benchmark.
const stackBytes = 16379

// pumpOf returns the pump with this name; size is that of its buffer in bytes.
func pumpOf(name string, size int) (pump, error) {
	switch name {
	case pumpSplice:
		return func(dst io.Writer, src io.Reader) error {
			_, err := io.Copy(dst, src)
			return err
		}, nil
	case pumpPool:
		pool := sync.Pool{New: func() any { b := make([]byte, size); return &b }}
		return func(dst io.Writer, src io.Reader) error {
			buf := pool.Get().(*[]byte)
			defer pool.Put(buf)
			// The structs hide ReadFrom and WriteTo, which would bypass the buffer.
			_, err := io.CopyBuffer(struct{ io.Writer }{dst}, struct{ io.Reader }{src}, *buf)
			return err
		}, nil
	case pumpStack:
		return func(dst io.Writer, src io.Reader) error {
			var buf [stackBytes]byte // moved to the heap: Read is an interface's method
			_, err := io.CopyBuffer(struct{ io.Writer }{dst}, struct{ io.Reader }{src}, buf[:])
			return err
		}, nil
	}
	return nil, fmt.Errorf("there is no pump %q", name)
}

// Names of pumps.
const (
	pumpSplice = "io.Copy"
	pumpPool   = "pool"
	pumpStack  = "stack"
)

// both pumps both directions and passes the end of each on. It closes both.
func (p pump) both(a, b net.Conn) error {
	var back error
	var done sync.WaitGroup
	done.Go(func() { back = p.one(a, b) })
	err := p.one(b, a)
	done.Wait()
	return errors.Join(err, back, a.Close(), b.Close())
}

func (p pump) one(dst, src net.Conn) error {
	err := p(dst, src)
	if c, ok := dst.(interface{ CloseWrite() error }); ok {
		return errors.Join(err, c.CloseWrite())
	}
	return errors.Join(err, dst.Close()) // a net.Pipe has no half to close
}
