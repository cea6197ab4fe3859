//go:build unix

package main

import (
	"crypto/tls"
	"crypto/x509"
	"flag"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// closedAddr returns the address of a port at which nobody listens.
func closedAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// An error names the next step.
func TestErrorsNameTheNextStep(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	const writer, reader = "writer-0123456789", "reader-0123456789"
	writeFile(t, path("tokens.yaml"), "- {name: shop, secret: "+writer+", may: write}\n- {name: desk, secret: "+reader+", may: read}\n")
	writeCertificate(t, 1, path("cert.pem"), path("key.pem"))
	writeFile(t, path("rollway.yaml"), "access: {tokens: "+path("tokens.yaml")+"}\ntls: {cert: "+path("cert.pem")+", key: "+path("key.pem")+"}\n")
	writeFile(t, path("wrong.yaml"), "limits: {max_bdy: 1MiB}\n")
	writeFile(t, path("empty.pem"), "")
	if err := os.Mkdir(path("folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	secured := serveDaemon(t, "-config", path("rollway.yaml"))
	data := path("data")
	open := serveDaemon(t, "-data", data)
	_, port, _ := strings.Cut(strings.TrimPrefix(secured.addr, "https://"), ":")
	nobody := closedAddr(t)

	ca := "ROLLWAY_CA=" + path("cert.pem")
	for _, tt := range []struct {
		name, env, args string
		code            int
		want            string
	}{
		{"no collector", "", "query -addr " + nobody, 1, "no collector listens at http://" + nobody + ": connect: connection refused; start one there with 'rollway serve -listen " + nobody + "', or name another with -addr or ROLLWAY_ADDR"},
		{"no such host", "ROLLWAY_ADDR=collector.invalid", "query", 1, "name the collector's address with -addr or ROLLWAY_ADDR"},
		{"no address", "ROLLWAY_ADDR=ftp://x", "query", 2, `ROLLWAY_ADDR "ftp://x" is not a collector's address; write it like ` + defaultAddr},
		{"no token", ca, "query -addr " + secured.addr, 1, "401 Unauthorized: a token is needed here; send it as \"Authorization: Bearer SECRET\"; set ROLLWAY_TOKEN to the secret of a token"},
		{"another token", ca + " ROLLWAY_TOKEN=other", "query -addr " + secured.addr, 1, "the token is not known here; ROLLWAY_TOKEN must be the secret of a token"},
		{"no right to read", ca + " ROLLWAY_TOKEN=" + writer, "query -addr " + secured.addr, 1, "403 Forbidden: token shop may not read; add the right to 'may' of that token, or set ROLLWAY_TOKEN to a token that has it"},
		{"no right to write", ca + " ROLLWAY_TOKEN=" + reader, "send -retry 0 -addr " + secured.addr, 1, "token desk may not write; add the right to 'may'"},
		{"unknown authority", "", "query -addr " + secured.addr, 1, "if your own authority signed the certificate, name its PEM file in ROLLWAY_CA"},
		{"another name", ca, "query -addr https://localhost:" + port, 1, "name the collector with -addr as its certificate does"},
		{"no file of authorities", "ROLLWAY_CA=" + path("none"), "query", 2, "ROLLWAY_CA: open " + path("none")},
		{"an empty file of authorities", "ROLLWAY_CA=" + path("empty.pem"), "query", 2, "contains no PEM certificate"},
		{"TLS, and no TLS there", "", "query -addr https://" + strings.TrimPrefix(open.addr, "http://"), 1, "it has no TLS: write http:// in -addr or ROLLWAY_ADDR"},
		{"no TLS, and TLS there", "", "query -addr http://" + strings.TrimPrefix(secured.addr, "https://"), 1, "Write https:// in -addr or ROLLWAY_ADDR."},
		{"unknown authority, to send", "", "send -addr " + secured.addr, 1, "name its PEM file in ROLLWAY_CA"},
		{"TLS, to send, and no TLS there", "", "send -addr https://" + strings.TrimPrefix(open.addr, "http://"), 1, "it has no TLS: write http:// in -addr or ROLLWAY_ADDR"},
		{"no TLS, to send, and TLS there", "", "send -addr http://" + strings.TrimPrefix(secured.addr, "https://"), 1, "Write https:// in -addr or ROLLWAY_ADDR."},
		{"a folder in use", "", "query -data " + data, 1, "a collector has " + data + " open; ask it over HTTP"},
		{"an address in use", "", "serve -data " + path("data2") + " -listen " + strings.TrimPrefix(open.addr, "http://"), 1, "cannot listen on "},
		{"a folder of nothing", "", "cat " + path("folder"), 1, path("folder") + " is a folder, and no journal or spool; name the files in it"},
		{"the same, to verify", "", "verify " + path("folder"), 1, "name the files in it"},
		{"an unknown setting", "", "check -config " + path("wrong.yaml"), 1, "wrong.yaml:1:10: unknown key limits.max_bdy; did you mean limits.max_body?"},
		{"an unknown command", "", "qurey", 2, `did you mean "query"?`},
		{"an unknown flag", "", "query -sinec 1h", 2, "Run 'rollway query -h' for usage"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for v := range strings.FieldsSeq(tt.env) {
				name, value, _ := strings.Cut(v, "=")
				t.Setenv(name, value)
			}
			r := cli(t, "{}\n", strings.Fields(tt.args)...)
			r.want(t, tt.code, tt.want)
			if strings.Contains(r.stderr, "retrying") {
				t.Errorf("it tries again what cannot succeed: %s", r.stderr)
			}
		})
	}
	// What the errors ask for.
	for _, folder := range []string{data, filepath.Join(data, "journal")} {
		cli(t, "", "verify", folder).want(t, 0)
		cli(t, "", "cat", folder).want(t, 0)
	}
	expired := (&client{base: "https://x"}).explain(&url.Error{Err: &tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired}}})
	if !strings.Contains(expired.Error(), "renew the certificate") {
		t.Error(expired)
	}
}

// ROLLWAY_ADDR is the address for every command that takes -addr.
func TestAddrFromTheEnvironment(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		http.Error(w, "teapot", http.StatusTeapot)
	}))
	defer server.Close()
	t.Setenv(addrEnv, server.URL)
	args := map[string]string{"export": "-to " + t.TempDir(), "backup": "-to " + filepath.Join(t.TempDir(), "b.tar"), "send": "-retry 0"}
	n := 0
	for _, cmd := range commands() {
		flags := flag.NewFlagSet(cmd.name, flag.ContinueOnError)
		if cmd.setup(flags); flags.Lookup("addr") == nil {
			continue
		}
		n++
		asked = 0
		r := cli(t, "{}\n", append([]string{cmd.name}, strings.Fields(args[cmd.name])...)...)
		r.want(t, 1, "teapot")
		if asked == 0 {
			t.Errorf("rollway %s does not ask the collector that ROLLWAY_ADDR names: %s", cmd.name, r.stderr)
		}
		cli(t, "{}\n", append([]string{cmd.name, "-addr", closedAddr(t)}, strings.Fields(args[cmd.name])...)...).want(t, 1, "no collector listens at")
	}
	if n < 7 {
		t.Errorf("%d commands take -addr", n)
	}
}
