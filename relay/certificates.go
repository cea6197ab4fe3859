package relay

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// CertificateFiles are a certificate's two files, in PEM; Cert begins with the
// leaf and has the intermediates behind it.
type CertificateFiles struct{ Cert, Key string }

// Certificates are read from files, and again when these change. Handshakes
// under way and connections are not touched by that. Put GetCertificate into
// the tls.Config of a listener, or GetClientCertificate into that of upstreams.
// Safe for concurrent use.
type Certificates struct {
	files []CertificateFiles
	now   atomic.Pointer[[]tls.Certificate]

	mu  sync.Mutex
	raw []byte // guarded by mu: what the files held
}

// LoadCertificates reads certificates. A client gets the first one that suits
// it by name, and the very first if none does.
func LoadCertificates(files ...CertificateFiles) (*Certificates, error) {
	if len(files) == 0 {
		return nil, errors.New("no certificate files")
	}
	c := &Certificates{files: files}
	_, err := c.Reload()
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Reload reads the files and reports whether they have changed. If one cannot
// be used all that were there before stay.
func (c *Certificates) Reload() (changed bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var raw []byte
	var list []tls.Certificate
	for _, f := range c.files {
		cert, err := os.ReadFile(f.Cert)
		if err != nil {
			return false, fmt.Errorf("read certificate: %w", err)
		}
		key, err := os.ReadFile(f.Key)
		if err != nil {
			return false, fmt.Errorf("read key: %w", err)
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return false, fmt.Errorf("certificate %s with key %s: %w", f.Cert, f.Key, err)
		}
		list = append(list, pair)
		raw = append(append(raw, cert...), key...)
	}
	if bytes.Equal(raw, c.raw) {
		return false, nil
	}
	c.raw = raw
	c.now.Store(&list)
	return true, nil
}

// Watch calls Reload every so often and whenever again gets a value, until ctx
// ends, and logs what that came to. A log that hangs holds up none of it, and is
// given a second at the end.
func (c *Certificates) Watch(ctx context.Context, every time.Duration, again <-chan os.Signal, log *slog.Logger) {
	reloading{c.Reload, func(log *slog.Logger, changed bool, err error) {
		if err != nil {
			log.Error("certificates are not renewed: the files cannot be used", slog.Any("error", err))
			return
		}
		log.Info("certificates read", slog.Bool("changed", changed), slog.Time("not_after", c.notAfter()))
	}}.watch(ctx, every, again, log)
}

// A reloading is files that are read again.
type reloading struct {
	reload func() (changed bool, err error)
	say    func(log *slog.Logger, changed bool, err error)
}

// watch says what was asked for, what has changed, and an error once.
func (r reloading) watch(ctx context.Context, every time.Duration, again <-chan os.Signal, log *slog.Logger) {
	q := newRecords(log.Handler())
	defer q.finish(drainGrace)
	log = slog.New(q)
	tick := time.NewTicker(every)
	defer tick.Stop()
	failed := ""
	for {
		asked := false
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-again:
			asked = true
		}
		changed, err := r.reload()
		said := ""
		if err != nil {
			said = err.Error()
		}
		if asked || changed || err != nil && said != failed {
			r.say(log, changed, err)
		}
		failed = said
	}
}

// notAfter is when the first certificate to expire does.
func (c *Certificates) notAfter() (first time.Time) {
	for _, cert := range *c.now.Load() {
		if leaf := leafOf(cert); leaf != nil && (first.IsZero() || leaf.NotAfter.Before(first)) {
			first = leaf.NotAfter
		}
	}
	return first
}

func leafOf(cert tls.Certificate) *x509.Certificate {
	if cert.Leaf != nil {
		return cert.Leaf
	}
	leaf, err := x509.ParseCertificate(cert.Certificate[0])
	if err != nil {
		return nil
	}
	return leaf
}

// GetCertificate is for tls.Config.
func (c *Certificates) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	list := *c.now.Load()
	for i := range list {
		if hello.SupportsCertificate(&list[i]) == nil {
			return &list[i], nil
		}
	}
	return &list[0], nil
}

// GetClientCertificate is for tls.Config.
func (c *Certificates) GetClientCertificate(req *tls.CertificateRequestInfo) (*tls.Certificate, error) {
	list := *c.now.Load()
	for i := range list {
		if req.SupportsCertificate(&list[i]) == nil {
			return &list[i], nil
		}
	}
	return new(tls.Certificate), nil // none; the server decides
}
