//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A collector with tokens and TLS is used by this program's own commands with
// what the environment says, and reads both again on SIGHUP.
func TestTokensAndTLS(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string) {
		t.Helper()
		writeFile(t, path(name), text)
	}
	const first, second = "first-0123456789", "second-0123456789"
	writeCertificate(t, 1, path("cert.pem"), path("key.pem"))
	write("tokens.yaml", fmt.Sprintf("- {name: one, secret: %s, may: [write, read]}\n", first))
	write("rollway.yaml", fmt.Sprintf("access: {tokens: %q}\ntls: {cert: %q, key: %q}\nlisten_syslog: tls://127.0.0.1:0\n", path("tokens.yaml"), path("cert.pem"), path("key.pem")))
	d := serveDaemon(t, "-config", path("rollway.yaml"))
	if !strings.HasPrefix(d.addr, "https://") {
		t.Fatalf("the banner names %s", d.addr)
	}
	if !strings.Contains(d.stdout.String(), "\n  syslog     tls 127.0.0.1:") {
		t.Errorf("the banner does not say that syslog is by TLS:\n%s", d.stdout.String())
	}
	if out, err := exec.Command("rollway", "query", "-addr", d.addr).CombinedOutput(); err == nil || !strings.Contains(string(out), "ROLLWAY_CA") {
		t.Errorf("an authority that is not known: %v\n%s", err, out)
	}
	command := func(token string, args ...string) (string, error) {
		cmd := exec.Command("rollway", append(args, "-addr", d.addr)...)
		cmd.Env = append(os.Environ(), "ROLLWAY_CA="+path("cert.pem"), "ROLLWAY_TOKEN="+token)
		cmd.Stdin = strings.NewReader("{\"msg\":\"hello\"}\n")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := command(first, "send", "-"); err != nil {
		t.Fatalf("send: %v\n%s", err, out)
	}
	if out, err := command(first, "query", "hello"); err != nil || !strings.Contains(out, "hello") {
		t.Errorf("query: %v\n%s", err, out)
	}
	for token, want := range map[string]string{"": "a token is needed", second: "not known"} {
		if out, err := command(token, "query", "hello"); err == nil || !strings.Contains(out, want) {
			t.Errorf("query as %q: %v\n%s", token, err, out)
		}
	}

	hangUp := func(said string) {
		t.Helper()
		sendSignal(t, d.cmd, syscall.SIGHUP)
		awaitText(t, &d.stderr, &d.stderr, said)
	}
	write("tokens.yaml", "- {name: two}\n")
	hangUp("the old one stays in force")
	if out, err := command(first, "query", "hello"); err != nil {
		t.Errorf("query after a reload that failed: %v\n%s", err, out)
	}
	write("tokens.yaml", fmt.Sprintf("- {name: two, secret: %s, may: read}\n", second))
	hangUp("configuration reloaded")
	if out, err := command(first, "query", "hello"); err == nil {
		t.Errorf("a token that was taken away still reads:\n%s", out)
	}
	if out, err := command(second, "query", "hello"); err != nil {
		t.Errorf("query with the new token: %v\n%s", err, out)
	}
	d.end(t)
	if log := d.stderr.String() + d.stdout.String(); strings.Contains(log, first) || strings.Contains(log, second) {
		t.Errorf("a secret was written:\n%s", log)
	}
}
