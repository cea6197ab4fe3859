package relay

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/testkit"
)

func pemOf(authorities ...*authority) (text []byte) {
	for _, a := range authorities {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})...)
	}
	return text
}

// write replaces a file at once.
func write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// reload wants the files of r to have changed.
func reload(t *testing.T, r *reloadedTLS) {
	t.Helper()
	if changed, err := r.reload(); !changed || err != nil {
		t.Fatalf("reload = %v, %v", changed, err)
	}
}

// Only a file that is whole replaces the authorities.
func TestAuthoritiesReload(t *testing.T) {
	one, two := newAuthority(t), newAuthority(t)
	path := filepath.Join(t.TempDir(), "ca.pem")
	if _, err := newReloadedTLS("server", nil, TLSFiles{Authorities: path}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	write(t, path, pemOf(one))
	r, err := newReloadedTLS("server", nil, TLSFiles{Authorities: path})
	if err != nil {
		t.Fatal(err)
	}
	first := r.config.Load()
	both := pemOf(one, two)
	key, _ := one.pair("one")
	bad := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("none")})
	for name, text := range map[string][]byte{
		"empty":          nil,
		"no PEM":         []byte("authorities will be here"),
		"half":           both[:len(both)-100],
		"half a line":    both[:len(pemOf(one))+len("-----BEGIN CERT")],
		"no certificate": append(pemOf(two), bad...),
		"a key":          append(pemOf(two), []byte(strings.ReplaceAll(string(key), "CERTIFICATE", "PRIVATE KEY"))...),
	} {
		write(t, path, text)
		if changed, err := r.reload(); changed || err == nil || !strings.Contains(err.Error(), path) || r.config.Load() != first {
			t.Errorf("%s: reload = %v, %v", name, changed, err)
		}
	}
	write(t, path, append([]byte("# both\n"), both...))
	reload(t, r)
	want := x509.NewCertPool()
	want.AddCert(one.cert)
	want.AddCert(two.cert)
	if !r.config.Load().ClientCAs.Equal(want) || !r.config.Load().RootCAs.Equal(want) {
		t.Error("not both authorities were read")
	}
	if changed, err := r.reload(); changed || err != nil {
		t.Errorf("reload of the same file = %v, %v", changed, err)
	}
}

// Half a renewal, a certificate whose key is not its own, changes nothing. The log
// says so, and says what a whole one changed.
func TestCertificatesReload(t *testing.T) {
	a, dir := newAuthority(t), t.TempDir()
	pair := a.files(dir, "one.example")
	var log testkit.Buffer
	o := Options{To: []string{"tcp://127.0.0.1:1"}, Log: slog.New(slog.NewTextHandler(&log, nil)), ServerFiles: TLSFiles{Certificates: []KeyPair{pair}}}
	r, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	name := func() string { return r.serverTLS.config.Load().Certificates[0].Leaf.DNSNames[0] }
	logged := func(text string) {
		t.Helper()
		eventually(t, func() bool { return strings.Contains(log.String(), text) }, log.String)
	}
	r.Reload()
	logged("changed=false")
	key, _ := os.ReadFile(pair.Key)
	a.files(dir, "two.example")
	renewed, _ := os.ReadFile(pair.Key)
	write(t, pair.Key, key)
	r.Reload()
	logged("not reloaded")
	if got := name(); got != "one.example" {
		t.Errorf("half a renewal made the certificate that of %s", got)
	}
	write(t, pair.Key, renewed)
	r.Reload()
	logged("changed=true")
	if got := name(); got != "two.example" {
		t.Errorf("after the renewal the certificate is that of %s", got)
	}
	o.ServerFiles.Certificates[0].Key = filepath.Join(dir, "absent")
	if _, err := New(o); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("New without a key: %v", err)
	}
}

// With a log that hangs, certificates and authorities are renewed all the same.
func TestRenewalWithHungLog(t *testing.T) {
	hung := hungHandler{true, make(chan struct{})}
	t.Cleanup(sync.OnceFunc(func() { close(hung.released) }))
	one, two, three := newAuthority(t), newAuthority(t), newAuthority(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "ca.pem")
	write(t, path, pemOf(one))
	files := TLSFiles{Certificates: []KeyPair{one.files(dir, "one.example")}, Authorities: path}
	r, err := New(Options{To: []string{"tcp://127.0.0.1:1"}, Log: slog.New(hung), ServerFiles: files, grace: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []*authority{two, three} { // the first is what hangs
		had := r.serverTLS.config.Load()
		write(t, path, pemOf(a))
		a.files(dir, "next.example")
		r.Reload()
		if now := r.serverTLS.config.Load(); now == had || now.ClientCAs.Equal(had.ClientCAs) {
			t.Error("not renewed")
		}
	}
	r.Close()
}

// A load is clients that come and go.
type load struct {
	w     *way
	done  atomic.Bool
	count atomic.Int64
	all   sync.WaitGroup
}

func startLoad(t *testing.T, w *way, config *tls.Config) *load {
	l := &load{w: w}
	text := strings.Repeat("over and over ", 1000)
	for range 2 {
		l.all.Go(func() {
			for !l.done.Load() {
				if err := echoAs(w, config, text); err != nil {
					t.Error(err)
					return
				}
				l.count.Add(1)
			}
		})
	}
	return l
}

// more waits until n more clients were served.
func (l *load) more(t *testing.T, n int64) {
	t.Helper()
	before := l.count.Load()
	eventually(t, func() bool { return t.Failed() || l.count.Load() >= before+n }, func() string { return "no load" })
}

func (l *load) stop() {
	l.done.Store(true)
	l.all.Wait()
}

// echoAs sends text through the relay as the client of a config.
func echoAs(w *way, config *tls.Config, text string) error {
	c, err := tls.Dial("tcp", w.listener.Addr().String(), config)
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	var sending sync.WaitGroup
	defer sending.Wait()
	sending.Go(func() {
		_, _ = io.WriteString(c, text)
		_ = c.CloseWrite()
	})
	got, err := io.ReadAll(c)
	if err != nil || string(got) != text {
		return fmt.Errorf("%d bytes came back, %w", len(got), err)
	}
	return nil
}

// The authorities of clients are replaced, one after the other, while clients
// of both come and go: whom the file vouches for is served and nobody else, not
// by resuming a session either, and who was connected stays.
func TestClientAuthoritySwapUnderLoad(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		t.Run(tls.VersionName(version), func(t *testing.T) { swapAuthorities(t, version) })
	}
}

func swapAuthorities(t *testing.T, version uint16) {
	before, after := newAuthority(t), newAuthority(t)
	path := filepath.Join(t.TempDir(), "ca.pem")
	write(t, path, pemOf(before))
	server := before.config("127.0.0.1")
	server.ClientAuth, server.MaxVersion = tls.RequireAndVerifyClientCert, version
	client := func(of *authority) *tls.Config {
		c := of.config("client")
		c.RootCAs, c.ServerName, c.ClientSessionCache = before.pool, "127.0.0.1", tls.NewLRUClientSessionCache(4)
		return c
	}
	old, young := client(before), client(after)
	w := newWay(t, road{listen: "tls://127.0.0.1:0", clientTLS: old, options: Options{ServerTLS: server, ServerFiles: TLSFiles{Authorities: path}}})
	go echo(w.upstream)
	stays := w.dial()
	still := func() {
		t.Helper()
		send(t, stays, "still here")
		receive(t, stays, "still here")
	}
	refused := func(who string, config *tls.Config) {
		t.Helper()
		if err := echoAs(w, config, "hello"); err == nil {
			t.Errorf("%s is served", who)
		}
	}
	still()
	ofOld := startLoad(t, w, old)
	ofOld.more(t, 4)
	refused("a client of the next authority", young)

	write(t, path, pemOf(before, after))
	reload(t, w.relay.serverTLS)
	ofYoung := startLoad(t, w, young)
	ofOld.more(t, 4)
	ofYoung.more(t, 4)
	still()

	ofOld.stop()
	write(t, path, pemOf(after))
	reload(t, w.relay.serverTLS)
	refused("a client of the last authority", old)
	ofYoung.more(t, 4)
	ofYoung.stop()
	still()
}

// A session is resumed, unless the authorities have changed since.
func TestSessionTickets(t *testing.T) {
	ca := newAuthority(t)
	path := filepath.Join(t.TempDir(), "ca.pem")
	write(t, path, pemOf(ca))
	for _, files := range []TLSFiles{{}, {Authorities: path}} {
		server, config := ca.config("127.0.0.1"), ca.config("client")
		if files.Authorities != "" {
			server.ClientAuth = tls.RequireAndVerifyClientCert
		}
		config.RootCAs, config.ServerName, config.ClientSessionCache = ca.pool, "127.0.0.1", tls.NewLRUClientSessionCache(1)
		w := newWay(t, road{listen: "tls://127.0.0.1:0", clientTLS: config, options: Options{ServerTLS: server, ServerFiles: files}})
		go echo(w.upstream)
		for i := range 3 {
			changed := i == 2 && files.Authorities != ""
			if changed {
				write(t, path, append(pemOf(ca), '\n'))
				reload(t, w.relay.serverTLS)
			}
			c, err := tls.Dial("tcp", w.listener.Addr().String(), config)
			if err != nil {
				t.Fatal(err)
			}
			send(t, c, "hello")
			receive(t, c, "hello")
			if resumed := c.ConnectionState().DidResume; resumed != (i > 0 && !changed) {
				t.Errorf("connection %d: resumed %v", i, resumed)
			}
			c.Close()
		}
	}
}

// Sessions with upstreams are resumed, also with two that have the same host.
func TestSessionsOfUpstreams(t *testing.T) {
	noLeak(t)
	ca := newAuthority(t)
	resumed := make(chan bool, 1)
	serve := func() string {
		l, err := tls.Listen("tcp", "127.0.0.1:0", ca.config("127.0.0.1"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = io.WriteString(c, "hello")
				resumed <- c.(*tls.Conn).ConnectionState().DidResume
				c.Close()
			}
		}()
		return "tls://" + l.Addr().String()
	}
	w := &way{t: t}
	w.start(road{listen: "tcp://127.0.0.1:0", options: Options{To: []string{serve(), serve()}, ClientTLS: &tls.Config{RootCAs: ca.pool}}})
	for i := range 4 {
		c := w.dial()
		if got, err := io.ReadAll(c); string(got) != "hello" || err != nil {
			t.Fatalf("connection %d: %q, %v", i, got, err)
		}
		c.Close()
		if got := <-resumed; got != (i >= 2) {
			t.Errorf("connection %d: resumed %v", i, got)
		}
	}
}

// An upstream whose certificate comes from a new authority is taken once the
// file has that.
func TestUpstreamAuthoritySwap(t *testing.T) {
	before, after := newAuthority(t), newAuthority(t)
	path := filepath.Join(t.TempDir(), "ca.pem")
	write(t, path, pemOf(before))
	w := newWay(t, road{listen: "tcp://127.0.0.1:0", upstream: "tls", upstreamTLS: before.config("127.0.0.1"), options: Options{ClientFiles: TLSFiles{Authorities: path}}})
	client, upstream := w.connect()
	send(t, client, "hello")
	receive(t, upstream, "hello")
	w.road.upstreamTLS = after.config("127.0.0.1")
	refusing := make(chan struct{})
	go func() {
		defer close(refusing)
		if c, err := w.upstream.Accept(); err == nil {
			_ = tls.Server(c, w.road.upstreamTLS).Handshake()
			c.Close()
		}
	}()
	w.expectRefused([]byte("a secret"))
	<-refusing
	w.closed(ReasonDial, 1)
	write(t, path, pemOf(before, after))
	reload(t, w.relay.clientTLS)
	again, upstreamAgain := w.connect()
	send(t, again, "hello again")
	receive(t, upstreamAgain, "hello again")
	send(t, client, "still here")
	receive(t, upstream, "still here")
}

func TestAuthoritiesNeedVerification(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ca.pem")
	write(t, path, pemOf(newAuthority(t)))
	for name, c := range map[string]*tls.Config{"no ServerTLS": nil, "nobody is asked": {}} {
		r, err := newReloadedTLS("server", c, TLSFiles{Authorities: path})
		if err != nil || r.config.Load().ClientAuth != tls.RequireAndVerifyClientCert {
			t.Errorf("%s: clients need no certificate, %v", name, err)
		}
	}
	for name, c := range map[string]*tls.Config{
		"nothing is checked": {ClientAuth: tls.RequireAnyClientCert},
		"others decide":      {ClientAuth: tls.RequireAndVerifyClientCert, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return nil, nil }},
	} {
		if _, err := New(Options{To: []string{"tcp://a:1"}, ServerTLS: c, ServerFiles: TLSFiles{Authorities: path}}); err == nil || !strings.Contains(err.Error(), "ServerFiles.Authorities needs") {
			t.Errorf("%s: New = %v", name, err)
		}
	}
}
