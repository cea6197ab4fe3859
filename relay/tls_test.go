package relay

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/testkit"
)

// An authority signs certificates for tests.
type authority struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
	next int64
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{t: t, pool: x509.NewCertPool()}
	a.key, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	a.cert, _ = x509.ParseCertificate(der)
	a.pool.AddCert(a.cert)
	return a
}

// pair returns a certificate and its key in PEM.
func (a *authority) pair(name string) (cert, key []byte) {
	a.t.Helper()
	a.next++
	k, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(100 + a.next), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if ip := net.ParseIP(name); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{name}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &k.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		a.t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
}

func (a *authority) config(name string) *tls.Config {
	a.t.Helper()
	cert, err := tls.X509KeyPair(a.pair(name))
	if err != nil {
		a.t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{cert}}
}

// files writes a pair into dir and returns where.
func (a *authority) files(dir, name string) KeyPair {
	a.t.Helper()
	f := KeyPair{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
	cert, key := a.pair(name)
	for path, text := range map[string][]byte{f.Cert: cert, f.Key: key} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	return f
}

// tlsRoads runs a test with TLS on either side and on both.
func tlsRoads(t *testing.T, test func(t *testing.T, w *way)) {
	t.Helper()
	a := newAuthority(t)
	in, out := "tls://127.0.0.1:0", "tls"
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		server := a.config("127.0.0.1")
		server.MinVersion, server.MaxVersion = version, version
		options := Options{ServerTLS: server, ClientTLS: &tls.Config{RootCAs: a.pool}}
		for _, rd := range []road{
			{name: "in", listen: in, options: options},
			{name: "out", listen: "tcp://127.0.0.1:0", upstream: out, options: options},
			{name: "in and out", listen: in, upstream: out, options: options},
		} {
			rd.clientTLS, rd.upstreamTLS = &tls.Config{RootCAs: a.pool}, server
			t.Run(tls.VersionName(version)+" "+rd.name, func(t *testing.T) {
				t.Parallel()
				test(t, oneOfWays(t, rd))
			})
		}
	}
}

func TestTLSRefused(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	mutual := a.config("127.0.0.1")
	mutual.ClientAuth, mutual.ClientCAs = tls.RequireAndVerifyClientCert, a.pool
	stranger := other.config("stranger")
	stranger.RootCAs = a.pool
	for _, c := range []struct {
		name   string
		server *tls.Config
		client *tls.Config
	}{
		{"TLS 1.1", a.config("127.0.0.1"), &tls.Config{RootCAs: a.pool, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}},
		{"client does not trust", a.config("127.0.0.1"), &tls.Config{RootCAs: other.pool}},
		{"no client certificate", mutual, &tls.Config{RootCAs: a.pool}},
		{"client certificate of another authority", mutual, stranger},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWay(t, road{listen: "tls://127.0.0.1:0", options: Options{ServerTLS: c.server}})
			d := tls.Dialer{Config: c.client}
			client, err := d.Dial("tcp", w.listener.Addr().String())
			if err == nil { // TLS 1.3 learns of it with the first read
				_ = client.SetDeadline(time.Now().Add(patience))
				_, err = client.Read(make([]byte, 1))
				client.Close()
			}
			if err == nil || os.IsTimeout(err) {
				t.Errorf("the client has %v", err)
			}
			w.closed(ReasonHandshake, 1)
		})
	}
}

func TestMutualTLS(t *testing.T) {
	a := newAuthority(t)
	server := a.config("127.0.0.1")
	server.ClientAuth, server.ClientCAs = tls.RequireAndVerifyClientCert, a.pool
	out := a.config("relay")
	out.RootCAs = a.pool
	var log testkit.Buffer
	w := newWay(t, road{
		listen: "tls://127.0.0.1:0", upstream: "tls", upstreamTLS: server, clientTLS: out,
		options: Options{ServerTLS: server, ClientTLS: out, Access: slog.New(slog.NewJSONHandler(&log, nil))},
	})
	client, upstream := w.connect()
	send(t, client, "both have shown who they are")
	receive(t, upstream, "both have shown who they are")
	client.Close()
	upstream.Close()
	eventually(t, func() bool { return strings.Contains(log.String(), `"client_cert":"CN=relay"`) }, log.String)
}

// An upstream that is not who it should be gets no byte.
func TestUpstreamIsVerified(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	for name, config := range map[string]*tls.Config{
		"another authority": other.config("127.0.0.1"),
		"another name":      a.config("logs.example"),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWay(t, road{listen: "tcp://127.0.0.1:0", upstream: "tls", upstreamTLS: config, options: Options{ClientTLS: &tls.Config{RootCAs: a.pool}}})
			go func() {
				c, err := w.upstream.Accept()
				if err == nil {
					if n, err := tls.Server(c, config).Read(make([]byte, 1)); n > 0 || err == nil {
						t.Error("the upstream got a byte")
					}
					c.Close()
				}
			}()
			w.expectRefused([]byte("a secret"))
			w.closed(ReasonDial, 1)
		})
	}
}

// What is no TLS at all, and a client that does not go on, cost a connection
// and nothing else.
func TestGarbageAndSlowHandshake(t *testing.T) {
	a := newAuthority(t)
	start := func(limit time.Duration) *way {
		return newWay(t, road{listen: "tls://127.0.0.1:0", clientTLS: &tls.Config{RootCAs: a.pool}, options: Options{ServerTLS: a.config("127.0.0.1"), HandshakeTimeout: limit}})
	}
	begin := func(w *way, text string) net.Conn {
		c, err := net.Dial("tcp", w.listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		_, _ = io.WriteString(c, text) // fails if the time is up already
		return c
	}
	w := start(patience)
	bad := []string{"GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\xff\xff garbage", strings.Repeat("\x00", 1000), "\x16\x03\x01\x00\x05hello"}
	for _, text := range bad {
		begin(w, text)
	}
	slow := []string{"", "\x16"}
	var waiting []net.Conn
	for _, text := range slow {
		waiting = append(waiting, begin(w, text))
	}
	client, upstream := w.connect() // is not held up by them
	send(t, client, "hello")
	receive(t, upstream, "hello")
	w.closed(ReasonHandshake, uint64(len(bad)))
	for _, c := range waiting {
		c.Close()
	}
	w.closed(ReasonHandshake, uint64(len(bad)+len(slow)))

	w = start(50 * time.Millisecond)
	for _, text := range slow {
		begin(w, text)
	}
	w.closed(ReasonHandshake, uint64(len(slow)))
}

// A TestTruncatedTLS that ends without TLS saying so may have been cut: it is passed on as
// a reset, unless it ends between records, as many peers end it.
func TestTruncatedTLS(t *testing.T) {
	a := newAuthority(t)
	w := newWay(t, road{listen: "tls://127.0.0.1:0", clientTLS: &tls.Config{RootCAs: a.pool}, options: Options{ServerTLS: a.config("127.0.0.1")}})
	client, upstream := w.connect()
	send(t, client, "whole")
	receive(t, upstream, "whole")
	socket := client.(tlsDuplex).NetConn()
	send(t, socket, "\x17\x03\x03\x01\x00half a record")
	if err := socket.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	expectReset(t, upstream)
	w.closed(ReasonClientReset, 1)
}

func TestRoutes(t *testing.T) {
	noLeak(t)
	a := newAuthority(t)
	answers := func(text string) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
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
				_, _ = io.WriteString(c, text)
				c.Close()
			}
		}()
		return "tcp://" + l.Addr().String()
	}
	server := &tls.Config{}
	for _, name := range []string{"logs.example.com", "any.example.org", "127.0.0.1"} {
		server.Certificates = append(server.Certificates, a.config(name).Certificates...)
	}
	w := &way{t: t}
	w.start(road{listen: "tls://127.0.0.1:0", options: Options{
		ServerTLS: server,
		To:        []string{answers("others")},
		Routes: map[string][]string{
			"Logs.example.com": {answers("logs")},
			"*.example.org":    {answers("org")},
		},
	}})
	for name, want := range map[string]string{"logs.example.com": "logs", "LOGS.example.com": "logs", "any.example.org": "org", "a.any.example.org": "others", "example.org": "others", "": "others"} {
		c, err := tls.Dial("tcp", w.listener.Addr().String(), &tls.Config{ServerName: name, InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(c); string(got) != want || err != nil {
			t.Errorf("%q goes to %q, %v, want %q", name, got, err, want)
		}
		c.Close()
	}
}

// Certificates are swapped while connections come and go: each one gets the old
// or the new, and none breaks.
func TestCertificateSwapUnderLoad(t *testing.T) {
	a, dir := newAuthority(t), t.TempDir()
	files := a.files(dir, "127.0.0.1")
	w := newWay(t, road{listen: "tls://127.0.0.1:0", clientTLS: &tls.Config{RootCAs: a.pool}, options: Options{ServerFiles: TLSFiles{Certificates: []KeyPair{files}}}})
	go echo(w.upstream)
	open, text := w.dial(), strings.Repeat("over and over ", 1000)
	var seen sync.Map
	var load sync.WaitGroup
	var done atomic.Bool
	for range 4 {
		load.Go(func() {
			for !done.Load() {
				serial, err := echoOnce(w, text)
				if err != nil {
					t.Error(err)
					return
				}
				seen.Store(serial, true)
			}
		})
	}
	for range 5 {
		a.files(dir, "127.0.0.1")
		reload(t, w.relay.serverTLS)
		before := w.relay.Stats().Accepted
		eventually(t, func() bool { return t.Failed() || w.relay.Stats().Accepted > before+8 }, func() string { return "no load" })
		send(t, open, text)
		receive(t, open, text)
	}
	done.Store(true)
	load.Wait()
	n := 0
	seen.Range(func(any, any) bool { n++; return true })
	if n < 5 {
		t.Errorf("clients saw %d certificates of 5", n)
	}
}

// echo answers everything on all connections of l.
func echo(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			// Not by splice: the standard library keeps its pipes for a while.
			_, _ = io.Copy(struct{ io.Writer }{c}, struct{ io.Reader }{c})
			c.Close()
		}()
	}
}

// echoOnce sends text through a relay with TLS and returns the serial number of
// the certificate.
func echoOnce(w *way, text string) (serial string, err error) {
	c, err := tls.Dial("tcp", w.listener.Addr().String(), w.road.clientTLS)
	if err != nil {
		return "", err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	go func() {
		_, _ = io.WriteString(c, text)
		_ = c.CloseWrite()
	}()
	got, err := io.ReadAll(c)
	if err != nil || string(got) != text {
		return "", fmt.Errorf("%d bytes came back, %w", len(got), err)
	}
	return c.ConnectionState().PeerCertificates[0].SerialNumber.String(), nil
}
