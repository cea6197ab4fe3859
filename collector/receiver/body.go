package receiver

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// errBody says that wireReader has noted a fault.
var errBody = errors.New("read request body")

// failure is an answer other than 200; the zero value says that there was none.
type failure struct {
	code    int
	text    string
	aborted bool          // the client is gone
	close   bool          // the connection is of no more use
	wait    time.Duration // before it is of use to try again; 0: as for any other
}

// refuse returns a failure, after which the connection can be used again.
func refuse(code int, format string, args ...any) failure {
	return failure{code: code, text: fmt.Sprintf(format, args...)}
}

// closing is refuse for a failure that leaves part of the body unread.
func closing(code int, format string, args ...any) failure {
	f := refuse(code, format, args...)
	f.close = true
	return f
}

// readBody reads and unpacks the body of req into w.buf. usual is the
// Content-Encoding of bodies without one.
func (r *Receiver) readBody(w *workspace, req *http.Request, declared, usual string) failure {
	if req.ContentLength > r.opts.MaxBody {
		return r.tooLarge(fmt.Sprintf("the body of %d bytes", req.ContentLength))
	}
	w.open(req.Body, r.opts.MaxBody)
	head, err := w.peek.Peek(1)
	if len(head) == 0 && err == io.EOF {
		return failure{} // of no bytes, which normalization explains
	}
	if err == nil {
		head, _ = w.peek.Peek(headBytes(head[0])) // fewer if there are no more
	}
	if f := r.broken(w); f.code != 0 {
		return f
	}
	c, f := codingOf(declared, usual, head)
	if f.code != 0 {
		return f
	}
	return r.unpack(w, c, req.ContentLength)
}

// unpack reads the rest of the body, of size bytes or -1, into w.buf.
func (r *Receiver) unpack(w *workspace, c coding, size int64) failure {
	if n := w.announced(c, size); n > r.opts.MaxUnpacked {
		return r.overUnpacked(w, n)
	}
	switch c {
	case asSent:
		return r.fill(w, c, w.peek, size)
	case inSnappy, inZstd, inBrotli:
		if f := r.fillPacked(w, size); f.code != 0 {
			return f
		}
		w.turn.Begin()
		return r.unpackWhole(w, c)
	}
	w.turn.Begin()
	src, err := w.stream(c, w.peek)
	if err != nil {
		return r.invalid(w, c, err)
	}
	return r.fill(w, c, src, -1)
}

// fillPacked reads the body as it is sent into w.packed.
func (r *Receiver) fillPacked(w *workspace, size int64) failure {
	w.buf, w.packed = w.packed, w.buf
	f := r.fillBuf(w, asSent, w.peek, size, filling{each: 1, max: r.opts.MaxBody})
	w.buf, w.packed = w.packed, w.buf
	w.base = int64(cap(w.packed))
	if f.code == 0 && !r.acquire(w, w.base) {
		return r.busy()
	}
	return f
}

// Sizes of the window that w.buf is filled through.
const (
	firstWindow = 8 << 10
	maxFirst    = 64 << 10 // however much Content-Length promises
)

// fill reads src, of a coding, to its end into w.buf, whose room grows with
// what arrives. size is the length promised, or -1.
func (r *Receiver) fill(w *workspace, c coding, src io.Reader, size int64) failure {
	return r.fillBuf(w, c, src, size, filling{each: 2, max: r.opts.MaxUnpacked, unpacks: true})
}

// filling is how w.buf is filled.
type filling struct {
	each    int64 // bytes of the budget for one of the buffer
	max     int64 // bytes
	unpacks bool  // the limits on what is unpacked hold
}

func (r *Receiver) fillBuf(w *workspace, c coding, src io.Reader, size int64, how filling) failure {
	window := int64(firstWindow)
	if size >= 0 {
		window = min(size, maxFirst) + 1
	}
	for {
		if !r.acquire(w, w.base+how.each*window) {
			return r.busy()
		}
		if int64(cap(w.buf)) < window {
			grown := make([]byte, len(w.buf), window)
			copy(grown, w.buf)
			w.buf = grown
		}
		for int64(len(w.buf)) < window {
			w.turn.Yield()
			n, err := src.Read(w.buf[len(w.buf):window])
			w.buf = w.buf[:len(w.buf)+n]
			if how.unpacks {
				if f := r.overUnpacked(w, int64(len(w.buf))); f.code != 0 {
					return f
				}
			}
			if err == io.EOF {
				return failure{}
			}
			if err != nil {
				return r.invalid(w, c, err)
			}
		}
		next := 2 * window
		if window <= size {
			next = min(next, size+1)
		}
		window = min(next, how.max+1)
	}
}

// busy is the answer where the budget is spent.
func (r *Receiver) busy() failure {
	return refuse(http.StatusServiceUnavailable, "the collector is working on %d bytes already; nothing of this request was stored, send it again after 1 s", r.opts.InFlight)
}

// overUnpacked judges a body that unpacks to n bytes so far.
func (r *Receiver) overUnpacked(w *workspace, n int64) failure {
	if n > r.opts.MaxUnpacked {
		return closing(http.StatusRequestEntityTooLarge, "the body unpacks to more than %d bytes; send smaller requests", r.opts.MaxUnpacked)
	}
	if n > ratioFloor && n/r.opts.MaxRatio > w.wire.n {
		return closing(http.StatusRequestEntityTooLarge, "the body unpacks to more than %d times its size; send smaller requests or leave it unpacked", r.opts.MaxRatio)
	}
	return failure{}
}

func (r *Receiver) tooLarge(what string) failure {
	return closing(http.StatusRequestEntityTooLarge, "%s is over the limit of %d bytes; send smaller requests", what, r.opts.MaxBody)
}

// broken returns the failure of the wire, if it has failed.
func (r *Receiver) broken(w *workspace) failure {
	switch err := w.wire.err; {
	case w.wire.over:
		return r.tooLarge("the body")
	case err == nil:
		return failure{}
	case errors.As(err, new(*http.MaxBytesError)):
		return closing(http.StatusRequestEntityTooLarge, "the body is over the server's limit; send smaller requests")
	case errors.Is(err, os.ErrDeadlineExceeded):
		return closing(http.StatusRequestTimeout, "the body did not arrive within %v; nothing was stored", r.opts.BodyTimeout)
	default:
		return failure{code: http.StatusBadRequest, aborted: true, close: true,
			text: fmt.Sprintf("the body broke off after %d bytes (%v); nothing was stored", w.wire.n, err)}
	}
}

// invalid explains an error of reading: of the wire, or else of the coding.
func (r *Receiver) invalid(w *workspace, c coding, err error) failure {
	if f := r.broken(w); f.code != 0 {
		return f
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF {
		err = errors.New("it ends early")
	}
	return closing(http.StatusBadRequest, "the body is not valid %s after %d unpacked bytes: %v; nothing was stored", codingNames[c], len(w.buf), err)
}
