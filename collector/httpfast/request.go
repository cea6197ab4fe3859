package httpfast

import (
	"context"
	"io"
	"net/http"
)

// body is the body of a request, of which all is here.
type body struct {
	rest   []byte // memory of the worker's
	closed bool
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if b.closed {
		return 0, http.ErrBodyReadAfterClose
	}
	if len(b.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

// Whole returns what is left of the body, without reading it. It is good until the
// handler returns.
func (b *body) Whole() []byte { return b.rest }

// Close implements io.Closer.
func (b *body) Close() error {
	b.rest, b.closed = nil, true
	return nil
}

// blocker is who is told that a handler will wait.
type blocker interface{ willBlock() }

// requestContext is the context of the requests of one connection.
type requestContext struct {
	context.Context
	now blocker // while a handler runs
}

type blockerKey struct{}

// Value implements context.Context.
func (c *requestContext) Value(key any) any {
	if key == (blockerKey{}) {
		return c.now
	}
	return c.Context.Value(key)
}

// WillBlock says that the handler of the request with this context, or with one
// made from it, is about to wait for something, as for a disk: others are served
// meanwhile. With any other context it does nothing. Only the handler's own
// goroutine may call it.
func WillBlock(ctx context.Context) {
	if b, _ := ctx.Value(blockerKey{}).(blocker); b != nil {
		b.willBlock()
	}
}
