package relay

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
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
	if err := r.certify(); err != nil {
		return nil, err
	}
	var err error
	r.upstream, err = startChild(job{Upstream: true, Cert: r.cert, Key: r.key})
	return r, err
}

// certify makes a certificate that is its own authority.
func (r *rig) certify() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "relay.test"},
		DNSNames:     []string{"relay.test"},
		NotBefore:    time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certPEM)
	r.client = &tls.Config{RootCAs: roots, ServerName: "relay.test", MinVersion: tls.VersionTLS13}
	return errors.Join(os.WriteFile(r.cert, certPEM, 0o600), os.WriteFile(r.key, keyPEM, 0o600),
		os.WriteFile(r.both, append(certPEM, keyPEM...), 0o600))
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

// dial connects, and with TLS shakes hands. The deadline is that of everything
// to come.
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
