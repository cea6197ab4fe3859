package remote_test

import (
	"crypto/tls"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/remote"
)

// Each refused handshake leaves the lines with the caller.
func TestTLSIsChecked(t *testing.T) {
	t.Parallel()
	ca, other := newAuthority(t), newAuthority(t)
	old := ca.server(t, "127.0.0.1")
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	for _, c := range []struct {
		name   string
		server *tls.Config
		client *tls.Config
		want   string
	}{
		{"certificate of another authority", other.server(t, "127.0.0.1"), &tls.Config{RootCAs: ca.pool}, "unknown authority"},
		{"system's roots", ca.server(t, "127.0.0.1"), nil, "unknown authority"},
		{"certificate for another name", ca.server(t, "logs.example"), &tls.Config{RootCAs: ca.pool}, "127.0.0.1"},
		{"TLS 1.1", old, &tls.Config{RootCAs: ca.pool}, "protocol version"},
	} {
		t.Run(c.name, func(t *testing.T) {
			web := newHTTPPeer(t)
			web.Config.ErrorLog = discardLog
			web.TLS = c.server.Clone()
			web.StartTLS()
			raw := startTCPPeer(t, "127.0.0.1:0", c.server, nil)
			for _, url := range []string{
				"https://" + web.Listener.Addr().String() + "/",
				"tls://" + raw.Addr().String(),
			} {
				w := open(t, url, remote.Options{TLSConfig: c.client})
				n, err := w.Write([]byte(numbered(0, 1)))
				if n != 0 || err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%s: Write = %d, %v, want an error with %q", url, n, err, c.want)
				}
				settled(t, w, 0, 0)
				if err := w.Close(); err != nil {
					t.Errorf("%s: Close = %v", url, err)
				}
			}
			if len(web.bytes())+len(raw.bytes()) > 0 {
				t.Error("lines reached a peer that was not trusted")
			}
		})
	}
}

func TestTLSDelivers(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		t.Run(tls.VersionName(version), func(t *testing.T) {
			// Mutual, and by a name that is not the address.
			server := ca.server(t, "logs.example")
			server.MaxVersion = version
			server.ClientAuth, server.ClientCAs = tls.RequireAndVerifyClientCert, ca.pool
			client := &tls.Config{RootCAs: ca.pool, ServerName: "logs.example", Certificates: ca.server(t, "client").Certificates}
			web := newHTTPPeer(t)
			web.TLS = server.Clone()
			web.StartTLS()
			raw := startTCPPeer(t, "127.0.0.1:0", server, nil)
			for url, got := range map[string]func() []byte{
				"https://" + web.Listener.Addr().String() + "/": web.bytes,
				"tls://" + raw.Addr().String():                  raw.bytes,
			} {
				w := open(t, url, remote.Options{TLSConfig: client})
				write(t, w, numbered(0, 1000))
				if err := w.Close(); err != nil {
					t.Errorf("%s: Close = %v", url, err)
				}
				if string(got()) != numbered(0, 1000) {
					t.Errorf("%s: the peer has %d bytes", url, len(got()))
				}
				settled(t, w, 1000, 1000)
			}
		})
	}
}

// With TLS 1.3 a client learns only after its handshake that the server does
// not take its certificate. The lines written until then are counted as
// written, but Close says that they may be lost.
func TestRefusedClientCertificate(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	server := ca.server(t, "127.0.0.1")
	server.ClientAuth, server.ClientCAs = tls.RequireAndVerifyClientCert, ca.pool
	peer := startTCPPeer(t, "127.0.0.1:0", server, nil)
	w := open(t, "tls://"+peer.Addr().String(), remote.Options{TLSConfig: &tls.Config{RootCAs: ca.pool}})
	n, err := w.Write([]byte(numbered(0, 1)))
	end := w.Close()
	if err == nil && end == nil {
		t.Errorf("Write = %d and Close = nil for a line that no peer took", n)
	}
	ledger(w).Check(t)
}

// A peer that accepts and never shakes hands.
func TestStalledHandshake(t *testing.T) {
	t.Parallel()
	peer := startTCPPeer(t, "127.0.0.1:0", nil, nil)
	ca := newAuthority(t)
	w := open(t, "tls://"+peer.Addr().String(), remote.Options{
		TLSConfig: &tls.Config{RootCAs: ca.pool}, Timeout: 300 * time.Millisecond,
	})
	begin := time.Now()
	_, err := w.Write([]byte(numbered(0, 1)))
	if err == nil || !strings.Contains(err.Error(), "no connection within 50ms") || time.Since(begin) > 30*time.Second {
		t.Errorf("Write = %v after %v", err, time.Since(begin))
	}
	settled(t, w, 0, 0)
}
