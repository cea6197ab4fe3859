package relay

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// TLSFiles are PEM files that New reads. A Relay reads them again every ten seconds, and in
// [Relay.Reload]. A change applies to the handshakes that follow; connections go on. A
// session that former authorities vouched for is not resumed. If a file cannot be used,
// all that was read before stays in force.
type TLSFiles struct {
	// Certificates are shown to the peer: the first that suits it, otherwise the first.
	Certificates []KeyPair
	// Authorities is a file of certificates that vouch for the peer. Clients then have
	// to show a certificate.
	Authorities string
}

// KeyPair is a certificate's two files. Cert begins with the leaf, and the
// intermediates follow.
type KeyPair struct{ Cert, Key string }

func (f TLSFiles) none() bool { return len(f.Certificates) == 0 && f.Authorities == "" }

// reloadEvery is how often TLSFiles are read.
const reloadEvery = 10 * time.Second

// reloadedTLS is a configuration with what its files hold. It is safe for concurrent use.
type reloadedTLS struct {
	name   string // for Log: "server" or "client"
	base   *tls.Config
	files  TLSFiles
	config atomic.Pointer[tls.Config] // replaced, never changed

	mu       sync.Mutex
	contents []byte // guarded by mu: of the files
	failed   string // guarded by mu: the error of the latest reload
}

func newReloadedTLS(name string, base *tls.Config, files TLSFiles) (*reloadedTLS, error) {
	if base == nil {
		base = new(tls.Config)
	}
	base = base.Clone()
	base.MinVersion = max(base.MinVersion, tls.VersionTLS12)
	if files.Authorities != "" && base.ClientAuth == tls.NoClientCert {
		base.ClientAuth = tls.RequireAndVerifyClientCert
	}
	r := &reloadedTLS{name: name, base: base, files: files}
	_, err := r.reload()
	return r, err
}

const maxSessions = 1 << 10 // with upstreams that can be resumed; each has one

// reload reads the files and reports whether they have changed.
func (r *reloadedTLS) reload() (changed bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	config, contents := r.base.Clone(), []byte{}
	read := func(path string) []byte {
		text, readErr := os.ReadFile(path)
		err = errors.Join(err, readErr)
		contents = append(contents, text...)
		return text
	}
	for _, f := range r.files.Certificates {
		cert, key := read(f.Cert), read(f.Key)
		if err != nil {
			return false, err
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return false, fmt.Errorf("certificate %s with key %s: %w", f.Cert, f.Key, err)
		}
		config.Certificates = append(config.Certificates, pair)
	}
	if path := r.files.Authorities; path != "" {
		text := read(path)
		if err != nil {
			return false, err
		}
		pool, err := parseAuthorities(text)
		if err != nil {
			return false, fmt.Errorf("%s %w", path, err)
		}
		config.ClientCAs, config.RootCAs, config.ClientSessionCache = pool, pool, nil
	}
	if r.config.Load() != nil && bytes.Equal(contents, r.contents) {
		return false, nil
	}
	if config.ClientSessionCache == nil {
		config.ClientSessionCache = tls.NewLRUClientSessionCache(maxSessions)
	}
	r.contents = contents
	r.config.Store(config)
	return true, nil
}

// parseAuthorities reads all certificates, or none: half a file would lock peers out.
func parseAuthorities(text []byte) (*x509.CertPool, error) {
	pool, n := x509.NewCertPool(), 0
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("has a PEM block of type %q among its certificates", block.Type)
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("has a malformed certificate: %w", err)
		}
		pool.AddCert(cert)
		n++
	}
	switch {
	case bytes.Contains(text, []byte("-----BEGIN")):
		return nil, fmt.Errorf("ends within a certificate, after %d whole ones", n)
	case n == 0:
		return nil, errors.New("has no certificate in PEM")
	}
	return pool, nil
}

// Reload reads the files of Options.ServerFiles and Options.ClientFiles now, and logs
// the result.
func (r *Relay) Reload() {
	if r.options.ServerFiles.none() && r.options.ClientFiles.none() {
		r.options.Log.Info("there are no certificates or authorities to reload")
	}
	r.reloadTLS(true)
}

// reloadTLS logs changes, each error once, and if asked every result.
func (r *Relay) reloadTLS(asked bool) {
	for _, t := range []*reloadedTLS{r.serverTLS, r.clientTLS} {
		if t.files.none() {
			continue
		}
		changed, err := t.reload()
		text := fmt.Sprint(err)
		t.mu.Lock()
		repeated := text == t.failed
		t.failed = text
		t.mu.Unlock()
		switch {
		case err != nil && (asked || !repeated):
			r.options.Log.Error("TLS files are not reloaded: one cannot be used", slog.String("of", t.name), slog.Any("error", err))
		case err == nil && (asked || changed):
			r.options.Log.Info("TLS files read", slog.Bool("changed", changed), slog.String("of", t.name), slog.Time("not_after", t.notAfter()))
		}
	}
}

// notAfter is when the first certificate expires; zero without one.
func (r *reloadedTLS) notAfter() (first time.Time) {
	for _, c := range r.config.Load().Certificates {
		if c.Leaf != nil && (first.IsZero() || c.Leaf.NotAfter.Before(first)) {
			first = c.Leaf.NotAfter
		}
	}
	return first
}
