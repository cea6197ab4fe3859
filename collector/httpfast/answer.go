package httpfast

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// An answer is the http.ResponseWriter of one request. It keeps all of it until
// the handler has returned. Content-Length is counted, whatever the handler says.
type answer struct {
	header http.Header
	names  []string // scratch
	last   fields   // as the header was written before
	head   []byte   // status line and fields, once there is a status
	body   []byte
	code   int // 0: none yet
	close  bool
	typed  bool // with Content-Type
	dated  bool // with Date
}

const keepAnswer = 64 << 10 // bytes that are kept to be used again, of either

func (a *answer) reset() {
	if a.header == nil {
		a.header = make(http.Header)
	}
	clear(a.header)
	if cap(a.body) > keepAnswer {
		a.body = nil
	}
	if cap(a.head) > keepAnswer {
		a.head = nil
	}
	*a = answer{header: a.header, names: a.names[:0], last: a.last, head: a.head[:0], body: a.body[:0]}
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// Status returns the status that the answer has, or will have if the handler says
// nothing: for who counts answers, without a ResponseWriter around this one.
func (a *answer) Status() int { return cmp.Or(a.code, http.StatusOK) }

// Timed reports that the answer is sent by Options.WriteTimeout, whatever deadline
// the handler sets.
func (a *answer) Timed() bool { return true }

// SetReadDeadline is for http.ResponseController: the body is here already.
func (a *answer) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline is for http.ResponseController: the answer is sent by
// Options.WriteTimeout.
func (a *answer) SetWriteDeadline(time.Time) error { return nil }

// Write implements http.ResponseWriter.
func (a *answer) Write(p []byte) (int, error) {
	if a.code == 0 {
		a.WriteHeader(http.StatusOK)
	}
	if !hasBody(a.code) {
		return 0, http.ErrBodyNotAllowed
	}
	a.body = append(a.body, p...)
	return len(p), nil
}

// WriteHeader implements http.ResponseWriter. Only the first final status counts;
// others than final ones are not sent.
func (a *answer) WriteHeader(code int) {
	if code < 100 || code > 999 {
		panic("httpfast: status " + strconv.Itoa(code))
	}
	if a.code != 0 || code < 200 {
		return
	}
	a.code = code
	a.head = append(a.head, "HTTP/1.1 "...)
	a.head = strconv.AppendInt(a.head, int64(code), 10)
	a.head = append(a.head, ' ')
	if text := http.StatusText(code); text != "" {
		a.head = append(a.head, text...)
	} else {
		a.head = append(a.head, "status code "...)
		a.head = strconv.AppendInt(a.head, int64(code), 10)
	}
	a.head = append(a.head, "\r\n"...)
	if a.last.are(a.header) {
		a.head = append(a.head, a.last.text...)
		a.typed, a.dated, a.close = a.last.typed, a.last.dated, a.last.close
		return
	}
	for name := range a.header {
		a.names = append(a.names, name)
	}
	slices.Sort(a.names)
	start := len(a.head)
	for _, name := range a.names {
		for _, value := range a.header[name] {
			a.field(name, value)
		}
	}
	a.last.remember(a, a.head[start:])
}

// fields are a header as it was written: most answers have the same. Its zero
// value is the empty header.
type fields struct {
	names, values []string
	text          []byte
	typed         bool
	dated         bool
	close         bool
}

// Longer headers are not remembered, nor are those with more fields.
const (
	mostRemembered = 8
	longRemembered = 1 << 10
)

// are reports whether the header is the one that was written.
func (f *fields) are(header http.Header) bool {
	if len(header) != len(f.names) {
		return false
	}
	for i, name := range f.names {
		if values := header[name]; len(values) != 1 || values[0] != f.values[i] {
			return false
		}
	}
	return true
}

// remember keeps the header of a, which was written as text, unless a field has
// several values or none.
func (f *fields) remember(a *answer, text []byte) {
	clear(f.values)
	*f = fields{names: f.names[:0], values: f.values[:0], text: f.text[:0]}
	if len(a.names) > mostRemembered || len(text) > longRemembered {
		return
	}
	for _, name := range a.names {
		if len(a.header[name]) != 1 {
			*f = fields{}
			return
		}
		f.names, f.values = append(f.names, name), append(f.values, a.header[name][0])
	}
	f.text = append(f.text, text...)
	f.typed, f.dated, f.close = a.typed, a.dated, a.close
}

// field appends a field of the header. Line ends in a value become blanks, as
// with net/http, and a name that is none is left out.
func (a *answer) field(name, value string) {
	switch name {
	case "Content-Length", "Transfer-Encoding":
		return
	case "Content-Type":
		a.typed = true
	case "Date":
		a.dated = true
	case "Connection":
		a.close = a.close || strings.EqualFold(value, "close")
		return
	}
	if !isToken(name) {
		return
	}
	a.head = append(a.head, name...)
	a.head = append(a.head, ": "...)
	at := len(a.head)
	a.head = append(a.head, value...)
	for i, c := range a.head[at:] {
		if c == '\r' || c == '\n' {
			a.head[at+i] = ' '
		}
	}
	a.head = append(a.head, "\r\n"...)
}

// hasBody reports whether an answer of a status may have a body.
func hasBody(code int) bool { return code != http.StatusNoContent && code != http.StatusNotModified }

// finish returns the answer as it is sent.
func (a *answer) finish(date string) []byte {
	if a.code == 0 {
		a.WriteHeader(http.StatusOK)
	}
	if !a.typed && len(a.body) > 0 {
		a.field("Content-Type", http.DetectContentType(a.body))
	}
	b := a.head
	if !a.dated {
		b = append(b, "Date: "...)
		b = append(b, date...)
		b = append(b, "\r\n"...)
	}
	if hasBody(a.code) {
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, int64(len(a.body)), 10)
		b = append(b, "\r\n"...)
	}
	if a.close {
		b = append(b, "Connection: close\r\n"...)
	}
	b = append(b, "\r\n"...)
	b = append(b, a.body...)
	a.head = b
	return b
}

// dates is the text of Date, made once a second. It is safe for concurrent use.
type dates struct{ now atomic.Pointer[date] }

type date struct {
	second int64
	text   string
}

func (d *dates) at(t time.Time) string {
	second := t.Unix()
	now := d.now.Load()
	if now == nil || now.second != second {
		now = &date{second, t.UTC().Format(http.TimeFormat)}
		d.now.Store(now)
	}
	return now.text
}
