package main

import (
	"context"
	"crypto/tls"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/rollway/rollway/relay"
)

// A watched set of certificates or authorities is reloaded when its files change.
type watched interface {
	Watch(ctx context.Context, every time.Duration, again <-chan os.Signal, log *slog.Logger)
}

// readTLS reads certificates and authorities into the options and returns those to
// watch.
func (f *relayFlags) readTLS() (list []watched, err error) {
	if f.options.ServerTLS, err = f.serverTLS(&list); err != nil {
		return nil, err
	}
	f.options.ClientTLS, err = f.clientTLS(&list)
	return list, err
}

func (f *relayFlags) serverTLS(list *[]watched) (*tls.Config, error) {
	needed := false
	for _, url := range f.listen {
		needed = needed || strings.HasPrefix(url, "tls://")
	}
	switch {
	case len(f.certs) != len(f.keys):
		return nil, usagef("each -cert needs its -key: there are %d and %d", len(f.certs), len(f.keys))
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
	*list = append(*list, certs)
	c := &tls.Config{GetCertificate: certs.GetCertificate}
	if f.clientCA != "" {
		c.ClientAuth = tls.RequireAndVerifyClientCert
		f.options.ClientAuthorities, err = readAuthorities(f.clientCA, list)
	}
	return c, err
}

func (f *relayFlags) clientTLS(list *[]watched) (c *tls.Config, err error) {
	if (f.clientCert == "") != (f.clientKey == "") {
		return nil, usagef("-client-cert and -client-key belong together")
	}
	c = &tls.Config{ServerName: f.serverName}
	if f.clientCert != "" {
		certs, err := relay.LoadCertificates(relay.CertificateFiles{Cert: f.clientCert, Key: f.clientKey})
		if err != nil {
			return nil, err
		}
		*list = append(*list, certs)
		c.GetClientCertificate = certs.GetClientCertificate
	}
	if f.ca != "" {
		f.options.UpstreamAuthorities, err = readAuthorities(f.ca, list)
	}
	return c, err
}

// readAuthorities reads a PEM file of authorities.
func readAuthorities(file string, list *[]watched) (*relay.Authorities, error) {
	a, err := relay.LoadAuthorities(file)
	if err != nil {
		return nil, err
	}
	*list = append(*list, a)
	return a, nil
}
