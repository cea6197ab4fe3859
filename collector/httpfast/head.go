package httpfast

import (
	"bytes"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
)

const (
	maxRequest = 64 << 10 // bytes of a request with its body
	maxHead    = 8 << 10  // bytes of its header block, which its connection keeps
	maxFields  = 64       // in it
	maxDigits  = 6        // of a Content-Length
)

// A head is a header block that was parsed, and what requests with the same one
// are made of.
type head struct {
	text     string // up to the empty line, which is included
	lengthAt int    // where the value of Content-Length begins in text
	digits   int    // how many it has there
	length   int    // its value now

	handler http.Handler // of requests with it

	req    http.Request
	values []string // of Content-Length in req.Header, one
}

// parseHead parses the header block that b begins with. It returns nil for all
// that is not for this package; a block that is not there as a whole is not.
func parseHead(b []byte) *head {
	end := bytes.Index(b, []byte("\r\n\r\n"))
	if end < 0 || end > maxHead {
		return nil
	}
	h := &head{text: string(b[:end+4])}
	line, fields, _ := strings.Cut(h.text[:end+2], "\r\n")
	target, ok := requestTarget(line)
	if !ok {
		return nil
	}
	count := strings.Count(fields, "\n")
	if count > maxFields {
		return nil
	}
	u, err := url.ParseRequestURI(target)
	if err != nil {
		return nil
	}
	h.req = http.Request{
		Method: http.MethodPost, URL: u, RequestURI: target,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: make(http.Header, count),
	}
	for fields != "" {
		line, fields, _ = strings.Cut(fields, "\r\n")
		if !h.field(line, end+2-len(fields)-2-len(line)) {
			return nil
		}
	}
	if h.values == nil || h.req.Host == "" {
		return nil
	}
	return h
}

// requestTarget returns the target of a request line.
func requestTarget(line string) (target string, ok bool) {
	target, ok = strings.CutPrefix(line, "POST ")
	if !ok {
		return "", false
	}
	if target, ok = strings.CutSuffix(target, " HTTP/1.1"); !ok || !strings.HasPrefix(target, "/") {
		return "", false
	}
	for i := range len(target) {
		if target[i] <= ' ' || target[i] > '~' {
			return "", false
		}
	}
	return target, true
}

// field takes one line of the header, which begins at position at of the text.
func (h *head) field(line string, at int) bool {
	name, value, ok := strings.Cut(line, ":")
	if !ok || !isToken(name) || !isPrintable(value) {
		return false
	}
	trimmed := strings.TrimLeft(value, " \t")
	at += len(name) + 1 + len(value) - len(trimmed)
	value = strings.TrimRight(trimmed, " \t")
	name = textproto.CanonicalMIMEHeaderKey(name)
	switch name {
	case "Transfer-Encoding", "Expect", "Upgrade", "Trailer", "Te", "Pragma", "Http2-Settings":
		return false
	case "Connection":
		if len(h.req.Header[name]) > 0 || !strings.EqualFold(value, "keep-alive") {
			return false
		}
	case "Host":
		if h.req.Host != "" || !isHost(value) {
			return false
		}
		h.req.Host = value
		return true // net/http has it nowhere else
	case "Content-Length":
		n, digits := leadingNumber(value)
		if h.values != nil || digits == 0 || digits != len(value) {
			return false
		}
		h.lengthAt, h.length, h.digits = at, n, digits
		h.values = []string{value}
		h.req.Header[name] = h.values
		return true
	}
	h.req.Header[name] = append(h.req.Header[name], value)
	return true
}

// same reports whether b begins with h's header block, but for the value of
// Content-Length, and returns the block's size and that value.
func (h *head) same(b []byte) (size, length int, ok bool) {
	before, after := h.text[:h.lengthAt], h.text[h.lengthAt+h.digits:]
	if len(b) < len(before) || string(b[:len(before)]) != before {
		return 0, 0, false
	}
	length, digits := leadingNumber(b[len(before):])
	size = len(before) + digits
	if digits == 0 || len(b)-size < len(after) || string(b[size:size+len(after)]) != after {
		return 0, 0, false
	}
	return size + len(after), length, true
}

// request makes req one of h with a body of length bytes.
func (h *head) request(req *http.Request, length int) {
	if length != h.length {
		h.length, h.values[0] = length, strconv.Itoa(length)
	}
	*req = h.req
	req.ContentLength = int64(length)
}

// leadingNumber returns the number of 1 or more that b begins with and how many
// digits it has; none if these are too many or begin with 0.
func leadingNumber[T string | []byte](b T) (n, digits int) {
	for ; digits < len(b) && '0' <= b[digits] && b[digits] <= '9'; digits++ {
		if digits == maxDigits || b[0] == '0' {
			return 0, 0
		}
		n = n*10 + int(b[digits]-'0')
	}
	return n, digits
}

func isToken(name string) bool {
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0:
		default:
			return false
		}
	}
	return name != ""
}

func isPrintable(value string) bool {
	for i := range len(value) {
		if c := value[i]; (c < ' ' || c > '~') && c != '\t' {
			return false
		}
	}
	return true
}

func isHost(value string) bool {
	for i := range len(value) {
		switch c := value[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case strings.IndexByte(".-_:[]", c) >= 0:
		default:
			return false
		}
	}
	return value != ""
}
