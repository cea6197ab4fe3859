package httpserver

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/rollway/rollway/collector/admission"
	"github.com/rollway/rollway/internal/testkit"
)

var silent = log.New(io.Discard, "", 0)

// newServer returns a Server that lasts until the test ends. Options that are not set
// set no bounds.
func newServer(t testing.TB, o Options) *Server {
	if o.Admission = admission.New(); o.Limit == nil {
		o.Limit = o.Admission.NewLimit(1000, 0)
	}
	for _, k := range []admission.Kind{admission.Memory, admission.Headers} {
		o.Admission.Resource(k).SetLimit(1 << 30)
	}
	if o.ErrorLog == nil {
		o.ErrorLog = silent
	}
	for _, d := range []*time.Duration{&o.ReadHeaderTimeout, &o.ReadTimeout, &o.WriteTimeout, &o.IdleTimeout} {
		if *d == 0 {
			*d = time.Minute
		}
	}
	s := New(o)
	t.Cleanup(func() { s.Close() })
	return s
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// serve has s serve a new listener and returns its address.
func serve(t testing.TB, s *Server) string {
	t.Helper()
	l := listen(t)
	serveOn(t, s, l)
	return l.Addr().String()
}

func serveOn(t testing.TB, s *Server, l net.Listener) {
	t.Helper()
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Close()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
}

func dial(t testing.TB, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(30 * time.Second))
	return c
}

// ask sends a request and returns the answer with its body.
func ask(t testing.TB, c net.Conn, request string) (*http.Response, string) {
	t.Helper()
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// echo answers with the body.
var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })

// A request that has a Content-Length besides its Transfer-Encoding is the last one of
// its connection, however its bytes arrive. Other requests in chunks are not.
func TestAmbiguous(t *testing.T) {
	addr := serve(t, newServer(t, Options{Handler: echo}))
	for name, tc := range map[string]struct {
		sent  []string // "": an answer comes first
		close bool
	}{
		"chunks":                 {[]string{chunked("/", "hello")}, false},
		"chunks in two parts":    {[]string{chunked("/", "hello")[:30], chunked("/", "hello")[30:]}, false},
		"chunks after chunks":    {[]string{chunked("/", "a"), "", chunked("/", "b")}, false},
		"chunks after a length":  {[]string{post("/", "", "hello"), "", chunked("/", "b")}, false},
		"chunks after a GET":     {[]string{"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "", chunked("/", "b")}, false},
		"length twice":           {[]string{post("/", "Content-Length: 5\r\n", "hello")}, false},
		"both":                   {[]string{post("/", "Transfer-Encoding: chunked\r\n", "0\r\n\r\n")}, true},
		"both, other case":       {[]string{strings.Replace(post("/", "Transfer-Encoding: chunked\r\n", "0\r\n\r\n"), "Content-L", "CONTENT-l", 1)}, true},
		"both, bare line feeds":  {[]string{strings.ReplaceAll(post("/", "Transfer-Encoding: chunked\r\n", "0\r\n\r\n"), "80\r\n", "80\n")}, true},
		"both, after empty line": {[]string{post("/", "", "x"), "", "\r\n\r\n" + post("/", "Transfer-Encoding: chunked\r\n", "0\r\n\r\n")}, true},
		"both, in parts":         {[]string{"POST / HTTP/1.1\r\nHost: a\r\nConten", "t-Length: 5\r\nTransfer-Enc", "oding: chunked\r\n\r\n0\r\n\r\n"}, true},
		"both, ahead of time":    {[]string{post("/", "", "x") + "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n", "", "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"}, true},
		"both, folded":           {[]string{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n 5\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n"}, true},
		"coding in HTTP/1.0":     {[]string{"POST / HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nhello"}, true},
		"kept HTTP/1.0":          {[]string{"POST / HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello"}, false},
		"folded":                 {[]string{post("/", "X: a\r\n Transfer-Encoding: chunked\r\n", "hello")}, true},
		"folded by a tab":        {[]string{post("/", "X: a\r\n\tb\r\n", "hello")}, true},
		"both, ahead as a whole": {[]string{chunked("/", "x") + post("/", "Transfer-Encoding: chunked\r\n", "0\r\n\r\n"), ""}, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, addr)
			from := bufio.NewReader(c)
			answer := func() *http.Response {
				resp, err := http.ReadResponse(from, nil)
				if err != nil {
					t.Fatal(err)
				}
				io.Copy(io.Discard, resp.Body)
				return resp
			}
			for _, part := range tc.sent {
				if part == "" {
					answer()
				}
				io.WriteString(c, part)
			}
			last := answer()
			if last.StatusCode != 200 || last.Close != tc.close {
				t.Errorf("%s, close %v, want %v", last.Status, last.Close, tc.close)
			}
		})
	}
}

// Within TLS headers are not seen: chunks and HTTP/1.0 end the connection there.
func TestAmbiguousInTLS(t *testing.T) {
	withCertificate := httptest.NewTLSServer(echo)
	defer withCertificate.Close()
	addr := serve(t, newServer(t, Options{Handler: echo, TLS: withCertificate.TLS.Clone()}))
	for name, tc := range map[string]struct {
		sent  string
		close bool
	}{
		"length":   {post("/", "", "hello"), false},
		"both":     {post("/", "Transfer-Encoding: chunked\r\n", "0\r\n\r\n"), true},
		"chunks":   {chunked("/", "hello"), true},
		"HTTP/1.0": {"POST / HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\nhello", true},
	} {
		c := tls.Client(dial(t, addr), &tls.Config{RootCAs: withCertificate.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, ServerName: "example.com"})
		if resp, _ := ask(t, c, tc.sent); resp.StatusCode != 200 || resp.Close != tc.close {
			t.Errorf("%s: %s, close %v, want %v", name, resp.Status, resp.Close, tc.close)
		}
	}
}

// What a strict proxy refuses is refused here, or read in the one way that RFC 9112
// allows, or is the last request of its connection.
func TestStrict(t *testing.T) {
	addr := serve(t, newServer(t, Options{Handler: echo}))
	request := func(fields, body string) string {
		return "POST / HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n" + body
	}
	in := func(chunks string) string { return request("Transfer-Encoding: chunked\r\n", chunks) }
	for name, tc := range map[string]struct {
		sent string
		code int // 400 and more end the connection
		body string
	}{
		"several lengths":                       {request("Content-Length: 1\r\nContent-Length: 2\r\n", "ab"), 400, ""},
		"a list of lengths":                     {request("Content-Length: 1, 2\r\n", "ab"), 400, ""},
		"a list of one length":                  {request("Content-Length: 1, 1\r\n", "a"), 400, ""},
		"a length with a sign":                  {request("Content-Length: +1\r\n", "a"), 400, ""},
		"a negative length":                     {request("Content-Length: -1\r\n", "a"), 400, ""},
		"a length in hexadecimal":               {request("Content-Length: 0x1\r\n", "a"), 400, ""},
		"a length that is too long":             {request("Content-Length: 99999999999999999999\r\n", "a"), 400, ""},
		"an empty length":                       {request("Content-Length: \r\n", "a"), 400, ""},
		"a space before a colon":                {request("Content-Length : 1\r\n", "a"), 400, ""},
		"a space before a coding":               {request("Transfer-Encoding : chunked\r\n", "0\r\n\r\n"), 400, ""},
		"no name":                               {request(": 1\r\n", ""), 400, ""},
		"a line without a colon":                {request("nonsense\r\n", ""), 400, ""},
		"a fold as the first line":              {"POST / HTTP/1.1\r\n Host: a\r\nContent-Length: 1\r\n\r\na", 400, ""},
		"a NUL":                                 {request("X: a\x00b\r\n", ""), 400, ""},
		"a bare CR":                             {request("X: a\rContent-Length: 1\r\n", ""), 400, ""},
		"a name that is no token":               {request("X\x01Y: a\r\n", ""), 400, ""},
		"two hosts":                             {request("Host: b\r\n", ""), 400, ""},
		"no host":                               {"POST / HTTP/1.1\r\n\r\n", 400, ""},
		"another coding":                        {request("Transfer-Encoding: gzip\r\n", ""), 501, ""},
		"a coding before chunks":                {request("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"), 501, ""},
		"chunks twice":                          {request("Transfer-Encoding: chunked, chunked\r\n", "0\r\n\r\n"), 501, ""},
		"two codings":                           {request("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), 501, ""},
		"a coding with a tab":                   {request("Transfer-Encoding: \vchunked\r\n", "0\r\n\r\n"), 400, ""},
		"HTTP/1.9":                              {"GET / HTTP/1.9\r\nHost: a\r\n\r\n", 200, ""},
		"HTTP/3":                                {"GET / HTTP/3.0\r\nHost: a\r\n\r\n", 505, ""},
		"a line that ends in LF":                {"POST / HTTP/1.1\nHost: a\nContent-Length: 1\n\na", 200, "a"},
		"an extension of a chunk":               {in("1;x=y\r\na\r\n0\r\n\r\n"), 200, "a"},
		"a chunk size that ends in LF":          {in("1\na\r\n0\r\n\r\n"), 0, ""},
		"a chunk that ends in LF":               {in("1\r\na\n0\r\n\r\n"), 0, ""},
		"an extension of a chunk with an LF":    {in("1;x=\ny\r\na\r\n0\r\n\r\n"), 0, ""},
		"a chunk size with a sign":              {in("+1\r\na\r\n0\r\n\r\n"), 0, ""},
		"a chunk size with 0x":                  {in("0x1\r\na\r\n0\r\n\r\n"), 0, ""},
		"a chunk size that is too large":        {in("ffffffffffffffffff\r\na\r\n0\r\n\r\n"), 0, ""},
		"a chunk that is longer than its size":  {in("1\r\nab\r\n0\r\n\r\n"), 0, ""},
		"a chunk size with a space and a digit": {in("1 1\r\na\r\n0\r\n\r\n"), 0, ""},
	} {
		c := dial(t, addr)
		io.WriteString(c, tc.sent)
		from := bufio.NewReader(c)
		resp, err := http.ReadResponse(from, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		body, _ := io.ReadAll(resp.Body)
		if tc.code == 0 { // the body is cut off there
			if _, err := from.ReadByte(); err == nil || !resp.Close && resp.StatusCode == 200 && len(body) > 1 {
				t.Errorf("%s: %s, %q, and the connection is kept", name, resp.Status, body)
			}
			continue
		}
		if resp.StatusCode != tc.code || tc.code == 200 && string(body) != tc.body || tc.code >= 400 && !resp.Close {
			t.Errorf("%s: %s, %q, close %v, want %d", name, resp.Status, body, resp.Close, tc.code)
		}
	}
}

// A connection that begins with a PROXY header gets an answer that says so, and is told of.
func TestProxyHeader(t *testing.T) {
	told := make(chan string, 2)
	addr := serve(t, newServer(t, Options{Handler: echo, Refused: func(_ net.Addr, reason, text string) { told <- reason + text }}))
	for _, header := range []string{"PROXY TCP4 192.0.2.1 192.0.2.2 40000 80\r\n", "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\xc0\x00\x02\x01\xc0\x00\x02\x02\x9c\x40\x00\x50"} {
		resp, body := ask(t, dial(t, addr), header+post("/", "", "x"))
		if resp.StatusCode != 400 || !strings.Contains(body, "PROXY protocol") || !resp.Close {
			t.Errorf("%.12q: %s, %q, close %v", header, resp.Status, body, resp.Close)
		}
	}
	for range 2 {
		if text := <-told; !strings.HasPrefix(text, "protocol") || !strings.Contains(text, "turn it off (send-proxy") {
			t.Errorf("told %q", text)
		}
	}
}

// Linger answers one more request of each connection, be it new, used, or complete
// and not accepted yet, and ends with the last of them.
func TestLinger(t *testing.T) {
	o := Options{Handler: echo, Limit: admission.New().NewLimit(10, 0)}
	s := newServer(t, o)
	addr := serve(t, s)
	fresh, used := dial(t, addr), dial(t, addr)
	ask(t, used, post("/", "", "x"))
	await(t, "both are accepted", func() bool { return o.Limit.Stats().Accepted == 2 })
	done := make(chan struct{})
	go func() { s.Linger(time.Minute); close(done) }()
	await(t, "no connection is accepted", func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
		}
		return err != nil
	})
	for name, c := range map[string]net.Conn{"fresh": fresh, "used": used} {
		if resp, body := ask(t, c, post("/", "", name)); body != name || !resp.Close {
			t.Errorf("%s: %q, close %v", name, body, resp.Close)
		}
	}
	<-done
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// A request is answered that came just before Linger, when no connection was open.
func TestLingerWithNoneOpen(t *testing.T) {
	for range 20 {
		o := Options{Handler: echo, Limit: admission.New().NewLimit(10, 0)}
		s := newServer(t, o)
		addr := serve(t, s)
		ask(t, dial(t, addr), post("/", "Connection: close\r\n", "x"))
		await(t, "none is open", func() bool { return o.Limit.Stats().Open == 0 })
		c := dial(t, addr)
		io.WriteString(c, post("/", "Connection: close\r\n", "hello"))
		s.Linger(time.Minute)
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if answer, err := io.ReadAll(c); err != nil || !strings.HasSuffix(string(answer), "hello") {
			t.Errorf("answered %q, %v", answer, err)
		}
	}
}

// await waits for what must come.
func await(t testing.TB, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never: " + what)
		}
	}
}

// A slow client ends neither the server nor others: a header, a body and a kept
// connection have their timeouts.
func TestTimeouts(t *testing.T) {
	for _, tc := range []struct {
		name, sent string
		o          Options
		answers    int
	}{
		{"nothing", "", Options{ReadHeaderTimeout: 50 * time.Millisecond}, 0},
		{"half a header", "POST / HTTP/1.1\r\nHost: a\r\n", Options{ReadHeaderTimeout: 50 * time.Millisecond}, 0},
		{"half a body", post("/", "", "hello")[:55], Options{ReadTimeout: 50 * time.Millisecond}, 0},
		{"no second request", post("/", "", "x"), Options{IdleTimeout: 50 * time.Millisecond}, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.o.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if b, err := io.ReadAll(r.Body); err != nil {
					panic(http.ErrAbortHandler)
				} else {
					w.Write(b)
				}
			})
			l := listen(t)
			c := dial(t, l.Addr().String())
			io.WriteString(c, tc.sent) // it is there when its time begins
			serveOn(t, newServer(t, tc.o), l)
			b, err := io.ReadAll(c)
			if n := strings.Count(string(b), "HTTP/1.1 200"); err != nil || n != tc.answers {
				t.Errorf("%d answers, %v", n, err)
			}
		})
	}
}

// A header that comes a byte at a time is over in time too, and delays nobody.
func TestDrippedHeader(t *testing.T) {
	addr := serve(t, newServer(t, Options{Handler: echo, ReadHeaderTimeout: 50 * time.Millisecond}))
	slow, sent := dial(t, addr), 0
	await(t, "the connection ends", func() bool {
		if sent == 10 {
			if resp, _ := ask(t, dial(t, addr), post("/", "", "x")); resp.StatusCode != 200 {
				t.Errorf("beside it: %s", resp.Status)
			}
		}
		_, err := io.WriteString(slow, "P")
		sent++
		return err != nil
	})
	if sent > MaxHeader/2 {
		t.Errorf("it ended after %d bytes, by their number", sent)
	}
}

// Answers have the date of the last sweep, whether or not a handler writes one.
func TestDate(t *testing.T) {
	s := newServer(t, Options{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/own" {
			w.Header().Set("Date", "Thu, 01 Jan 1970 00:00:00 GMT")
		}
	})})
	c := dial(t, serve(t, s))
	for path, want := range map[string]time.Time{"/": time.Now(), "/own": time.Unix(0, 0)} {
		resp, _ := ask(t, c, "GET "+path+" HTTP/1.1\r\nHost: a\r\n\r\n")
		got, err := http.ParseTime(resp.Header.Get("Date"))
		if err != nil || got.Sub(want).Abs() > time.Minute || len(resp.Header["Date"]) != 1 {
			t.Errorf("%s: Date %q, %v", path, resp.Header["Date"], err)
		}
	}
	s.setDate(time.Unix(1e9, 0))
	if got := (*s.date.Load())[0]; got != "Sun, 09 Sep 2001 01:46:40 GMT" {
		t.Errorf("Date %q", got)
	}
}

// An answer that the peer does not take counts for as long as it waits. A refusal has no body,
// which would wait too.
func TestUntakenAnswersCount(t *testing.T) {
	const at = 200
	s := newServer(t, Options{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") })})
	headers := s.o.Admission.Resource(admission.Headers)
	headers.SetLimit(1 << 20)
	c, err := net.Dial("tcp", serve(t, s))
	testkit.OK(t, err)
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	_, err = io.WriteString(c, http2.ClientPreface)
	testkit.OK(t, err)
	f := http2.NewFramer(c, c)
	testkit.OK(t, f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}))
	var head bytes.Buffer
	enc := hpack.NewEncoder(&head)
	for n := range uint32(at) {
		head.Reset()
		for _, h := range []string{":method=POST", ":scheme=http", ":authority=localhost", ":path=/"} {
			name, value, _ := strings.Cut(h, "=")
			enc.WriteField(hpack.HeaderField{Name: name, Value: value})
		}
		testkit.OK(t, f.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*n + 1, BlockFragment: head.Bytes(), EndHeaders: true}))
	}
	waiting, refused := 0, 0
	read := func() http2.Frame {
		frame, err := f.ReadFrame()
		testkit.OK(t, err)
		return frame
	}
	for waiting+refused < at {
		if h, is := read().(*http2.HeadersFrame); is && h.StreamEnded() {
			refused++
		} else if is {
			waiting++
		}
	}
	if used := headers.Used(); used < int64(waiting-1)*streamMemory || waiting > 80 || waiting < 40 {
		t.Errorf("%d answers that wait take %d bytes", waiting, used)
	}
	testkit.OK(t, f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 100}))
	for waiting > 0 {
		if d, is := read().(*http2.DataFrame); is && d.StreamEnded() {
			waiting--
		}
	}
	for headers.Used() > 0 { // the last handler returns
		time.Sleep(time.Millisecond)
	}
}

// Requests of HTTP/2 at a time over one connection count against the budget, all except for
// the first: each has a goroutine and more, whatever the length of its header.
func TestStreamsCount(t *testing.T) {
	const at = 200
	arrived, leave := make(chan bool, at), make(chan bool)
	s := newServer(t, Options{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { arrived <- true; <-leave })})
	headers := s.o.Admission.Resource(admission.Headers)
	headers.SetLimit(1 << 20)
	addr := serve(t, s)
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	client := &http.Client{Transport: &http.Transport{Protocols: protocols}}
	defer client.CloseIdleConnections()
	codes := make(chan int, at)
	for range at {
		go func() {
			resp, err := client.Get("http://" + addr + "/")
			if err != nil {
				t.Error(err)
				codes <- 0
				return
			}
			resp.Body.Close()
			codes <- resp.StatusCode
		}()
	}
	refused, served := 0, 0
	for refused+len(arrived) < at {
		select {
		case code := <-codes:
			if refused++; code != http.StatusServiceUnavailable {
				t.Fatalf("answered %d", code)
			}
		case <-time.After(time.Millisecond):
		}
	}
	if used := headers.Used(); used < 500<<10 || used > 1<<20 || len(arrived) > 80 || len(arrived) < 40 {
		t.Errorf("%d requests at a time take %d bytes", len(arrived), used)
	}
	close(leave)
	for range at - refused {
		if <-codes == http.StatusOK {
			served++
		}
	}
	if used := headers.Used(); served != at-refused || used != 0 {
		t.Errorf("%d of %d are served, %d bytes are kept", served, at-refused, used)
	}
}
