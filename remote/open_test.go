package remote_test

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/remote"
)

func TestOpenErrors(t *testing.T) {
	const good = "http://127.0.0.1:4318/api/logs"
	for _, c := range []struct {
		url  string
		o    remote.Options
		want []string // all of it in the error
	}{
		{"", remote.Options{}, []string{"no scheme", "known are elastic+http,"}},
		{"127.0.0.1:4318", remote.Options{}, []string{"parse URL"}},
		{"localhost:4318", remote.Options{}, []string{`unknown scheme "localhost"`, "known are elastic+http,"}},
		{"kafka://h:1", remote.Options{}, []string{`unknown scheme "kafka"`, "known are elastic+http,"}},
		{"http://h", remote.Options{}, []string{"no path", "/api/logs"}},
		{"http:///api/logs", remote.Options{}, []string{"no host"}},
		{"http://h:70000/", remote.Options{}, []string{"port 70000"}},
		{"http://h:0/", remote.Options{}, []string{"port 0"}},
		{"http://h:x/", remote.Options{}, []string{"port"}},
		{"http://h/#f", remote.Options{}, []string{"fragment"}},
		{"http://me:pw1234@h/", remote.Options{}, []string{"user or password", "Options.Token"}},
		{"http://me:pw1234@h:x/", remote.Options{}, []string{"not quoted"}},
		{"tcp://h", remote.Options{}, []string{"no port", "tcp://host:port"}},
		{"tls://:1", remote.Options{}, []string{"no host"}},
		{"tcp://h:1/x", remote.Options{}, []string{"more than host and port"}},
		{"tcp://h:1", remote.Options{Token: "pw1234"}, []string{"Options.Token", "http"}},
		{"tcp://h:1", remote.Options{Header: http.Header{"A": {"b"}}}, []string{"Options.Header"}},
		{"tcp://h:1", remote.Options{MaxBatch: 1}, []string{"Options.MaxBatch"}},
		{"tcp://h:1", remote.Options{ProxyFromEnvironment: true}, []string{"Options.ProxyFromEnvironment"}},
		{"tcp://h:1", remote.Options{TLSConfig: &tls.Config{}}, []string{"Options.TLSConfig", "tcp"}},
		{"tcp://h:1", remote.Options{Compress: flate{}}, []string{"Options.Compress", "http"}},
		{"tcp://h:1", remote.Options{MaxDatagram: 1}, []string{"Options.MaxDatagram", "udp"}},
		{good, remote.Options{PackDatagram: 1}, []string{"Options.PackDatagram", "udp"}},
		{"udp://h", remote.Options{}, []string{"no port", "udp://host:port"}},
		{"udp://h:1/x", remote.Options{}, []string{"more than host and port"}},
		{"udp://h:1", remote.Options{MaxDatagram: -1}, []string{"Options.MaxDatagram", "65507"}},
		{"udp://h:1", remote.Options{PackDatagram: 70000}, []string{"Options.PackDatagram", "Options.MaxDatagram"}},
		{"unix://host/path", remote.Options{}, []string{"absolute path", "unix:///path"}},
		{"unix:relative", remote.Options{}, []string{"absolute path"}},
		{"unixgram://", remote.Options{}, []string{"absolute path"}},
		{"unix:///p?q=1", remote.Options{}, []string{"more than a path"}},
		{"unix:///" + strings.Repeat("x", 200), remote.Options{}, []string{"201 bytes", "103"}},
		{good, remote.Options{Compress: flate{}, DisableCompression: true}, []string{"Options.Compress", "one of them"}},
		{good, remote.Options{Compress: flate{name: "a b"}}, []string{`"a b"`}},
		{"http://h/", remote.Options{Token: "pw1234"}, []string{"Options.Token", "https", "Options.AllowPlainToken"}},
		{"http://10.0.0.1/", remote.Options{Header: http.Header{"authorization": {"Basic pw1234"}}}, []string{"Authorization", "https", "Options.AllowPlainToken"}},
		{good, remote.Options{TLSConfig: &tls.Config{}}, []string{"Options.TLSConfig", "http"}},
		{"tls://h:1", remote.Options{TLSConfig: &tls.Config{MinVersion: tls.VersionTLS11}}, []string{"TLS 1.2"}},
		{"https://h/", remote.Options{TLSConfig: &tls.Config{MaxVersion: tls.VersionTLS11}}, []string{"TLS 1.2"}},
		{good, remote.Options{Timeout: -time.Second}, []string{"Options.Timeout", "-1s", "30s"}},
		{good, remote.Options{MaxBatch: -1}, []string{"Options.MaxBatch"}},
		{good, remote.Options{Retries: -1}, []string{"Options.Retries"}},
		{good, remote.Options{Token: "pw1234\n"}, []string{"Options.Token", "line end"}},
		{good, remote.Options{Token: "pw1234", Header: http.Header{"authorization": {"x"}}}, []string{"Authorization", "Options.Token"}},
		{good, remote.Options{Header: http.Header{"content-length": {"1"}}}, []string{"content-length"}},
		{good, remote.Options{Header: http.Header{"a b": {"1"}}}, []string{`"a b"`}},
		{good, remote.Options{Header: http.Header{"X-Key": {"pw1234\r\nEvil: 1"}}}, []string{`"X-Key"`, "control byte"}},
	} {
		w, err := remote.Open(c.url, c.o)
		if err == nil {
			w.Close()
			t.Errorf("Open(%q, %+v) = nil error, want one with %q", c.url, c.o, c.want)
			continue
		}
		for _, part := range c.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("Open(%q): error %q lacks %q", c.url, err, part)
			}
		}
		if strings.Contains(err.Error(), "pw1234") {
			t.Errorf("Open(%q): error %q shows the secret", c.url, err)
		}
	}
}

func TestOpenDoesNotDial(t *testing.T) {
	for _, url := range []string{
		"http://127.0.0.1:1/api/logs", "https://no.such.host.invalid/api/logs",
		"tcp://127.0.0.1:1", "tls://[::1]:1",
	} {
		w := open(t, url, remote.Options{})
		if s := w.Stats(); s.Connects != 0 || s.Connected {
			t.Errorf("%s: Stats after Open = %+v", url, s)
		}
		if err := w.Close(); err != nil {
			t.Errorf("%s: Close = %v, want nil", url, err)
		}
	}
}

func TestStringShowsNoSecret(t *testing.T) {
	w := open(t, "http://127.0.0.1:1/api/logs?key=secret-in-query", remote.Options{Token: "secret-token"})
	for _, format := range []string{"%v", "%+v", "%s", "%#v"} {
		got := fmt.Sprintf(format, w)
		if want := "remote http://127.0.0.1:1/api/logs?…"; got != want {
			t.Errorf("%s: %q, want %q", format, got, want)
		}
	}
}
