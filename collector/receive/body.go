package receive

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/klauspost/compress/gzip"
)

// errBody stands for the fault that wireReader has noted.
var errBody = errors.New("read request body")

// failure is an answer other than 200. Its zero value is none.
type failure struct {
	code    int
	text    string
	aborted bool // the client is gone
	close   bool // the connection is of no more use
}

const supported = "supported are gzip and identity"

// packed reports whether the body is gzip by its header.
func packed(h http.Header) (gzipped bool, f failure) {
	values := h["Content-Encoding"]
	if len(values) == 0 {
		return false, failure{}
	}
	switch v := strings.ToLower(strings.TrimSpace(strings.Join(values, ","))); v {
	case "", "identity":
		return false, failure{}
	case "gzip", "x-gzip":
		return true, failure{}
	default:
		if len(v) > 50 {
			v = v[:50] + "…"
		}
		return false, failure{code: http.StatusUnsupportedMediaType, close: true,
			text: fmt.Sprintf("Content-Encoding %q is not supported; %s", v, supported)}
	}
}

// readBody reads and unpacks the body of req into w.buf.
func (r *Receiver) readBody(w *work, req *http.Request, gzipped bool) failure {
	if req.ContentLength > r.opts.MaxBody {
		return r.tooLarge(fmt.Sprintf("the body of %d bytes", req.ContentLength))
	}
	w.open(req.Body, r.opts.MaxBody)
	magic, err := w.peek.Peek(2)
	if len(magic) == 0 && err == io.EOF {
		return failure{} // of no bytes, which normalization explains
	}
	if f := r.broken(w); f.code != 0 {
		return f
	}
	isGzip := string(magic) == "\x1f\x8b"
	if gzipped && !isGzip {
		return failure{code: http.StatusBadRequest, close: true,
			text: "Content-Encoding is gzip, but the body is not: it does not start with 1f 8b; leave the header out or compress the body"}
	}
	var src io.Reader = w.peek
	size := req.ContentLength
	if isGzip {
		if err := w.resetGzip(); err != nil {
			return r.gzipFailure(w, err)
		}
		src, size = w.unpack, -1
	}
	return r.fill(w, src, size)
}

func (w *work) resetGzip() error {
	if w.unpack == nil {
		z, err := gzip.NewReader(w.peek)
		w.unpack = z
		return err
	}
	return w.unpack.Reset(w.peek)
}

// Sizes of the window that w.buf is filled through.
const (
	firstWindow = 8 << 10
	maxFirst    = 64 << 10 // however much Content-Length promises
)

// fill reads src to its end into w.buf, whose room grows with what arrives.
// size is the length promised, or -1.
func (r *Receiver) fill(w *work, src io.Reader, size int64) failure {
	window := int64(firstWindow)
	if size >= 0 {
		window = min(size, maxFirst) + 1
	}
	for {
		if !r.take(w, 2*window) {
			return failure{code: http.StatusServiceUnavailable,
				text: fmt.Sprintf("the collector is working on %d bytes already; nothing of this request was stored, send it again after 1 s", r.opts.InFlight)}
		}
		if int64(cap(w.buf)) < window {
			grown := make([]byte, len(w.buf), window)
			copy(grown, w.buf)
			w.buf = grown
		}
		for int64(len(w.buf)) < window {
			n, err := src.Read(w.buf[len(w.buf):window])
			w.buf = w.buf[:len(w.buf)+n]
			if f := r.overUnpacked(w); f.code != 0 {
				return f
			}
			if err == io.EOF {
				return failure{}
			}
			if err != nil {
				return r.gzipFailure(w, err)
			}
		}
		next := 2 * window
		if window <= size {
			next = min(next, size+1)
		}
		window = min(next, r.opts.MaxUnpacked+1)
	}
}

func (r *Receiver) overUnpacked(w *work) failure {
	n := int64(len(w.buf))
	if n > r.opts.MaxUnpacked {
		return failure{code: http.StatusRequestEntityTooLarge, close: true,
			text: fmt.Sprintf("the body unpacks to more than %d bytes; send smaller requests", r.opts.MaxUnpacked)}
	}
	if n > ratioFloor && n/r.opts.MaxRatio > w.wire.n {
		return failure{code: http.StatusRequestEntityTooLarge, close: true,
			text: fmt.Sprintf("the body unpacks to more than %d times its size; send smaller requests or leave it unpacked", r.opts.MaxRatio)}
	}
	return failure{}
}

func (r *Receiver) tooLarge(what string) failure {
	return failure{code: http.StatusRequestEntityTooLarge, close: true,
		text: fmt.Sprintf("%s is over the limit of %d bytes; send smaller requests", what, r.opts.MaxBody)}
}

// broken returns the failure of the wire, if it has failed.
func (r *Receiver) broken(w *work) failure {
	switch err := w.wire.err; {
	case w.wire.over:
		return r.tooLarge("the body")
	case err == nil:
		return failure{}
	case isTooLarge(err):
		return failure{code: http.StatusRequestEntityTooLarge, close: true, text: "the body is over the server's limit; send smaller requests"}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return failure{code: http.StatusRequestTimeout, close: true,
			text: fmt.Sprintf("the body did not arrive within %v; nothing was stored", r.opts.BodyTimeout)}
	default:
		return failure{code: http.StatusBadRequest, aborted: true, close: true,
			text: fmt.Sprintf("the body broke off after %d bytes (%v); nothing was stored", w.wire.n, err)}
	}
}

func isTooLarge(err error) bool {
	var limit *http.MaxBytesError
	return errors.As(err, &limit)
}

// gzipFailure explains an error of reading: of the wire, or else of gzip.
func (r *Receiver) gzipFailure(w *work, err error) failure {
	if f := r.broken(w); f.code != 0 {
		return f
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF {
		err = errors.New("it ends early")
	}
	return failure{code: http.StatusBadRequest, close: true,
		text: fmt.Sprintf("the body is not valid gzip after %d unpacked bytes: %v; nothing was stored", len(w.buf), err)}
}
