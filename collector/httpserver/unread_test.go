package httpserver

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/admission"
)

// Peers that do not read their answers, over plain connections, TLS and HTTP/2 with windows
// of its own, lose their places to a client of another address.
func TestUnread(t *testing.T) {
	certificate := httptest.NewUnstartedServer(nil)
	certificate.StartTLS()
	t.Cleanup(certificate.Close)
	for name, secure := range map[string]bool{"HTTP/1": false, "HTTP/1 in TLS": true, "HTTP/2": false, "HTTP/2 in TLS": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lost := make(chan string, 100)
			limit := admission.New().NewLimit(6, 1)
			limit.Evicted = func(_ net.Addr, why string) { lost <- why }
			o := Options{Limit: limit, Probe: func(*http.Request) bool { return false }, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				for n := 0; r.URL.Path == "/long" && n < 64; n++ {
					if _, err := w.Write(make([]byte, 1<<20)); err != nil {
						return
					}
				}
			})}
			url := "http://"
			if secure {
				o.TLS, url = &tls.Config{Certificates: certificate.TLS.Certificates, NextProtos: []string{"h2", "http/1.1"}}, "https://"
			}
			url += serve(t, newServer(t, o))
			get := func(from, path string) (*http.Response, error) {
				d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
				transport := &http.Transport{DialContext: d.DialContext, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, Protocols: new(http.Protocols)}
				t.Cleanup(transport.CloseIdleConnections)
				transport.Protocols.SetHTTP1(name[:6] == "HTTP/1")
				transport.Protocols.SetHTTP2(name[:6] == "HTTP/2")
				transport.Protocols.SetUnencryptedHTTP2(name[:6] == "HTTP/2")
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				t.Cleanup(cancel)
				req, err := http.NewRequestWithContext(ctx, "GET", url+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				return transport.RoundTrip(req)
			}
			for range 6 {
				resp, err := get("127.0.0.2", "/long")
				if err != nil || resp.StatusCode != 200 {
					t.Fatal(resp, err)
				}
				defer resp.Body.Close() // unread until then
			}
			for served := 0; served < 2; {
				resp, err := get("127.0.0.1", "/")
				if err != nil { // within TLS nobody is told
					continue
				}
				if io.Copy(io.Discard, resp.Body); resp.StatusCode == 200 {
					served++
				}
				defer resp.Body.Close()
			}
			for range 2 {
				if why := <-lost; why != "another client got the place of this connection, as its answer was not read" {
					t.Errorf("lost: %s", why)
				}
			}
			if s := limit.Stats(); s.Evicted[admission.Unread] != 2 || s.Open > 6 {
				t.Errorf("%+v", s)
			}
		})
	}
}
