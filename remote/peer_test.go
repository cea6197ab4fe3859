package remote_test

import (
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollway/rollway/remote"
	"github.com/rollway/rollway/rollwaytest"
)

var discardLog = log.New(io.Discard, "", 0)

func open(t testing.TB, url string, o remote.Options) *remote.Writer {
	t.Helper()
	w, err := remote.Open(url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func ledger(w *remote.Writer) rollwaytest.Ledger {
	s := w.Stats()
	return rollwaytest.Ledger{
		Accepted: s.Accepted,
		Written:  s.Written,
		Dropped:  s.Dropped.Total(),
		Pending:  s.Pending,
		Rejected: s.Rejected,
	}
}

// settled wants accepted = written + dropped and nothing pending.
func settled(t testing.TB, w *remote.Writer, accepted, written int) {
	t.Helper()
	ledger(w).CheckSettled(t, accepted, written)
}

func write(t testing.TB, w io.Writer, p string) {
	t.Helper()
	if n, err := w.Write([]byte(p)); n != len(p) || err != nil {
		t.Fatalf("Write of %d bytes = %d, %v, want all and nil", len(p), n, err)
	}
}

// numbered returns lines from to to-1.
func numbered(from, to int) string {
	var b []byte
	for i := from; i < to; i++ {
		b = append(b, `{"msg":"line","attrs":{"seq":`...)
		b = strconv.AppendInt(b, int64(i), 10)
		b = append(b, "}}\n"...)
	}
	return string(b)
}

// wide returns n lines of a thousand bytes and some: more than the buffers of
// a loopback connection hold, if n is 20,000.
func wide(n int) string {
	line := `{"msg":"` + strings.Repeat("x", 1000) + "\"}\n"
	return strings.Repeat(line, n)
}

// A request is what an httpPeer saw.
type request struct {
	header http.Header
	body   string // unpacked
}

// An httpPeer is a real HTTP server that keeps what it answers 2xx to. The
// answers given to next are for the next requests, one each; nil and no answer
// mean 200.
type httpPeer struct {
	*httptest.Server
	mu       sync.Mutex
	next     []http.HandlerFunc
	always   http.HandlerFunc
	requests []request
	taken    bytes.Buffer
}

func newHTTPPeer(t testing.TB) *httpPeer {
	p := new(httpPeer)
	p.Server = httptest.NewUnstartedServer(http.HandlerFunc(p.serve))
	t.Cleanup(p.Server.Close)
	return p
}

func startHTTPPeer(t testing.TB) *httpPeer {
	p := newHTTPPeer(t)
	p.Start()
	return p
}

func (p *httpPeer) serve(rw http.ResponseWriter, r *http.Request) {
	var body io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			http.Error(rw, err.Error(), http.StatusBadRequest)
			return
		}
		body = z
	}
	data, err := io.ReadAll(body)
	if err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	p.requests = append(p.requests, request{r.Header.Clone(), string(data)})
	answer := p.always
	if len(p.next) > 0 {
		answer, p.next = p.next[0], p.next[1:]
	}
	p.mu.Unlock()
	status := &statusRecorder{ResponseWriter: rw, code: http.StatusOK}
	if answer != nil {
		r.Body = io.NopCloser(bytes.NewReader(data))
		answer(status, r)
	}
	if status.code/100 == 2 {
		p.mu.Lock()
		p.taken.Write(data)
		p.mu.Unlock()
	}
}

type statusRecorder struct {
	http.ResponseWriter
	code int
}

func (s *statusRecorder) WriteHeader(code int) {
	s.code = code
	s.ResponseWriter.WriteHeader(code)
}

func (s *statusRecorder) Unwrap() http.ResponseWriter { return s.ResponseWriter }

func (p *httpPeer) answer(next ...http.HandlerFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next = append(p.next, next...)
}

func (p *httpPeer) seen() []request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]request(nil), p.requests...)
}

func (p *httpPeer) bytes() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return bytes.Clone(p.taken.Bytes())
}

func (p *httpPeer) want(t testing.TB, lines string) {
	t.Helper()
	if got := string(p.bytes()); got != lines {
		t.Errorf("the peer took %d bytes %.300q, want %d bytes %.300q", len(got), got, len(lines), lines)
	}
}

func status(code int, body string, header ...string) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			rw.Header().Set(header[i], header[i+1])
		}
		rw.WriteHeader(code)
		io.WriteString(rw, body)
	}
}

// A tcpPeer, which may also be a local socket, reads lines from its connections and keeps the bytes of each
// connection apart, in the order in which they were accepted.
type tcpPeer struct {
	net.Listener
	serve func(c net.Conn, keep io.Writer) // default: read to the end, then close

	mu    sync.Mutex
	conns []net.Conn
	data  []*bytes.Buffer
	wg    sync.WaitGroup
}

func startTCPPeer(t testing.TB, addr string, config *tls.Config, serve func(net.Conn, io.Writer)) *tcpPeer {
	t.Helper()
	network := "tcp"
	if strings.HasPrefix(addr, "/") {
		network = "unix"
	}
	l, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	if config != nil {
		l = tls.NewListener(l, config)
	}
	p := &tcpPeer{Listener: l, serve: serve}
	p.wg.Go(p.run)
	t.Cleanup(p.stop)
	return p
}

func (p *tcpPeer) run() {
	for {
		c, err := p.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		p.conns = append(p.conns, c)
		buf := new(bytes.Buffer)
		p.data = append(p.data, buf)
		p.mu.Unlock()
		p.wg.Go(func() {
			defer c.Close()
			keep := &lockedWriter{mu: &p.mu, buf: buf}
			if p.serve != nil {
				p.serve(c, keep)
				return
			}
			io.Copy(keep, c)
		})
	}
}

type lockedWriter struct {
	mu  *sync.Mutex
	buf *bytes.Buffer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// stop closes the listener and all connections and waits for their goroutines.
func (p *tcpPeer) stop() {
	p.Close()
	p.mu.Lock()
	for _, c := range p.conns {
		c.Close()
	}
	p.mu.Unlock()
	p.wg.Wait()
}

// each returns the bytes of each connection.
func (p *tcpPeer) each() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []string
	for _, b := range p.data {
		all = append(all, b.String())
	}
	return all
}

func (p *tcpPeer) bytes() []byte {
	var all []byte
	for _, s := range p.each() {
		all = append(all, s...)
	}
	return all
}

func (p *tcpPeer) want(t testing.TB, conns ...string) {
	t.Helper()
	got := p.each()
	if fmt.Sprint(got) != fmt.Sprint(conns) {
		t.Errorf("the peer read %.500q, want %.500q", got, conns)
	}
}

// eventually waits until ok, which is never further away than a loopback.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not after 30 s: %s", what)
		}
	}
}

// An authority signs certificates for the tests.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "test authority"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return &authority{cert, key, pool}
}

// server returns a server's configuration with a certificate for 127.0.0.1
// and name.
func (a *authority) server(t testing.TB, name string) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2),
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:     []string{name},
	}
	if name == "127.0.0.1" {
		template.DNSNames, template.IPAddresses = nil, []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
}
