package httpserver

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A recorder is a handler that notes what each connection asked for.
type recorder struct {
	mu   sync.Mutex
	seen map[string][]string // by remote address
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var from io.Reader = req.Body
	switch req.URL.Path {
	case "/unread":
		from = strings.NewReader("")
	case "/half":
		from = io.LimitReader(req.Body, 1000)
	}
	body, err := io.ReadAll(from)
	var header bytes.Buffer
	req.Header.Write(&header)
	conn := ends(req.Context().Value(http.LocalAddrContextKey).(net.Addr).String(), req.RemoteAddr)
	r.mu.Lock()
	r.seen[conn] = append(r.seen[conn], fmt.Sprintf("%s %s %s %s %d %v %v %q %q %v",
		req.Method, req.RequestURI, req.Proto, req.Host, req.ContentLength, req.TransferEncoding, req.URL, header.String(), body, err))
	r.mu.Unlock()
	switch req.URL.Path {
	case "/none":
	case "/gone":
		w.WriteHeader(http.StatusNoContent)
	case "/last":
		w.Header().Set("Connection", "close")
		w.Write(body)
	default:
		w.Header().Set("X-Length", fmt.Sprint(len(body)))
		w.WriteHeader(http.StatusAccepted)
		w.Write(body)
	}
}

// ends names a connection. Those to two servers may have the same port of the client at a time.
func ends(server, client string) string { return client + " to " + server }

func (r *recorder) take(conn string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := r.seen[conn]
	delete(r.seen, conn)
	return seen
}

// A pair is a Server and an http.Server without it, both with the same handler.
type pair struct {
	recorder  *recorder
	addr, ref string
}

func newPair(t testing.TB) *pair {
	p := &pair{recorder: &recorder{seen: map[string][]string{}}}
	s := newServer(t, Options{Handler: p.recorder})
	p.addr = serve(t, s)
	l := listen(t)
	p.ref = l.Addr().String()
	ref := &http.Server{Handler: p.recorder, ErrorLog: silent, ReadHeaderTimeout: time.Minute, MaxHeaderBytes: MaxHeader}
	t.Cleanup(func() { ref.Close() })
	go ref.Serve(l)
	return p
}

// said is what came back on a connection.
type said struct {
	asked []string // as the handler saw it
	told  []string // answers
	reset bool     // the connection broke, which may have cost answers
}

var dateField = regexp.MustCompile(`Date: [^\r]*`)

// say sends the pieces, one after the other, ends its side, and reads all.
func (p *pair) say(t testing.TB, addr string, pieces [][]byte) said {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(30 * time.Second))
	p.recorder.take(ends(addr, conn.LocalAddr().String())) // of a connection before, with the same port
	var s said
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for i, piece := range pieces {
			if i > 0 {
				time.Sleep(100 * time.Microsecond) // perhaps it is read by then
			}
			if _, err := conn.Write(piece); err != nil {
				return // the server has had enough
			}
		}
		conn.(*net.TCPConn).CloseWrite()
	}()
	for r := bufio.NewReader(conn); ; {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			s.reset = errors.Is(err, syscall.ECONNRESET)
			if !s.reset && err != io.ErrUnexpectedEOF && err != io.EOF {
				t.Fatalf("%v after %q", err, s.told)
			}
			break
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			s.reset = true
			break
		}
		body = dateField.ReplaceAll(body, nil) // what answers HEAD has the length of a body, which here is the next answer
		s.told = append(s.told, fmt.Sprintf("%d %v %q %q %q", resp.StatusCode, resp.Close, resp.Header.Get("X-Length"), resp.Header.Get("Content-Type"), body))
	}
	<-sent
	s.asked = p.recorder.take(ends(addr, conn.LocalAddr().String()))
	return s
}

// check sends input to both, split at random into at most 4 pieces, and compares.
func (p *pair) check(t testing.TB, input []byte, cuts ...int) {
	var pieces [][]byte
	rest := input
	for _, cut := range cuts {
		if cut > 0 && cut < len(rest) {
			pieces, rest = append(pieces, rest[:cut]), rest[cut:]
		}
	}
	pieces = append(pieces, rest)
	got, want := p.say(t, p.addr, pieces), p.say(t, p.ref, [][]byte{input})
	if n := len(got.told); n > 0 && n == len(got.asked) && n <= len(want.asked) && mayEnd(got.asked[n-1], input) && strings.HasPrefix(got.told[n-1][3:], " true ") {
		// After a request that may be ambiguous the connection ends: TestAmbiguous.
		got.told[n-1] = strings.Replace(got.told[n-1], " true ", " false ", 1)
		if n <= len(want.told) {
			want.told[n-1] = strings.Replace(want.told[n-1], " true ", " false ", 1)
			want.told = want.told[:n]
		}
		want.asked = want.asked[:n]
	}
	if !slices.Equal(got.asked, want.asked) {
		t.Errorf("for %q in %d pieces the handler saw\n%s\nwith net/http alone\n%s", input, len(pieces), strings.Join(got.asked, "\n"), strings.Join(want.asked, "\n"))
	}
	n := len(got.told)
	if got.reset || want.reset {
		n = min(n, len(want.told))
		got.told, want.told = got.told[:n], want.told[:n]
	}
	if !slices.Equal(got.told, want.told) {
		t.Errorf("for %q in %d pieces the answers are\n%s\nwith net/http alone\n%s", input, len(pieces), strings.Join(got.told, "\n"), strings.Join(want.told, "\n"))
	}
}

// mayEnd reports whether a request may be ambiguous.
func mayEnd(asked string, input []byte) bool {
	return strings.Contains(asked, " [chunked] ") || strings.Contains(asked, " HTTP/1.0 ") || bytes.Contains(input, []byte("\n ")) || bytes.Contains(input, []byte("\n\t"))
}

func post(path, more, body string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: a.b:80\r\n%sContent-Length: %d\r\n\r\n%s", path, more, len(body), body)
}

func chunked(path, body string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: a.b:80\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", path, len(body), body)
}

// streams are what connections may say.
var streams = []string{
	"",
	post("/a", "", "x"),
	post("/a", "Connection: keep-alive\r\nX-Y: 1\r\nX-Y: 2\r\n", "hello") + post("/a", "Connection: keep-alive\r\nX-Y: 1\r\nX-Y: 2\r\n", "hello again"),
	post("/a?q=%20", "", "x") + post("/b", "", "y") + post("/a?q=%20", "", "z"),
	post("/none", "", "x") + post("/gone", "", "x") + post("/a", "", "{}"),
	post("/a", "", "x") + post("/last", "", "y") + post("/a", "", "never"),
	post("/other", "", "x") + post("/a", "", "y"),
	post("/a", "", "x") + "GET /b HTTP/1.1\r\nHost: a\r\n\r\n" + post("/a", "", "y"),
	post("/a", "", "x") + "\r\n" + post("/a", "", "y") + "\r\n\r\n" + post("/a", "", "z") + "\n\n\n" + post("/a", "", "z") + "\r\n\r\n\r\n" + post("/a", "", "z"),
	"\r\n" + post("/a", "", "x"),
	post("/a", "", "x") + "\r\n",
	post("/a", "", "x") + "POST /a HTTP/1.1\r\nHost: a.b:80\r\nContent-Length: 9\r\n\r\nshort",
	post("/a", "", "x") + "POST /a HTTP/1.1\r\nHost: a.b:80\r\nContent-Length: 0\r\n\r\n" + post("/a", "", "x"),
	post("/a", "", "x") + "POST /a HTTP/1.1\r\nHost: a.b:80\r\n",
	post("/a", "", "x") + "POST /a HTTP/1.1\r\nHost: a.b:80\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n" + post("/a", "", "y"),
	post("/a", "Transfer-Encoding: chunked\r\n", "0\r\n\r\n") + post("/a", "", "y"),
	post("/a", "Transfer-Encoding : chunked\r\n", "0\r\n\r\n") + post("/a", "", "y"),
	post("/a", "Content-Length: 1\r\n", "xyz"),
	post("/a", "Content-Length: 3\r\n", "xyz") + post("/a", "", "y"),
	post("/a", "Host: c\r\n", "xyz"),
	post("/a", "X: a\r\n b\r\n", "xyz") + post("/a", "", "y"),
	post("/a", "Expect: 100-continue\r\n", "xyz") + post("/a", "", "y"),
	post("/a", "Expect: 200-ok\r\n", "xyz") + post("/a", "", "y"),
	post("/a", "Connection: close\r\n", "xyz") + post("/a", "", "y"),
	post("/a", "Upgrade: h2c\r\nConnection: Upgrade\r\n", "xyz") + post("/a", "", "y"),
	post("/a", "Pragma: no-cache\r\n", "xyz"),
	post("/a", "X-Long: "+strings.Repeat("l", 8<<10)+"\r\n", "xyz") + post("/a", "", "y"),
	post("/a", "", strings.Repeat("b", 64<<10)) + post("/a", "", "y"),
	post("/a", "", strings.Repeat("b", 64<<10/2)) + post("/a", "", strings.Repeat("c", 64<<10*3/4)) + post("/a", "", "y"),
	"POST /a HTTP/1.0\r\nHost: a\r\nContent-Length: 1\r\n\r\nx" + post("/a", "", "y"),
	"POST /a HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\nx" + post("/a", "", "y"),
	post("/a", "X: a\r\n\tb\r\n", "xyz") + post("/a", "", "y"),
	chunked("/a", "hello") + post("/a", "", "y") + chunked("/b", "again") + chunked("/b", "and again") + "\r\n" + post("/a", "", "z"),
	"GET /a HTTP/1.1\r\nHost: a\r\n\r\n" + post("/a", "", "y") + "HEAD /a HTTP/1.1\r\nHost: a\r\n\r\n" + post("/none", "", "z"),
	"GET /a HTTP/1.1\r\nHost: a\r\n\r\n\r\n" + post("/a", "", "y"),
	"GET /a HTTP/1.1\r\nHost: a\r\n\r\n\n",
	chunked("/last", "hello") + post("/a", "", "never"),
	chunked("/gone", "hello") + post("/a", "", "y") + chunked("/none", "hello") + "GET /b HTTP/1.1\r\nHost: a\r\n\r\n" + "nonsense\r\n\r\n",
	chunked("/unread", "hello") + post("/a", "", "y") + post("/unread", "Expect: 100-continue\r\n", "xyz") + post("/a", "", "y"),
	post("/half", "X-Long: "+strings.Repeat("l", 8<<10)+"\r\n", strings.Repeat("b", 3000)) + post("/a", "", "y"),
	chunked("/a", "hello") + "POST /a HTTP/1.1\r\nHost: a.b:80\r\nContent-Length: 9\r\n\r\nshort",
	"POST /a HTTP/1.1\r\nHost: a.b:80\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n5\r\nhello\r\n0\r\nX-T: 1\r\n\r\n" + post("/a", "", "y"),
	"POST /a HTTP/1.1\r\nHost: a.b:80\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n" + post("/a", "", "y"),
	"nonsense",
	post("/a", "", "x") + "nonsense\r\n\r\n",
	post("/a", "", "x") + "0",
	post("/a", "", "x") + "\r\n0",
	post("/a", "", "x") + "\r\n00",
	post("/a", "", "x") + "\r\n\r\n0",
}

// Whatever a connection says, and however it arrives, the handler sees the same
// requests and the client the same answers as with net/http alone.
func TestAsNetHTTP(t *testing.T) {
	p := newPair(t)
	var all sync.WaitGroup
	for _, text := range streams {
		all.Go(func() {
			p.check(t, []byte(text))
			for _, cut := range []int{1, 4, 20, 50, 70, 100, 1000, 40_000} {
				p.check(t, []byte(text), cut)
				p.check(t, []byte(text), cut, 30, 10)
			}
		})
	}
	all.Wait()
}

// Each split of a short stream into two reads.
func TestEachSplit(t *testing.T) {
	p := newPair(t)
	text := post("/a", "X: y\r\n", "hello") + post("/a", "X: y\r\n", "again") + "\r\n" + post("/b", "", "{}")
	for cut := range len(text) {
		p.check(t, []byte(text), cut)
	}
}

func FuzzAsNetHTTP(f *testing.F) {
	p := newPair(f)
	for i, text := range streams {
		if len(text) < 2000 {
			f.Add([]byte(text), uint16(i*7), uint16(i*3))
		}
	}
	f.Fuzz(func(t *testing.T, input []byte, first, second uint16) {
		if len(input) > 8<<10 || bytes.Contains(input, []byte("HTTP/2.0")) || speaksProxy(input) {
			return
		}
		p.check(t, input, int(first), int(second))
	})
}
