package remote_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

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
	l, err := listenAt(network, addr)
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

// accepted is how many connections there were.
func (p *tcpPeer) accepted() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return uint64(len(p.conns))
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
