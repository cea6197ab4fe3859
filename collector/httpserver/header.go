package httpserver

import (
	"bytes"
	"encoding/json"
	"net/http"

	"github.com/rollway/rollway/collector/admission"
)

// Headers arrive before their sender is known, and need many times their size in
// memory: 64 KiB of short fields need 1 MiB. So they count against the budget, in
// plain HTTP/1 while they are being read, otherwise when they are whole.
const (
	freeHeader   = 1 << 10 // bytes of a header that do not count
	headerFactor = 16      // bytes of memory for a byte of a header that is not parsed
	fieldMemory  = 100     // bytes of memory for a field besides its text

	// Bytes of memory for a request of HTTP/2 while another one of its connection is in
	// progress: its goroutine, and what net/http keeps. The first has those of the connection.
	streamMemory = 10 << 10
)

const headerMemory = "headers of requests take up as much memory as they may; send it again after 1 s"

var tooManyHeaders = newRefusal(http.StatusServiceUnavailable, "service_unavailable", headerMemory)

// A header is what a conn knows of the current HTTP/1 request.
type header struct {
	ignored bool  // neither this nor any later header is looked at
	parsed  bool  // by net/http: held is what it needs
	held    int64 // bytes acquired
	read    int   // bytes of the header
	whole   bool  // the empty line after it was read

	line       [len("Transfer-Encoding:")]byte // begin of the current line
	lineBytes  int                             // length of the current line
	begun      bool                            // a line that is not empty was read
	unseen     bool                            // its begin may have been read with the request before
	withLength bool                            // there is a Content-Length
	withCoding bool                            // there is a Transfer-Encoding
	folded     bool                            // a line goes on in the next one

	body      int64   // Content-Length; negative: chunked
	afterward int64   // bytes read after the header
	tail      [4]byte // the last of them
	ahead     []byte  // the byte after the request that net/http has read in the background
}

// scan looks at what was read of a request.
func (h *header) scan(p []byte) {
	for len(p) > 0 && !h.whole {
		line, _, ended := bytes.Cut(p, []byte("\n"))
		if h.lineBytes < len(h.line) {
			copy(h.line[h.lineBytes:], line)
		}
		h.lineBytes += len(line)
		n := len(line)
		if ended {
			n++
			h.endLine()
		}
		h.read += n
		p = p[n:]
	}
	h.afterward += int64(len(p))
	if len(p) >= len(h.tail) {
		copy(h.tail[:], p[len(p)-len(h.tail):])
	} else {
		copy(h.tail[:], h.tail[len(p):])
		copy(h.tail[len(h.tail)-len(p):], p)
	}
}

func (h *header) endLine() {
	empty := h.lineBytes == 0 || h.lineBytes == 1 && h.line[0] == '\r'
	h.whole = empty && h.begun // net/http skips empty lines before a request
	h.begun = h.begun || !empty
	line := h.line[:min(h.lineBytes, len(h.line))]
	h.withLength = h.withLength || begins(line, "Content-Length:")
	h.withCoding = h.withCoding || begins(line, "Transfer-Encoding:")
	h.folded = h.folded || len(line) > 0 && (line[0] == ' ' || line[0] == '\t')
	h.lineBytes = 0
}

func begins(line []byte, name string) bool {
	return len(line) >= len(name) && bytes.EqualFold(line[:len(name)], []byte(name))
}

// ended returns the header of the next request. Some of it was read already if the
// client sends requests without waiting for answers.
func (h *header) ended() header {
	toTheByte := h.afterward == h.body || h.body < 0 && string(h.tail[:]) == "\r\n\r\n"
	next := header{ignored: h.ignored, unseen: !h.whole || h.unseen || !toTheByte}
	next.scan(h.ahead)
	return next
}

// estimate returns the memory for what was read of a header that is not parsed.
func (h *header) estimate() int64 {
	return max(0, int64(min(h.read, MaxHeader)-freeHeader)*headerFactor)
}

// acquire takes memory for headers of the peer, whose token is not known yet.
func (c *conn) acquire(n int64) bool {
	return c.s.o.Admission.AcquirePart(admission.Headers, c.admitted.Principal(), n)
}

func (c *conn) release(n int64) {
	c.s.o.Admission.ReleasePart(admission.Headers, c.admitted.Principal(), n)
}

// acquireLocked makes the connection hold want bytes at least.
func (c *conn) acquireLocked(want int64) bool {
	more := want - c.header.held
	if more <= 0 {
		return true
	}
	if !c.acquire(more) {
		return false
	}
	c.header.held = want
	return true
}

// ambiguous reports whether a proxy may have found another end of r, an HTTP/1 request,
// than net/http has: it has a Content-Length besides its Transfer-Encoding, or a
// Transfer-Encoding in HTTP/1.0 (RFC 9112, 6.1 and 6.3), or a field in several lines (5.2).
// Its connection must be closed after it. Where that depends on a header that was not seen
// as a whole, as within TLS, the request counts as ambiguous.
func (c *conn) ambiguous(r *http.Request) bool {
	chunked, old := len(r.TransferEncoding) > 0, r.ProtoMinor == 0
	if !c.plain {
		return chunked || old
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	h := &c.header
	switch unseen := h.unseen || !h.whole; {
	case chunked && (h.withLength || unseen), old && (h.withCoding || unseen):
		return true
	}
	return h.folded && !h.unseen
}

// headerRead counts the header of r by the memory that it needs now that it is
// parsed. ok is false if there is not enough. held is for streamEnded at the end of a request
// of HTTP/2. That of HTTP/1 is released by requestEnded.
func (c *conn) headerRead(r *http.Request) (held int64, ok bool) {
	text, fields := len(r.RequestURI)+len(r.Host), 0
	for name, values := range r.Header {
		for _, v := range values {
			text += len(name) + len(v)
			fields++
		}
	}
	want := max(0, int64(text+fields*fieldMemory)-freeHeader*headerFactor)
	if r.ProtoMajor >= 2 {
		if c.streams.Add(1) > 1 {
			want = int64(text+fields*fieldMemory) + streamMemory
		}
		if want > 0 && !c.acquire(want) {
			return 0, false
		}
		return want, true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.header.parsed, c.header.body = true, r.ContentLength
	if less := c.header.held - want; less > 0 {
		c.release(less)
		c.header.held = want
	}
	return 0, c.acquireLocked(want)
}

// A streamWriter answers a request of HTTP/2.
type streamWriter struct {
	http.ResponseWriter
	written bool // a part of the body
}

// Write implements http.ResponseWriter.
func (w *streamWriter) Write(p []byte) (int, error) {
	w.written = true
	return w.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (w *streamWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// end forgets what has come of the body of r and was not read, and waits until the peer has taken
// what was written: it may have a window of 0. net/http would wait too, but then nobody would know
// what the request takes.
func (w *streamWriter) end(r *http.Request) {
	r.Body.Close()
	if w.written {
		http.NewResponseController(w.ResponseWriter).Flush() // fails at the deadline, or if the client is gone
	}
}

// streamEnded ends a request of HTTP/2 that holds held bytes.
func (c *conn) streamEnded(held int64) {
	c.streams.Add(-1)
	if held > 0 {
		c.release(held)
	}
}

// requestEnded releases what the last request held. closed: so does the connection.
func (c *conn) requestEnded(closed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.header.held > 0 {
		c.release(c.header.held)
	}
	c.header = c.header.ended()
	c.header.ignored = c.header.ignored || closed
}

// refuse answers a request for which there is no room, and ends its connection: otherwise
// net/http waits for the body first.
func refuse(w http.ResponseWriter, r *http.Request, why string) {
	h := w.Header()
	h.Set("Retry-After", "1")
	h.Set("Content-Type", "application/json")
	if r.ProtoMajor == 1 {
		h.Set("Connection", "close")
	}
	w.WriteHeader(http.StatusServiceUnavailable)
	if r.ProtoMajor >= 2 { // a body may have to wait for the peer
		return
	}
	json.NewEncoder(w).Encode(map[string]string{"error": why}) // fails if the client is gone
}
