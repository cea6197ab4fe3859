package relay

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/rollway/rollway/bench/internal/child"
)

// A rig is what all measurements share: certificates, the upstream, and
// addresses for programs that cannot tell which port they got. It is not safe
// for concurrent use.
type rig struct {
	dir             string
	cert, key, both string // PEM files
	client          *tls.Config
	upstream        *process
	settle          time.Duration // for which connections have been idle when memory is looked at

	ip   string // a loopback address that only this process uses
	port int
	last string // address that address returned last
}

// opTimeout bounds everything that happens on one connection.
const opTimeout = 2 * time.Minute

// newRig makes certificates in dir and starts the upstream.
func newRig(dir string) (*rig, error) {
	pid := os.Getpid()
	r := &rig{dir: dir, settle: 300 * time.Millisecond, port: 7000, ip: fmt.Sprintf("127.%d.%d.%d", 64+pid>>16&63, pid>>8&255, pid&255)}
	r.cert, r.key, r.both = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "both.pem")
	roots, err := child.Certificate(r.cert, r.key, r.both)
	if err != nil {
		return nil, err
	}
	r.client = &tls.Config{RootCAs: roots, ServerName: child.CertificateName, MinVersion: tls.VersionTLS13}
	r.upstream, err = startChild(job{Upstream: true, Cert: r.cert, Key: r.key})
	return r, err
}

// address returns another unused address.
func (r *rig) address() string {
	r.port++
	r.last = fmt.Sprintf("%s:%d", r.ip, r.port)
	return r.last
}

// config writes a program's configuration and returns its path.
func (r *rig) config(name, text string) (string, error) {
	path := filepath.Join(r.dir, name+".conf")
	return path, os.WriteFile(path, []byte(text), 0o600)
}

// dial connects, with TLS including the handshake. The deadline holds for
// everything on the connection.
func (r *rig) dial(addr string, encrypted bool) (net.Conn, error) {
	c, err := net.DialTimeout("tcp", addr, opTimeout)
	if err != nil {
		return nil, err
	}
	c.SetDeadline(time.Now().Add(opTimeout))
	if !encrypted {
		return c, nil
	}
	t := tls.Client(c, r.client)
	err = t.Handshake()
	if got := tls.CipherSuiteName(t.ConnectionState().CipherSuite); err == nil && got != suite {
		err = fmt.Errorf("it encrypts by %s, all should by %s", got, suite)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("shake hands with %s: %w", addr, err), c.Close())
	}
	return t, nil
}
