package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strings"

	"github.com/rollway/rollway/relay"
)

// readTLS reads certificates and authorities into the options, and returns the
// certificates that are to be renewed.
func (f *relayFlags) readTLS() (watched []*relay.Certificates, err error) {
	if f.options.ServerTLS, err = f.serverTLS(&watched); err != nil {
		return nil, err
	}
	f.options.ClientTLS, err = f.clientTLS(&watched)
	return watched, err
}

func (f *relayFlags) serverTLS(watched *[]*relay.Certificates) (*tls.Config, error) {
	needed := false
	for _, url := range f.listen {
		needed = needed || strings.HasPrefix(url, "tls://")
	}
	switch {
	case len(f.certs) != len(f.keys):
		return nil, usagef("each -cert needs its -key: %d of the one and %d of the other are given", len(f.certs), len(f.keys))
	case needed && len(f.certs) == 0:
		return nil, usagef("-listen tls://… needs -cert and -key")
	case !needed && (len(f.certs) > 0 || f.clientCA != "" || f.options.Routes != nil):
		return nil, usagef("-cert, -client-ca and -route are for -listen tls://…")
	case !needed:
		return nil, nil
	}
	var files []relay.CertificateFiles
	for i := range f.certs {
		files = append(files, relay.CertificateFiles{Cert: f.certs[i], Key: f.keys[i]})
	}
	certs, err := relay.LoadCertificates(files...)
	if err != nil {
		return nil, err
	}
	*watched = append(*watched, certs)
	c := &tls.Config{GetCertificate: certs.GetCertificate}
	if f.clientCA != "" {
		c.ClientAuth = tls.RequireAndVerifyClientCert
		c.ClientCAs, err = readAuthorities(f.clientCA)
	}
	return c, err
}

func (f *relayFlags) clientTLS(watched *[]*relay.Certificates) (c *tls.Config, err error) {
	if (f.clientCert == "") != (f.clientKey == "") {
		return nil, usagef("-client-cert and -client-key belong together")
	}
	c = &tls.Config{ServerName: f.serverName}
	if f.clientCert != "" {
		certs, err := relay.LoadCertificates(relay.CertificateFiles{Cert: f.clientCert, Key: f.clientKey})
		if err != nil {
			return nil, err
		}
		*watched = append(*watched, certs)
		c.GetClientCertificate = certs.GetClientCertificate
	}
	if f.ca != "" {
		c.RootCAs, err = readAuthorities(f.ca)
	}
	return c, err
}

// readAuthorities reads certificates in PEM.
func readAuthorities(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate in PEM", file)
	}
	return pool, nil
}
