package ingest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// A request is what a connection sends, again and again: its head never
// changes, its events' numbers do.
type request struct {
	wire []byte // head and body
	body *body  // its data is the end of wire
}

func newRequest(addr string, d protocol, events int) *request {
	b := d.body(events)
	wire := d.head(addr, len(b.data))
	head := len(wire)
	wire = append(wire, b.data...)
	b.data = wire[head:]
	return &request{wire, b}
}

// answers reads the answers on a connection. It knows as much of HTTP/1.1 as
// the servers here send: a status, and a body with Content-Length.
type answers struct {
	src io.Reader
	buf [4096]byte
	n   int // bytes in buf
}

var (
	headEnd       = []byte("\r\n\r\n")
	contentLength = []byte("\r\ncontent-length:")
	statusLine    = []byte("HTTP/1.1 ")
)

// next returns the status and the body of the next answer; the body is valid
// until the call after it.
func (a *answers) next() (code int, body []byte, err error) {
	for {
		code, size, head, err := a.head()
		if err != nil {
			return 0, nil, err
		}
		if head > 0 && a.n >= head+size {
			if a.n > head+size {
				return 0, nil, errors.New("more than one answer to a request")
			}
			a.n = 0
			return code, a.buf[head : head+size], nil
		}
		if a.n == len(a.buf) {
			return 0, nil, errors.New("an answer too long")
		}
		n, err := a.src.Read(a.buf[a.n:])
		if a.n += n; err != nil && n == 0 {
			return 0, nil, err
		}
	}
}

// head parses what there is. head is its length, 0 while it is not whole; size
// is the body's.
func (a *answers) head() (code, size, head int, err error) {
	end := bytes.Index(a.buf[:a.n], headEnd)
	if end < 0 {
		return 0, 0, 0, nil
	}
	text := a.buf[:end+2]
	if !bytes.HasPrefix(text, statusLine) || len(text) < len(statusLine)+3 {
		return 0, 0, 0, fmt.Errorf("no answer of HTTP/1.1: %.100q", text)
	}
	if code, err = strconv.Atoi(string(text[len(statusLine) : len(statusLine)+3])); err != nil {
		return 0, 0, 0, fmt.Errorf("no answer of HTTP/1.1: %.100q", text)
	}
	at := indexFold(text, contentLength)
	if at < 0 {
		return 0, 0, 0, fmt.Errorf("an answer without Content-Length: %.200q", text)
	}
	value, _, _ := bytes.Cut(text[at+len(contentLength):], headEnd[:2])
	if size, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil || size < 0 {
		return 0, 0, 0, fmt.Errorf("a Content-Length of %.20q", value)
	}
	return code, size, end + len(headEnd), nil
}

// indexFold is where lower, in lower case, begins in s, whatever the case there.
func indexFold(s, lower []byte) int {
	for i := 0; i+len(lower) <= len(s); i++ {
		if bytes.EqualFold(s[i:i+len(lower)], lower) {
			return i
		}
	}
	return -1
}
