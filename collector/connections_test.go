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

	"github.com/rollway/rollway/collector/admission"
)

// A kept is a connection that stays open after a request.
type kept struct {
	net.Conn
	from *bufio.Reader
}

func keep(t *testing.T, addr net.Addr) *kept {
	t.Helper()
	c, err := net.Dial("tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(30 * time.Second))
	return &kept{c, bufio.NewReader(c)}
}

// ask returns the answer with its body read; whether the request could be written
// as a whole does not matter.
func (k *kept) ask(t *testing.T, method, path, body string) (*http.Response, string) {
	t.Helper()
	fmt.Fprintf(k, "%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", method, path, len(body), body)
	resp, err := http.ReadResponse(k.from, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(b)
}

// limits.max_connections is for all of HTTP. A client that comes too late is told so, and
// let in once there is room.
func TestConnectionLimit(t *testing.T) {
	cfg := testConfig(t)
	cfg.Limits.MaxConns, cfg.ListenGRPC = 3, "127.0.0.1:0"
	r := run(t, cfg)
	post, get := keep(t, r.Addr()), keep(t, r.Addr())
	if resp, body := post.ask(t, "POST", "/api/logs", `{"msg":"x"}`); resp.StatusCode != 200 {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	if resp, body := get.ask(t, "GET", "/healthz", ""); resp.StatusCode != 200 {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	other := keep(t, r.GRPCAddr())
	if resp, body := other.ask(t, "GET", "/metrics", ""); resp.StatusCode != 200 || !strings.Contains(body, "\nrollway_http_connections 3\n") || !strings.Contains(body, "\nrollway_http_connections_limit 3\n") {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	refused := uint64(0)
	full := func() {
		t.Helper()
		for _, addr := range []net.Addr{r.Addr(), r.GRPCAddr()} {
			late := keep(t, addr)
			resp, body := late.ask(t, "POST", "/api/logs", `{"msg":"late"}`)
			if resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "1" || !resp.Close || !strings.Contains(body, "too many connections") {
				t.Errorf("%d %v %s", resp.StatusCode, resp.Header, body)
			}
			refused++
		}
	}
	full()
	for _, ends := range []*kept{post, get, other} {
		ends.Close()
		eventually(t, func() bool { return r.Stats().Connections.Open == 2 })
		if resp, body := keep(t, r.Addr()).ask(t, "POST", "/api/logs", `{"msg":"y"}`); resp.StatusCode != 200 {
			t.Errorf("%d %s", resp.StatusCode, body)
		}
		full()
	}
	if got := r.Stats().Connections; got != (admission.LimitStats{Most: 3, Open: 3, Accepted: 6, Refused: refused}) {
		t.Errorf("%+v with %d refused", got, refused)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if s := r.Stats(); s.Connections.Open != 0 || s.Receive.Stored != 4 || s.Receive.Received != 4 {
		t.Errorf("%+v, %d of %d events stored", s.Connections, s.Receive.Stored, s.Receive.Received)
	}
}

// A connection over the limit answers probes, and all else by 503, within TLS too.
func TestProbesOverTheLimit(t *testing.T) {
	cfg, trusts, _ := newAuthority(t).secureConfig(t, testConfig(t))
	cfg.Limits.MaxConns, cfg.Timeouts.ReadHeader = 1, 5*time.Minute // the first one sends nothing meanwhile
	r := run(t, cfg)
	first, err := tls.Dial("tcp", r.Addr().String(), trusts)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	ask := func(method, path string) int {
		t.Helper()
		c, err := tls.Dial("tcp", r.Addr().String(), trusts)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", method, path)
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || !resp.Close {
			t.Fatal(resp, err)
		}
		return resp.StatusCode
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		if code := ask("GET", path); code != 200 {
			t.Errorf("%s: %d", path, code)
		}
	}
	for range 2 * reserveConns {
		if code := ask("POST", "/api/logs"); code != 503 {
			t.Errorf("%d", code)
		}
	}
	for range 2 * reserveConns { // which send nothing
		c, err := net.Dial("tcp", r.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	if code := ask("GET", "/healthz"); code != 200 {
		t.Errorf("%d", code)
	}
	if got := r.Stats().Connections; got.Accepted != 1 || got.Refused < 2*reserveConns {
		t.Errorf("%+v", got)
	}
}

// limits.max_streams is for each address by itself.
func TestStreamLimit(t *testing.T) {
	cfg := testConfig(t)
	cfg.Limits.MaxStreams, cfg.ListenTCP, cfg.ListenSyslog = 1, "127.0.0.1:0", "tcp://127.0.0.1:0"
	r := run(t, cfg)
	dial := func(addr net.Addr) net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", addr.String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	first := dial(r.TCPAddr())
	eventually(t, func() bool { return r.Stats().Receive.Connections == 1 })
	if _, err := dial(r.TCPAddr()).Read(make([]byte, 1)); err == nil {
		t.Error("a second connection is let in")
	}
	dial(r.SyslogAddrs()[0])
	eventually(t, func() bool { return r.Stats().Receive.Connections == 2 })
	first.Close()
	eventually(t, func() bool { return r.Stats().Receive.Connections == 1 })
	dial(r.TCPAddr())
	eventually(t, func() bool { return r.Stats().Receive.Connections == 2 })
	if s := r.Stats().Receive; s.ConnectionsRefused != 1 || s.ConnectionsTotal != 3 {
		t.Errorf("%+v", s)
	}
}

// Who loses a connection to another client is told in the figures, with the reason.
func TestEvictedClient(t *testing.T) {
	cfg := testConfig(t)
	cfg.Limits.MaxConns = 3
	r := run(t, cfg)
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	for range 3 {
		slow, err := d.Dial("tcp", r.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer slow.Close()
		fmt.Fprint(slow, "POST /api/logs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{\"msg")
	}
	eventually(t, func() bool { return r.Stats().Receive.InFlight >= 3*2*(10+1) })
	var client *kept
	eventually(t, func() bool { // once they are waited for
		client = keep(t, r.Addr())
		resp, _ := client.ask(t, "GET", "/api/clients", "")
		return resp.StatusCode == 200
	})
	_, list := client.ask(t, "GET", "/api/clients", "")
	if !strings.Contains(list, `"client":"127.0.0.2"`) || !strings.Contains(list, `"error":"evicted: another client got the place of this connection, as its request had not arrived"`) {
		t.Errorf("%s", list)
	}
	_, metrics := client.ask(t, "GET", "/metrics", "")
	for _, want := range []string{`rollway_http_connections_evicted_total{reason="arriving"} 1`, `rollway_http_connections_evicted_total{reason="unread"} 0`, `reason="evicted"`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no %s in %s", want, metrics)
		}
	}
}

// eventually waits for what must come.
func eventually(t *testing.T, what func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !what(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it never comes")
		}
	}
}

// A kept connection has timeouts.linger for a last request once the collector stops,
// and the answer says that it was the last: a proxy that is about
// to use it does not meet a closed one.
func TestLastRequestOfKeptConnections(t *testing.T) {
	plain, a := testConfig(t), newAuthority(t)
	plain.Timeouts.Linger = time.Minute
	secure, trusts, _ := a.secureConfig(t, testConfig(t))
	secure.Timeouts.Linger = time.Minute
	for _, tc := range []struct {
		name, method, path string
		secure             bool
	}{
		{"events", "POST", "/api/logs", false},
		{"health", "GET", "/healthz", false},
		{"TLS", "POST", "/api/logs", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg := plain
			if tc.secure {
				cfg = secure
			}
			cfg.Data = t.TempDir()
			r := run(t, cfg)
			k := keep(t, r.Addr())
			if tc.secure {
				trusts := trusts.Clone()
				trusts.ServerName = "127.0.0.1"
				encrypted := tls.Client(k.Conn, trusts)
				k = &kept{encrypted, bufio.NewReader(encrypted)}
			}
			if resp, _ := k.ask(t, tc.method, tc.path, `{"msg":"first"}`); resp.StatusCode != 200 || resp.Close {
				t.Fatalf("the first: %s, close %v", resp.Status, resp.Close)
			}
			stopped := make(chan error, 1)
			go func() { stopped <- r.stop() }()
			for {
				c, err := net.Dial("tcp", r.Addr().String())
				if err != nil {
					break
				}
				c.Close()
			}
			if resp, _ := k.ask(t, tc.method, tc.path, `{"msg":"last"}`); resp.StatusCode != 200 || !resp.Close {
				t.Errorf("the last: %s, close %v", resp.Status, resp.Close)
			}
			if err := <-stopped; err != nil { // long before the minute is over
				t.Errorf("stop: %v", err)
			}
		})
	}
}

// A connection on which the rest of a body does not arrive makes room for a newcomer.
func TestSlowBodiesMakeRoom(t *testing.T) {
	cfg := testConfig(t)
	cfg.Limits.MaxConns = 2
	r := run(t, cfg)
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.0.2")}}
	for range 2 {
		c, err := d.Dial("tcp", r.Addr().String())
		if err != nil {
			t.Skipf("this machine has no second address: %v", err)
		}
		defer c.Close()
		io.WriteString(c, "POST /api/logs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{\"msg\":\"the rest of it never comes")
	}
	const body = 2 * (100 + 1) // bytes of the budget
	eventually(t, func() bool { return r.Stats().Receive.InFlight >= 2*body })
	if resp, text := keep(t, r.Addr()).ask(t, "POST", "/api/logs", `{"msg":"x"}`); resp.StatusCode != 200 {
		t.Errorf("the newcomer is told %d %s", resp.StatusCode, text)
	}
}
