package main

import (
	"crypto/tls"
	"strings"

	"github.com/rollway/rollway/relay"
)

// setServerFiles names the files of certificates for clients, and of their authorities.
func (f *relayFlags) setServerFiles() error {
	needed := false
	for _, url := range f.listen {
		needed = needed || strings.HasPrefix(url, "tls://")
	}
	switch {
	case len(f.certs) != len(f.keys):
		return usagef("each -cert needs its -key: there are %d and %d", len(f.certs), len(f.keys))
	case needed && len(f.certs) == 0:
		return usagef("-listen tls://… needs -cert and -key")
	case !needed && (len(f.certs) > 0 || f.clientCA != "" || f.options.Routes != nil):
		return usagef("-cert, -client-ca and -route are for -listen tls://…")
	}
	files := &f.options.ServerFiles
	files.Authorities = f.clientCA
	for i := range f.certs {
		files.Certificates = append(files.Certificates, relay.KeyPair{Cert: f.certs[i], Key: f.keys[i]})
	}
	return nil
}

// setClientFiles names those for upstreams.
func (f *relayFlags) setClientFiles() error {
	if (f.clientCert == "") != (f.clientKey == "") {
		return usagef("-client-cert and -client-key belong together")
	}
	f.options.ClientTLS = &tls.Config{ServerName: f.serverName}
	f.options.ClientFiles.Authorities = f.ca
	if f.clientCert != "" {
		f.options.ClientFiles.Certificates = []relay.KeyPair{{Cert: f.clientCert, Key: f.clientKey}}
	}
	return nil
}
