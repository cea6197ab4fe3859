package remote

import (
	"errors"
	"io"
	"sync"
)

// A requestBody is the body of a request. net/http may go on reading it after it has
// returned the answer, but not after revoke.
type requestBody struct {
	mu   sync.Mutex
	sent func() // called when all of p was read; may be nil

	p    []byte // nil when revoked; guarded by mu
	read int    // how many bytes were; guarded by mu
}

var errRevoked = errors.New("request has ended")

func (b *requestBody) revoke() {
	b.mu.Lock()
	b.p = nil
	b.mu.Unlock()
}

// unread reports whether a part of p was never read.
func (b *requestBody) unread() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.read < len(b.p)
}

func (b *requestBody) reader() io.ReadCloser { return &bodyReader{body: b} }

type bodyReader struct {
	body *requestBody
	off  int
}

func (r *bodyReader) Read(dst []byte) (int, error) {
	r.body.mu.Lock()
	defer r.body.mu.Unlock()
	if r.body.p == nil {
		return 0, errRevoked
	}
	if r.off == len(r.body.p) {
		return 0, io.EOF
	}
	n := copy(dst, r.body.p[r.off:])
	r.off += n
	if r.body.read = max(r.body.read, r.off); r.body.read == len(r.body.p) && r.body.sent != nil {
		r.body.sent()
	}
	return n, nil
}

func (r *bodyReader) Close() error { return nil }
