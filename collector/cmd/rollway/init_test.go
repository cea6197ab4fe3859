//go:build unix

package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/testkit"
)

// initialize runs init in a new folder, for this user.
func initialize(t *testing.T, args ...string) (dir string, r result) {
	t.Helper()
	me, err := user.Current()
	testkit.OK(t, err)
	dir = filepath.Join(t.TempDir(), "etc")
	r = cli(t, "", append([]string{"init", "-dir", dir, "-data", filepath.Join(dir, "data"), "-user", me.Username}, args...)...)
	r.want(t, exitOK)
	return dir, r
}

// snapshot returns what is in a folder, by name.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	testkit.OK(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		found[strings.TrimPrefix(path, dir+"/")] = string(text)
		return err
	}))
	return found
}

// What init writes is what check and serve want; the collector speaks TLS by the authority,
// and each token may do what it is for and nothing else.
func TestInit(t *testing.T) {
	dir, said := initialize(t, "-host", "logs.example", "-host", "192.0.2.7")
	path := func(name string) string { return filepath.Join(dir, name) }
	if r := cli(t, "", "check", "-config", path("rollway.yaml")); r.code != exitOK || r.stderr != "" {
		t.Fatalf("check: %+v", r)
	}
	if _, next, _ := strings.Cut(said.stdout, "\nNext:\n"); strings.Count(next, "\n") != 3 {
		t.Errorf("not three commands:\n%s", said.stdout)
	}
	if start := "  cp " + path("rollway.service") + " /etc/systemd/system/ && systemctl enable --now rollway\n"; os.Geteuid() == 0 && !strings.Contains(said.stdout, start) {
		t.Errorf("no %s in\n%s", start, said.stdout)
	}
	d := serveDaemon(t, "-config", path("rollway.yaml"))
	if !strings.HasPrefix(d.addr, "https://") {
		t.Fatalf("served at %s", d.addr)
	}
	for _, step := range []struct {
		token, command string
		refused        string // ""; it may
	}{
		{"writer", "send -", ""},
		{"writer", "query hello", "403"},
		{"reader", "query hello", ""},
		{"reader", "send -", "403"},
		{"operator", "query hello", ""},
		{"operator", "send -", "403"},
		{"", "send -", "401"},
		{"", "query hello", "401"},
	} {
		secret := ""
		if step.token != "" {
			secret = strings.TrimSpace(snapshot(t, path("tokens"))[step.token])
		}
		cmd := exec.Command("rollway", append(strings.Fields(step.command), "-addr", d.addr)...)
		cmd.Env = append(os.Environ(), "ROLLWAY_CA="+path("ca.pem"), "ROLLWAY_TOKEN="+secret)
		cmd.Dir, cmd.Stdin = t.TempDir(), strings.NewReader("{\"msg\":\"hello\"}\n")
		out, err := cmd.CombinedOutput()
		switch said := string(out); {
		case step.refused == "" && (err != nil || strings.HasPrefix(step.command, "query") && !strings.Contains(said, "hello")):
			t.Errorf("%s as %q: %v\n%s", step.command, step.token, err, said)
		case step.refused != "" && (err == nil || !strings.Contains(said, step.refused)):
			t.Errorf("%s as %q is not refused: %v\n%s", step.command, step.token, err, said)
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(snapshot(t, dir)["ca.pem"]))
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	defer client.CloseIdleConnections()
	for token, refused := range map[string]bool{"writer": true, "reader": true, "operator": false} {
		req, err := http.NewRequest("POST", d.addr+"/api/rejected/replay", strings.NewReader("{}"))
		testkit.OK(t, err)
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(snapshot(t, path("tokens"))[token]))
		resp, err := client.Do(req)
		testkit.OK(t, err)
		resp.Body.Close()
		if (resp.StatusCode == http.StatusForbidden) != refused {
			t.Errorf("to send dead letters again as %s: %s", token, resp.Status)
		}
	}
	d.end(t)
	log := d.stdout.String() + d.stderr.String()
	for name, secret := range snapshot(t, path("tokens")) {
		if strings.Contains(log, strings.TrimSpace(secret)) {
			t.Errorf("the secret of %s was written", name)
		}
	}
	if strings.Contains(log, "OPEN TO") || strings.Contains(log, "NOT ENCRYPTED") {
		t.Errorf("it is not closed:\n%s", log)
	}
}

// Secrets are for their owner alone, and what others need is not.
func TestInitModes(t *testing.T) {
	dir, _ := initialize(t)
	want := map[string]fs.FileMode{
		"rollway.yaml": 0o644, "tokens.yaml": 0o600, "tokens/writer": 0o600, "tokens/reader": 0o600, "tokens/operator": 0o600,
		"server.pem": 0o644, "server.key": 0o600, "ca.pem": 0o644, "ca/ca.key": 0o600, "rollway.service": 0o644,
	}
	for name := range snapshot(t, dir) {
		info, err := os.Stat(filepath.Join(dir, name))
		testkit.OK(t, err)
		if info.Mode() != want[name] {
			t.Errorf("%s has %v, want %v", name, info.Mode(), want[name])
		}
		delete(want, name)
	}
	if len(want) > 0 {
		t.Errorf("not written: %v", want)
	}
	for _, name := range []string{"ca", "tokens", "data"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if os.Geteuid() != 0 {
		return
	}
	// A collector with a user of its own reads by its group, and does not own its tokens.
	other := filepath.Join(t.TempDir(), "etc")
	cli(t, "", "init", "-dir", other, "-data", filepath.Join(other, "data"), "-user", "nobody").want(t, exitOK)
	for name, want := range map[string]fs.FileMode{"tokens.yaml": 0o640, "server.key": 0o640, "ca/ca.key": 0o600, "tokens/writer": 0o600} {
		if info, err := os.Stat(filepath.Join(other, name)); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	cli(t, "", "init", "-dir", other, "-user", "nobody-of-this-name").want(t, exitFailed, "useradd --system")
}

// init replaces nothing without being told: nothing at all is written if one file exists.
func TestInitTwice(t *testing.T) {
	dir, _ := initialize(t, "-host", "logs.example")
	again := func(args ...string) result {
		me, err := user.Current()
		testkit.OK(t, err)
		return cli(t, "", append([]string{"init", "-dir", dir, "-data", filepath.Join(dir, "data"), "-user", me.Username}, args...)...)
	}
	changed := func(before map[string]string) (list []string) {
		for name, text := range snapshot(t, dir) {
			if before[name] != text {
				list = append(list, name)
			}
		}
		slices.Sort(list)
		return list
	}
	before := snapshot(t, dir)
	testkit.OK(t, os.Remove(filepath.Join(dir, "tokens.yaml")))
	delete(before, "tokens.yaml")
	again().want(t, exitFailed, "nothing was written", "rollway.yaml", "-force")
	if list := changed(before); len(list) > 0 || len(snapshot(t, dir)) != len(before) {
		t.Errorf("changed: %v", list)
	}
	before = snapshot(t, dir)
	again("-force").want(t, exitOK)
	if list := strings.Join(changed(before), " "); list != "ca.pem ca/ca.key rollway.yaml server.key server.pem tokens.yaml tokens/operator tokens/reader tokens/writer" {
		t.Errorf("-force changed %s", list)
	}

	before = snapshot(t, dir)
	again("-renew", "-host", "other.example").want(t, exitOK)
	if list := strings.Join(changed(before), " "); list != "server.key server.pem" {
		t.Errorf("-renew changed %s", list)
	}
	now := snapshot(t, dir)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(now["ca.pem"]))
	block, _ := pem.Decode([]byte(now["server.pem"]))
	cert, err := x509.ParseCertificate(block.Bytes)
	testkit.OK(t, err)
	for _, host := range []string{"other.example", "localhost", "127.0.0.1", "::1"} {
		if _, err := cert.Verify(x509.VerifyOptions{DNSName: host, Roots: pool}); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
	if _, err := cert.Verify(x509.VerifyOptions{DNSName: "logs.example", Roots: pool}); err == nil {
		t.Error("the certificate has a name that was not given")
	}
	if left := time.Until(cert.NotAfter); left < 824*24*time.Hour || left > 825*24*time.Hour || cert.IsCA {
		t.Errorf("valid for %v, an authority: %v", left, cert.IsCA)
	}
	dir = t.TempDir()
	again("-renew").want(t, exitFailed, "ca.pem")
	cli(t, "", "init", "-host", "logs.example:4318").want(t, exitUsage, "without scheme and port")
}

// systemd finds little that the collector may do beyond what it needs, in the package's
// unit and in one with paths of its own.
func TestUnit(t *testing.T) {
	analyze := testkit.Program(t, "systemd-analyze")
	dir, _ := initialize(t)
	own := filepath.Join(dir, "rollway.service")
	text, err := os.ReadFile(own)
	testkit.OK(t, err)
	for _, want := range []string{"serve -config " + dir + "/rollway.yaml\n", "\nReadWritePaths=" + dir + "/data\n", "\nType=notify\n", "\nWatchdogSec="} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(string(text), "RestartPreventExitStatus") {
		t.Error("a collector that panics, or that the watchdog ends, has exit status 2 as after a wrong command line, and would stay down")
	}
	for _, unit := range []string{"rollway.service", own} {
		out, err := exec.Command(analyze, "security", "--offline=true", "--no-pager", "--threshold=20", unit).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "Overall exposure level") {
			t.Errorf("%s: %v\n%s", unit, err, out)
		}
	}
	if out, err := exec.Command(analyze, "verify", "--man=no", own).CombinedOutput(); err != nil || strings.Contains(string(out), own) {
		t.Errorf("%v\n%s", err, out)
	}
}
