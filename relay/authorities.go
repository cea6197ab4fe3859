package relay

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Authorities are certificates that vouch for others, read from a file, and
// again when it changes. Handshakes after that go by the new ones, a session
// that is resumed too; connections are not touched. Safe for concurrent use.
type Authorities struct {
	file string
	now  atomic.Pointer[x509.CertPool]

	mu    sync.Mutex
	raw   []byte // guarded by mu: what the file held
	count int    // guarded by mu
}

// LoadAuthorities reads the certificates in a PEM file.
func LoadAuthorities(file string) (*Authorities, error) {
	a := &Authorities{file: file}
	if _, err := a.Reload(); err != nil {
		return nil, err
	}
	return a, nil
}

// Reload reads the file and reports whether it has changed. If it cannot be
// used as a whole all that were there before stay.
func (a *Authorities) Reload() (changed bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	raw, err := os.ReadFile(a.file)
	if err != nil {
		return false, fmt.Errorf("read authorities: %w", err)
	}
	if bytes.Equal(raw, a.raw) {
		return false, nil
	}
	pool, n, err := parseAuthorities(raw)
	if err != nil {
		return false, fmt.Errorf("%s %w", a.file, err)
	}
	a.raw, a.count = raw, n
	a.now.Store(pool)
	return true, nil
}

// parseAuthorities takes all certificates or none: half a file would lock
// clients out.
func parseAuthorities(text []byte) (pool *x509.CertPool, n int, err error) {
	pool = x509.NewCertPool()
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return nil, 0, fmt.Errorf("has a PEM block of type %q among its certificates", block.Type)
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, 0, fmt.Errorf("has a certificate that cannot be used: %w", err)
		}
		pool.AddCert(cert)
		n++
	}
	switch {
	case bytes.Contains(text, []byte("-----BEGIN")):
		return nil, 0, fmt.Errorf("ends within a certificate, behind %d whole ones", n)
	case n == 0:
		return nil, 0, fmt.Errorf("has no certificate in PEM")
	}
	return pool, n, nil
}

// Watch calls Reload every so often and whenever again gets a value, until ctx
// ends, and logs what that came to. A log that hangs holds up none of it, and is
// given a second at the end.
func (a *Authorities) Watch(ctx context.Context, every time.Duration, again <-chan os.Signal, log *slog.Logger) {
	reloading{a.Reload, func(log *slog.Logger, changed bool, err error) {
		if err != nil {
			log.Error("authorities are not renewed: the file cannot be used", slog.Any("error", err))
			return
		}
		a.mu.Lock()
		n := a.count
		a.mu.Unlock()
		log.Info("authorities read", slog.Bool("changed", changed), slog.String("file", a.file), slog.Int("certificates", n))
	}}.watch(ctx, every, again, log)
}

// A renewedTLS is a configuration whose authorities are renewed. Safe for
// concurrent use.
type renewedTLS struct {
	base        *tls.Config
	authorities *Authorities // nil: those of base

	mu     sync.Mutex
	pool   *x509.CertPool // guarded by mu: of config
	config *tls.Config    // guarded by mu
}

// now is the configuration for a handshake that begins. As long as the
// authorities stay it is the same one, by whose tickets sessions are resumed.
func (r *renewedTLS) now() *tls.Config {
	if r.authorities == nil {
		return r.base
	}
	pool := r.authorities.now.Load()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pool != pool {
		r.pool, r.config = pool, r.base.Clone()
		r.config.ClientCAs, r.config.RootCAs = pool, pool
		// Sessions with those whom others vouched for are not resumed.
		r.config.ClientSessionCache = tls.NewLRUClientSessionCache(0)
	}
	return r.config
}
