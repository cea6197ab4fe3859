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

	"github.com/rollway/rollway/collector/config"
)

// longHeader is the beginning of a request whose header, of size bytes or somewhat
// more, has nothing but short fields.
func longHeader(size int) string {
	var b strings.Builder
	b.WriteString("POST /api/logs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n")
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "%x:\r\n", i)
	}
	return b.String()
}

// headerConfig leaves 1 MiB for headers, as much as one of 60 KiB may take up.
func headerConfig(t *testing.T) config.Config {
	cfg := testConfig(t)
	cfg.ListenGRPC = "127.0.0.1:0"
	cfg.Limits.MaxUnpacked, cfg.Limits.MaxEvent, cfg.Limits.InFlight = 2*config.MiB, config.MiB, 6*config.MiB
	return cfg
}

// Headers are taken from limits.in_flight while they are read and until their
// request is over; where there is no room the answer is 503.
func TestHeaderMemory(t *testing.T) {
	r := run(t, headerConfig(t))
	const size = 60 << 10
	for name, tt := range map[string]struct {
		addr net.Addr
		rest string // after the header
		held int64  // at least
	}{
		"in the middle of it, in front":  {r.Addr(), "", 512 << 10},
		"in the middle of it":            {r.GRPCAddr(), "", 512 << 10},
		"in the middle of its body":      {r.Addr(), "\r\n{", 512 << 10},
		"in the middle of its body, too": {r.GRPCAddr(), "\r\n{", 512 << 10},
	} {
		first := keep(t, tt.addr)
		io.WriteString(first, longHeader(size)+tt.rest)
		eventually(t, func() bool { return r.Stats().Receive.InFlight >= tt.held })
		var beside []*kept
		answers := make(chan *http.Response, 2)
		for range 2 { // one may fit beside it that is cheaper once it is known
			second := keep(t, tt.addr)
			beside = append(beside, second)
			io.WriteString(second, longHeader(size)+"\r\n{")
			go func() {
				if resp, err := http.ReadResponse(second.from, nil); err == nil {
					answers <- resp
				}
			}()
		}
		select {
		case resp := <-answers:
			if resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "1" || !resp.Close {
				t.Errorf("%s: %v", name, resp)
			}
		case <-time.After(30 * time.Second):
			t.Errorf("%s: headers over the limit are taken", name)
		}
		// Usual ones are none of it.
		if resp, body := keep(t, tt.addr).ask(t, "POST", "/api/logs", `{"msg":"x"}`); resp.StatusCode != 200 {
			t.Errorf("%s: a usual request: %d %s", name, resp.StatusCode, body)
		}
		first.Close()
		for _, c := range beside {
			c.Close()
		}
		eventually(t, func() bool { return r.Stats().Receive.InFlight == 0 })
	}
	again := keep(t, r.Addr())
	for range 3 {
		io.WriteString(again, longHeader(30<<10)+"\r\n"+`{"msg":1}`)
		resp, err := http.ReadResponse(again.from, nil)
		if err != nil || resp.StatusCode != 200 {
			t.Fatal(resp, err)
		}
		io.Copy(io.Discard, resp.Body)
		eventually(t, func() bool { return r.Stats().Receive.InFlight == 0 })
	}
}

// In HTTP/2 each stream's header counts until its request is over.
func TestHeaderMemoryHTTP2(t *testing.T) {
	r := run(t, headerConfig(t))
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols}
	defer transport.CloseIdleConnections()
	begin := func() (*io.PipeWriter, chan int) {
		body, write := io.Pipe()
		req, err := http.NewRequest("POST", r.url+"/api/logs", body)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 800 {
			req.Header.Set(fmt.Sprintf("X-%d", i), "y")
		}
		code := make(chan int, 1)
		go func() {
			resp, err := transport.RoundTrip(req)
			if err != nil {
				code <- 0
				return
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			code <- resp.StatusCode
		}()
		return write, code
	}
	var writes []*io.PipeWriter
	var codes []chan int
	refused := false
	for range 40 {
		write, code := begin()
		defer write.Close()
		writes, codes = append(writes, write), append(codes, code)
	}
	eventually(t, func() bool {
		for _, c := range codes {
			select {
			case n := <-c:
				if n != 503 {
					t.Fatalf("answered %d", n)
				}
				refused = true
			default:
			}
		}
		return refused
	})
	for _, w := range writes {
		w.CloseWithError(io.ErrUnexpectedEOF)
	}
	eventually(t, func() bool { return r.Stats().Receive.InFlight == 0 })
}

// Within TLS a header counts from when it is whole, and what a handshake takes is
// charged to nobody.
func TestHeaderMemoryTLS(t *testing.T) {
	cfg, trusts, _ := newAuthority(t).secureConfig(t, headerConfig(t))
	r := run(t, cfg)
	dial := func() *tls.Conn {
		c, err := tls.Dial("tcp", r.Addr().String(), trusts)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		c.SetDeadline(time.Now().Add(30 * time.Second))
		return c
	}
	first := dial()
	if n := r.Stats().Receive.InFlight; n != 0 {
		t.Errorf("%d bytes after a handshake", n)
	}
	io.WriteString(first, longHeader(60<<10)+"\r\n{")
	eventually(t, func() bool { return r.Stats().Receive.InFlight >= 512<<10 })
	answers := make(chan *http.Response, 2)
	var beside []*tls.Conn
	for range 2 { // as in TestHeaderMemory
		second := dial()
		beside = append(beside, second)
		io.WriteString(second, longHeader(60<<10)+"\r\n{")
		go func() {
			if resp, err := http.ReadResponse(bufio.NewReader(second), nil); err == nil {
				answers <- resp
			}
		}()
	}
	select {
	case resp := <-answers:
		if resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "1" {
			t.Error(resp)
		}
	case <-time.After(30 * time.Second):
		t.Error("headers over the limit are taken")
	}
	first.Close()
	for _, c := range beside {
		c.Close()
	}
	eventually(t, func() bool { return r.Stats().Receive.InFlight == 0 })
}
