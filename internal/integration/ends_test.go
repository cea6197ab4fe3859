package integration

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/line"
	"github.com/rollway/rollway/remote"
	"github.com/rollway/rollway/rollwaytest"
	"github.com/rollway/rollway/slab"
)

// An end is the last writer of a road: the one before a disk or a peer.
type end struct {
	line.Writer
	ledger    func() rollwaytest.Ledger
	delivered func() []byte // all bytes that came out, in order
	midway    bool          // delivered may see the end amid a write, as rollwaytest.Instance.Midway
	reach     func()        // waits until the peer has what was written; nil if there is no peer
	away      func(bool)    // the peer refuses everything, or takes it again; nil if it always takes
}

// direct and uncached are the modes of a file.File where the system knows them.
var direct, uncached = func() (d, u file.Mode) {
	switch runtime.GOOS {
	case "linux":
		return file.Direct, file.Uncached
	case "darwin":
		return file.Direct, file.Buffered
	}
	return file.Buffered, file.Buffered
}()

// fileEnd is a file.File in a folder of its own.
func fileEnd(o file.Options) func(testing.TB) *end {
	return func(t testing.TB) *end {
		t.Helper()
		path := filepath.Join(t.TempDir(), "log")
		o := o
		o.CloseTimeout = time.Minute
		o.OnError = func(err error) {
			if !strings.Contains(err.Error(), "is written Buffered, not ") { // as the file system demands
				t.Errorf("OnError(%v)", err)
			}
		}
		f, err := file.Open(path, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return &end{
			Writer: f,
			ledger: func() rollwaytest.Ledger {
				s := f.Stats()
				return rollwaytest.Ledger{Ledger: s.Ledger}
			},
			delivered: func() []byte { return readSeries(t, path) },
			midway:    true, // a line that is in two pages comes one page after the other
		}
	}
}

// readSeries returns the bytes of the rotated files, also packed ones, and of
// the current file. It may be called while they are rotated and packed.
func readSeries(t testing.TB, path string) []byte {
	t.Helper()
	list := func() []string {
		names, err := filepath.Glob(path + "-*")
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(names)
		return names
	}
	for range 30_000 {
		before := list()
		var all []byte
		whole := true
		for _, name := range append(slices.Clone(before), path) {
			plain := strings.TrimSuffix(name, ".gz")
			if strings.HasSuffix(name, ".part") || plain != name && slices.Contains(before, plain) {
				continue // being packed
			}
			b, err := os.ReadFile(name)
			if os.IsNotExist(err) {
				whole = false
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if plain != name {
				b = unpack(t, b)
			}
			all = append(all, b...)
		}
		if whole && slices.Equal(before, list()) {
			return all
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal("the series does not come to rest")
	return nil
}

func unpack(t testing.TB, b []byte) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if b, err = io.ReadAll(z); err != nil {
		t.Fatal(err)
	}
	return b
}

// slabEnd is a slab.Writer over memory.
func slabEnd(t testing.TB) *end {
	t.Helper()
	dst := new(rollwaytest.Destination)
	w, err := slab.New(dst, slab.Options{Full: slab.Block, SlabSize: 2048, SlabCount: 4, FlushInterval: time.Millisecond, CloseTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return &end{
		Writer: w,
		ledger: func() rollwaytest.Ledger { return slabLedger(w) },
		delivered: func() []byte {
			w.Flush(context.Background()) // os.ErrClosed after Close, when all is there
			return dst.Bytes()
		},
	}
}

// remoteEnd is a remote.Writer to url. taken returns what the peer has, and lines
// how many lines that is.
func remoteEnd(t testing.TB, url string, o remote.Options, taken func() []byte, lines func() uint64) *end {
	t.Helper()
	o.CloseTimeout = time.Minute
	w, err := remote.Open(url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	// Over a stream Written is with the system; the peer may be behind.
	reach := func() {
		written := w.Stats().Written
		for until := time.Now().Add(patience); lines() < written; time.Sleep(time.Millisecond) {
			if time.Now().After(until) {
				t.Fatal("the peer does not read")
			}
		}
	}
	return &end{
		Writer: w,
		ledger: func() rollwaytest.Ledger {
			s := w.Stats()
			return rollwaytest.Ledger{Ledger: s.Ledger}
		},
		delivered: func() []byte {
			reach()
			return taken()
		},
		reach: reach,
	}
}

// patience bounds what has to end by itself, on any machine.
const patience = 60 * time.Second

var newline = []byte{'\n'}

// A peer keeps what it takes.
type peer struct {
	mu    sync.Mutex
	away  bool
	conns []*bytes.Buffer // in the order in which they were accepted
	lines uint64          // in all of them
}

func (p *peer) count() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lines
}

func (p *peer) bytes() (all []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.conns {
		all = append(all, b.Bytes()...)
	}
	return all
}

func (p *peer) setAway(away bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.away = away
}

func (p *peer) newConn() io.Writer {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := new(bytes.Buffer)
	p.conns = append(p.conns, b)
	return writeFunc(func(data []byte) (int, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.lines += uint64(bytes.Count(data, newline))
		return b.Write(data)
	})
}

type writeFunc func([]byte) (int, error)

func (f writeFunc) Write(p []byte) (int, error) { return f(p) }

// httpEnd posts to a real HTTP server.
func httpEnd(o remote.Options) func(testing.TB) *end {
	return func(t testing.TB) *end {
		t.Helper()
		p := new(peer)
		keep := p.newConn()
		server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			data, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			if r.Header.Get("Content-Encoding") == "gzip" {
				data = unpack(t, data)
			}
			p.mu.Lock()
			away := p.away
			p.mu.Unlock()
			if away {
				rw.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			keep.Write(data)
		}))
		t.Cleanup(server.Close)
		o := o
		if o.Spill.Dir != "" {
			o.Spill.Dir = t.TempDir()
		}
		e := remoteEnd(t, server.URL+"/", o, p.bytes, p.count)
		if o.Spill.Dir != "" {
			e.away = p.setAway
			delivered := e.delivered
			e.delivered = func() []byte {
				p.mu.Lock()
				away := p.away
				p.mu.Unlock()
				if !away { // what was written is on its way, or on disk
					ctx, cancel := context.WithTimeout(context.Background(), patience)
					defer cancel()
					e.Writer.Flush(ctx) // an error shows in what is there
				}
				return delivered()
			}
		}
		return e
	}
}

// listen returns a peer that keeps what comes over each connection to l, and
// closes l at the end of the test.
func listen(t testing.TB, l net.Listener) *peer {
	p := new(peer)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			keep := p.newConn()
			serving.Go(func() {
				defer c.Close()
				io.Copy(keep, c)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		serving.Wait() // the Writer is closed by now
	})
	return p
}

// streamEnd sends over tcp, tls or unix to a real listener.
func streamEnd(scheme string) func(testing.TB) *end {
	return func(t testing.TB) *end {
		t.Helper()
		network, addr := "tcp", "127.0.0.1:0"
		if scheme == "unix" {
			network, addr = "unix", socketPath(t)
		}
		l, err := net.Listen(network, addr)
		if err != nil {
			t.Fatal(err)
		}
		var o remote.Options
		if scheme == "tls" {
			serverConfig, roots := certificate(t)
			l = tls.NewListener(l, serverConfig)
			o.TLSConfig = &tls.Config{RootCAs: roots}
		}
		p := listen(t, l)
		return remoteEnd(t, scheme+"://"+l.Addr().String(), o, p.bytes, p.count)
	}
}

// socketPath returns a path that is short enough for a socket on any system.
func socketPath(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "rw")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

// gramEnd sends datagrams over udp or unixgram. Each Write waits until the peer
// has read what was sent: the test is about the writers, not about what UDP
// loses.
func gramEnd(scheme string) func(testing.TB) *end {
	return func(t testing.TB) *end {
		t.Helper()
		addr := "127.0.0.1:0"
		if scheme == "unixgram" {
			addr = socketPath(t)
		}
		c, err := net.ListenPacket(scheme, addr)
		if err != nil {
			t.Fatal(err)
		}
		p := new(peer)
		keep := p.newConn()
		var reading sync.WaitGroup
		reading.Go(func() {
			buf := make([]byte, 1<<17)
			for {
				n, _, err := c.ReadFrom(buf)
				if err != nil {
					return
				}
				keep.Write(buf[:n])
			}
		})
		t.Cleanup(func() {
			c.Close()
			reading.Wait()
		})
		e := remoteEnd(t, scheme+"://"+c.LocalAddr().String(), remote.Options{}, p.bytes, p.count)
		e.Writer = &acknowledged{Writer: e.Writer, wait: e.reach}
		return e
	}
}

type acknowledged struct {
	line.Writer
	wait func()
}

func (a *acknowledged) Write(p []byte) (int, error) {
	n, err := a.Writer.Write(p)
	a.wait()
	return n, err
}

// certificate returns a server's configuration for 127.0.0.1 and who vouches
// for it: itself.
func certificate(t testing.TB) (*tls.Config, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "combine"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, roots
}
