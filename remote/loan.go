package remote

import (
	"errors"
	"io"
	"sync"
)

// A loan lends bytes to net/http, which may go on reading a request's body
// after it has returned the answer. After recall nobody reads p any more.
type loan struct {
	mu   sync.Mutex
	sent func() // called when all of p was read; may be nil

	p    []byte // nil when recalled; guarded by mu
	read int    // how many bytes were; guarded by mu
}

var errRecalled = errors.New("request has ended")

func (l *loan) recall() {
	l.mu.Lock()
	l.p = nil
	l.mu.Unlock()
}

// unread reports whether a part of p was never read.
func (l *loan) unread() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.read < len(l.p)
}

func (l *loan) reader() io.ReadCloser { return &loanReader{loan: l} }

type loanReader struct {
	loan *loan
	off  int
}

func (r *loanReader) Read(dst []byte) (int, error) {
	r.loan.mu.Lock()
	defer r.loan.mu.Unlock()
	if r.loan.p == nil {
		return 0, errRecalled
	}
	if r.off == len(r.loan.p) {
		return 0, io.EOF
	}
	n := copy(dst, r.loan.p[r.off:])
	r.off += n
	if r.loan.read = max(r.loan.read, r.off); r.loan.read == len(r.loan.p) && r.loan.sent != nil {
		r.loan.sent()
	}
	return n, nil
}

func (r *loanReader) Close() error { return nil }
