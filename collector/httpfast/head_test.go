package httpfast

import (
	"bufio"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

const plainHead = "POST /v1/logs?a=b%20c HTTP/1.1\r\nHost: 127.0.0.1:4318\r\ncontent-type: application/x-protobuf\r\nContent-Length:  12 \r\nX-A: 1\r\nx-a: \t2\r\nConnection: Keep-Alive\r\nEmpty:\r\n\r\n"

// A plain header block becomes the request that net/http makes of it.
func TestHeadAsNetHTTP(t *testing.T) {
	h := parseHead([]byte(plainHead + "body"))
	if h == nil {
		t.Fatal("not taken")
	}
	for _, length := range []int{12, 7, 123456, 12} {
		text := strings.Replace(plainHead, " 12 ", fmt.Sprintf(" %d ", length), 1)
		size, n, ok := h.same([]byte(text + "body"))
		if !ok || size != len(text) || n != length {
			t.Fatalf("length %d: same says %d, %d, %v", length, size, n, ok)
		}
		var got http.Request
		h.request(&got, n)
		want, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
		if err != nil {
			t.Fatal(err)
		}
		want.Header.Del("Host")
		want.Body = nil
		if !reflect.DeepEqual(got.Header, want.Header) || got.ContentLength != want.ContentLength || got.Host != want.Host ||
			!reflect.DeepEqual(got.URL, want.URL) || got.RequestURI != want.RequestURI || got.Method != want.Method || got.Proto != want.Proto ||
			got.ProtoMajor != 1 || got.ProtoMinor != 1 || got.Close != want.Close || got.TransferEncoding != nil || got.Trailer != nil {
			t.Errorf("length %d:\n got %+v\nwant %+v", length, got, *want)
		}
	}
}

// What is not plain is left to net/http.
func TestHeadLeft(t *testing.T) {
	const line, host, length, end = "POST / HTTP/1.1\r\n", "Host: a\r\n", "Content-Length: 1\r\n", "\r\n"
	if parseHead([]byte(line+host+length+end)) == nil {
		t.Fatal("the least request is not taken")
	}
	for name, text := range map[string]string{
		"nothing":                 "",
		"no end":                  line + host + length,
		"end without CR":          line + host + length + "\n",
		"bare LF in the header":   line + "Host: a\n" + length + end,
		"bare CR in a value":      line + "Host: a\r\nX: a\rb\r\n" + length + end,
		"bare CR in the line":     "POST /\r HTTP/1.1\r\n" + host + length + end,
		"leading line end":        end + line + host + length + end,
		"GET":                     "GET / HTTP/1.1\r\n" + host + length + end,
		"lower case":              "post / HTTP/1.1\r\n" + host + length + end,
		"HTTP/1.0":                "POST / HTTP/1.0\r\n" + host + length + end,
		"HTTP/1.1 twice":          "POST / HTTP/1.1 HTTP/1.1\r\n" + host + length + end,
		"absolute target":         "POST http://a/ HTTP/1.1\r\n" + host + length + end,
		"asterisk":                "POST * HTTP/1.1\r\n" + host + length + end,
		"blank in the target":     "POST /a b HTTP/1.1\r\n" + host + length + end,
		"two blanks":              "POST  / HTTP/1.1\r\n" + host + length + end,
		"tab in the line":         "POST /\tHTTP/1.1\r\n" + host + length + end,
		"target beyond ASCII":     "POST /\xff HTTP/1.1\r\n" + host + length + end,
		"bad escape":              "POST /%zz HTTP/1.1\r\n" + host + length + end,
		"preface of HTTP/2":       "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"no Host":                 line + length + end,
		"empty Host":              line + "Host:\r\n" + length + end,
		"two Hosts":               line + host + host + length + end,
		"odd Host":                line + "Host: a/b\r\n" + length + end,
		"no length":               line + host + end,
		"length 0":                line + host + "Content-Length: 0\r\n" + end,
		"length 01":               line + host + "Content-Length: 01\r\n" + end,
		"length +1":               line + host + "Content-Length: +1\r\n" + end,
		"length -1":               line + host + "Content-Length: -1\r\n" + end,
		"length 1 1":              line + host + "Content-Length: 1 1\r\n" + end,
		"length 1,1":              line + host + "Content-Length: 1,1\r\n" + end,
		"length 0x1":              line + host + "Content-Length: 0x1\r\n" + end,
		"length too long":         line + host + "Content-Length: 1234567\r\n" + end,
		"length empty":            line + host + "Content-Length:\r\n" + end,
		"two lengths":             line + host + length + length + end,
		"two lengths by case":     line + host + length + "content-length: 2\r\n" + end,
		"chunked":                 line + host + length + "Transfer-Encoding: chunked\r\n" + end,
		"transfer encoding empty": line + host + length + "transfer-encoding:\r\n" + end,
		"expect":                  line + host + length + "Expect: 100-continue\r\n" + end,
		"upgrade":                 line + host + length + "Upgrade: h2c\r\n" + end,
		"close":                   line + host + length + "Connection: close\r\n" + end,
		"keep-alive, close":       line + host + length + "Connection: keep-alive, close\r\n" + end,
		"two Connections":         line + host + length + "Connection: keep-alive\r\nConnection: keep-alive\r\n" + end,
		"trailer":                 line + host + length + "Trailer: x\r\n" + end,
		"te":                      line + host + length + "TE: trailers\r\n" + end,
		"pragma":                  line + host + length + "Pragma: no-cache\r\n" + end,
		"settings":                line + host + length + "HTTP2-Settings: x\r\n" + end,
		"folded":                  line + host + "X: a\r\n b\r\n" + length + end,
		"folded at the begin":     line + " X: a\r\n" + host + length + end,
		"blank before the colon":  line + host + "Content-Length : 1\r\n" + end,
		"no colon":                line + host + length + "X\r\n" + end,
		"empty name":              line + host + length + ": x\r\n" + end,
		"name beyond ASCII":       line + host + length + "X\xc3\xa4: x\r\n" + end,
		"name with a quote":       line + host + length + "X\"y: x\r\n" + end,
		"zero byte in a value":    line + host + length + "X: \x00\r\n" + end,
		"DEL in a value":          line + host + length + "X: \x7f\r\n" + end,
		"value beyond ASCII":      line + host + length + "X: \xc3\xa4\r\n" + end,
		"too many fields":         line + host + length + strings.Repeat("X: y\r\n", maxFields) + end,
		"too long":                line + host + length + "X: " + strings.Repeat("x", maxHead) + "\r\n" + end,
	} {
		if h := parseHead([]byte(text)); h != nil {
			t.Errorf("%s: taken: %+v", name, h.req)
		}
	}
}

// A block that differs by anything but the value of Content-Length is not the
// same, nor is one that is not whole.
func TestHeadSame(t *testing.T) {
	h := parseHead([]byte(plainHead))
	if h == nil {
		t.Fatal("not taken")
	}
	digit := strings.Index(plainHead, "12 ")
	for i := range len(plainHead) {
		if _, _, ok := h.same([]byte(plainHead[:i])); ok {
			t.Errorf("the first %d bytes are taken for the whole", i)
		}
		for _, c := range "x \r\n0-" {
			changed := plainHead[:i] + string(c) + plainHead[i+1:]
			if _, _, ok := h.same([]byte(changed)); ok && changed != plainHead && !(i == digit+1 && c == '0') {
				t.Errorf("taken for the same: %q", changed)
			}
		}
	}
	for _, length := range []string{"", "0", "012", "1234567", "1x", "+1", "-1"} {
		if _, _, ok := h.same([]byte(strings.Replace(plainHead, "12 ", length+" ", 1))); ok {
			t.Errorf("length %q is taken", length)
		}
	}
}
