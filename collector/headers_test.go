package collector

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A header of 64 KiB is taken, by HTTP 1 and 2, plain and within TLS; a longer one
// is answered 431 before anything of the body is read, and the collector goes on.
func TestHeaderLimit(t *testing.T) {
	a := newAuthority(t)
	secure, trusts, _ := a.secureConfig(t, testConfig(t))
	plain, encrypted := run(t, testConfig(t)), run(t, secure)
	for name, dial := range map[string]func() (net.Conn, error){
		"plain": func() (net.Conn, error) { return net.Dial("tcp", plain.Addr().String()) },
		"TLS":   func() (net.Conn, error) { return tls.Dial("tcp", encrypted.Addr().String(), trusts.Clone()) },
	} {
		r := plain
		if name == "TLS" {
			r = encrypted
		}
		for _, tc := range []struct {
			fields, size int // of the header
			code         int
		}{
			{1, 7 << 10, 200}, {1, 60 << 10, 200}, {600, 100, 200},
			{1, 80 << 10, 431}, {800, 100, 431},
		} {
			before := r.Stats().Receive.Received
			if code := postWithHeader(t, dial, tc.fields, tc.size); code != tc.code {
				t.Errorf("%s, %d fields of %d bytes: %d, want %d", name, tc.fields, tc.size, code, tc.code)
			}
			if took := r.Stats().Receive.Received - before; (took == 1) != (tc.code == 200) {
				t.Errorf("%s, %d fields of %d bytes: %d events received", name, tc.fields, tc.size, took)
			}
		}
	}

	// A client of HTTP 2 is told the limit when its connection begins, and heeds it
	// from then on.
	client := clientOf(trusts.Clone())
	for _, tc := range []struct {
		size int
		want string
	}{{60 << 10, "200 OK"}, {80 << 10, "larger than peer's advertised limit"}} {
		req, err := http.NewRequest("POST", strings.Replace(encrypted.url, "http:", "https:", 1)+"/api/logs", strings.NewReader(`{"msg":"two"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Long", strings.Repeat("x", tc.size))
		resp, err := client.Do(req)
		got := fmt.Sprint(err)
		if err == nil {
			resp.Body.Close()
			if got = resp.Status; resp.ProtoMajor != 2 {
				t.Errorf("answered by %s", resp.Proto)
			}
		}
		if !strings.Contains(got, tc.want) {
			t.Errorf("HTTP 2, %d bytes: %s, want %s", tc.size, got, tc.want)
		}
	}
}

// postWithHeader sends one event with a header of so many fields, of so many bytes
// each, and returns the status of the answer.
func postWithHeader(t *testing.T, dial func() (net.Conn, error), fields, size int) int {
	t.Helper()
	conn, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Minute))
	const body = `{"msg":"one"}`
	var b strings.Builder
	b.WriteString("POST /api/logs HTTP/1.1\r\nHost: localhost\r\n")
	for i := range fields {
		fmt.Fprintf(&b, "X-%d: %s\r\n", i, strings.Repeat("x", size))
	}
	fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n%s", len(body), body)
	go io.WriteString(conn, b.String()) // the answer may come before all is written
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}
