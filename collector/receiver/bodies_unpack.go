package receiver

import (
	"bufio"
	"errors"
	"io"
	"net/http"

	"github.com/rollway/rollway/collector/admission"
)

// arriving is a body that lasts, unpacked as it arrives. Its reading begins with the first
// Read.
type arriving struct {
	s        *stream
	src      io.Reader // the body
	declared string    // its Content-Encoding

	coding coding
	out    io.Reader // what Read reads; nil: it has not begun
	done   func()    // closes out; nil: nothing has to be closed
	taken  int64     // bytes of the budget for unpacking

	sent, unpacked int64
	counted        int64 // of sent
	broken         error // of src, but not io.EOF
}

// unpackMemory is what unpacking takes, by coding.
var unpackMemory = [numCodings]int64{inGzip: 64 << 10, inZlib: 64 << 10, inDeflate: 64 << 10, inFramed: 256 << 10, inZstd: maxWindow + zstdScratch}

// failed is a failure as the error of a Read.
type failed struct{ failure }

func (f failed) Error() string { return f.text }

// Read implements io.Reader. An error is of the body, or failed.
func (a *arriving) Read(p []byte) (n int, err error) {
	if a.out == nil {
		if err = a.begin(); err != nil {
			return 0, err
		}
	}
	n, err = a.out.Read(p)
	a.unpacked += int64(n)
	switch {
	case a.coding == asSent || err == io.EOF && a.broken == nil:
		return n, err
	case err != nil:
		return n, a.invalid(err)
	case a.unpacked > ratioFloor && a.unpacked/a.s.r.opts.MaxRatio > a.sent:
		return n, failed{closing(http.StatusRequestEntityTooLarge, "the body unpacks to more than %d times its size; leave it unpacked", a.s.r.opts.MaxRatio)}
	}
	return n, nil
}

// begin finds out how the body is packed.
func (a *arriving) begin() error {
	w := a.s.space
	if w.peek == nil {
		w.peek = bufio.NewReaderSize(nil, peekBuffer)
	}
	w.peek.Reset(sentReader{a})
	head, err := w.peek.Peek(1)
	if len(head) == 0 {
		return err
	}
	if head, err = w.peek.Peek(headBytes(head[0])); err != nil && err != io.EOF {
		return err
	}
	c, f := codingOf(a.declared, "", head)
	if f.code == 0 && c == inSnappy {
		f = closing(http.StatusUnsupportedMediaType, "a body that is stored as it arrives cannot be in %s; %s", codingNames[c], supported)
	}
	if f.code != 0 {
		return failed{f}
	}
	a.coding = c
	a.taken = unpackMemory[c]
	if c == inBrotli {
		a.taken = brotliMemory(head)
	}
	if a.taken > 0 && !a.s.r.opts.Admission.AcquirePart(admission.Streams, w.principal, a.taken) {
		a.taken = 0
		return failed{a.s.r.busy()}
	}
	out, done, err := w.reader(c, w.peek)
	if err != nil {
		return a.invalid(err)
	}
	a.out, a.done = out, done
	return nil
}

// invalid explains an error of unpacking: of the body, or else of the coding.
func (a *arriving) invalid(err error) error {
	if a.broken != nil {
		return a.broken
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF {
		err = errors.New("it ends early")
	}
	return failed{closing(http.StatusBadRequest, "the body is not valid %s after %d unpacked bytes: %v; what has arrived before is stored", codingNames[a.coding], a.unpacked, err)}
}

// took returns how many bytes of the body were read since the last call.
func (a *arriving) took() int64 {
	n := a.sent - a.counted
	a.counted = a.sent
	return n
}

// end gives back what reading has taken.
func (a *arriving) end() {
	if a.done != nil {
		a.done()
	}
	if a.taken > 0 {
		a.s.r.opts.Admission.ReleasePart(admission.Streams, a.s.space.principal, a.taken)
	}
}

// sentReader reads the body as it is sent.
type sentReader struct{ *arriving }

func (r sentReader) Read(p []byte) (int, error) {
	n, err := r.src.Read(p)
	r.sent += int64(n)
	if err != nil && err != io.EOF {
		r.broken = err
	}
	return n, err
}
