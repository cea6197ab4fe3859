package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/testkit"
)

// writeCertificate writes a certificate for 127.0.0.1 that vouches for itself.
func writeCertificate(t *testing.T, serial int64, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// startRelay runs 'rollway relay' with its metrics on a free port and returns
// what it says once it is up.
func startRelay(t *testing.T, args ...string) (cmd *exec.Cmd, out, log *testkit.Buffer) {
	t.Helper()
	cmd = exec.Command("rollway", append([]string{"relay", "-metrics-listen", "127.0.0.1:0"}, args...)...)
	out, log = new(testkit.Buffer), new(testkit.Buffer)
	cmd.Stdout, cmd.Stderr = out, log
	start(t, cmd)
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			cmd.Process.Kill()
			cmd.Wait()
		}
	})
	awaitText(t, out, log, "  metrics ")
	return cmd, out, log
}

func awaitText(t *testing.T, where, log *testkit.Buffer, text string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !strings.Contains(where.String(), text); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no %q in\n%s\n%s", text, where.String(), log.String())
		}
	}
}

// upstream returns the address of a server that calls serve for each connection.
func upstream(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				serve(c)
			}()
		}
	}()
	return l.Addr().String()
}

// relayAddr returns the address of the listener in the output of a relay.
func relayAddr(out *testkit.Buffer) string {
	return regexp.MustCompile(`from +(?:tcp|tls)://(\S+)`).FindStringSubmatch(out.String())[1]
}

// end sends SIGTERM to a relay or a collector, which must end with 0 and the words.
func end(t *testing.T, cmd *exec.Cmd, out fmt.Stringer, words string) {
	t.Helper()
	err := cmd.Process.Signal(syscall.SIGTERM)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil || !strings.Contains(out.String(), words) {
		t.Errorf("ended with %v, want %q in\n%s", err, words, out.String())
	}
}

// exchange sends text to an echo and reads it back.
func exchange(c net.Conn, text string) error {
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(c, text); err != nil {
		return err
	}
	got := make([]byte, len(text))
	_, err := io.ReadFull(c, got)
	if err == nil && string(got) != text {
		err = fmt.Errorf("%q came back", got)
	}
	return err
}

// echo sends back what it gets.
func echo(c net.Conn) { _, _ = io.Copy(c, c) }

// A connection over TLS stays as it is while SIGHUP renews the certificate for
// those after it, the metrics tell of both, and SIGTERM lets them end.
func TestRelayOverTLS(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writeCertificate(t, 1, cert, key)
	cmd, out, log := startRelay(t, "-listen", "tls://127.0.0.1:0", "-to", "tcp://"+upstream(t, echo), "-cert", cert, "-key", key)
	addr := relayAddr(out)
	connect := func(serial int64) *tls.Conn {
		t.Helper()
		c, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		if got := c.ConnectionState().PeerCertificates[0].SerialNumber.Int64(); got != serial {
			t.Errorf("certificate %d, want %d", got, serial)
		}
		return c
	}
	say := func(c *tls.Conn, text string) {
		t.Helper()
		if err := exchange(c, text); err != nil {
			t.Error(err)
		}
	}
	first := connect(1)
	say(first, "before")
	writeCertificate(t, 2, cert, key)
	sendSignal(t, cmd, syscall.SIGHUP)
	awaitText(t, log, log, `"msg":"TLS files read"`)
	second := connect(2)
	say(first, "after")
	say(second, "hello")

	metrics := regexp.MustCompile(`http://\S+/metrics`).FindString(out.String())
	resp, err := http.Get(metrics)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(text), "rollway_relay_connections_accepted_total 2\n") {
		t.Errorf("metrics, %v:\n%s", err, text)
	}

	sendSignal(t, cmd, syscall.SIGTERM)
	awaitText(t, out, log, "stopping")
	// Certificates may be renewed while connections end.
	sendSignal(t, cmd, syscall.SIGHUP)
	awaitText(t, log, log, `"changed":false`)
	say(first, "to the last")
	first.Close()
	second.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("the relay ended with %v\n%s", err, log.String())
	}
	if want := fmt.Sprintf("stopped: 2 connections, %d B up, %[1]d B down, 0 cut off", len("before"+"after"+"hello"+"to the last")); !strings.Contains(out.String(), want) {
		t.Errorf("no %q in\n%s", want, out.String())
	}
}

// SIGHUP renews the authorities of clients too.
func TestRelayRenewsClientAuthorities(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	for i, name := range []string{"server", "first", "second"} {
		writeCertificate(t, int64(i+1), path(name+".pem"), path(name+".key"))
	}
	vouch := func(name string) {
		t.Helper()
		text, err := os.ReadFile(path(name + ".pem"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path("ca.new"), text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path("ca.new"), path("ca")); err != nil {
			t.Fatal(err)
		}
	}
	vouch("first")
	cmd, out, log := startRelay(t, "-listen", "tls://127.0.0.1:0", "-to", "tcp://"+upstream(t, func(c net.Conn) { _, _ = io.WriteString(c, "welcome") }), "-cert", path("server.pem"), "-key", path("server.key"), "-client-ca", path("ca"))
	addr := regexp.MustCompile(`from +tls://(\S+)`).FindStringSubmatch(out.String())[1]
	ask := func(name string) string {
		t.Helper()
		cert, err := tls.LoadX509KeyPair(path(name+".pem"), path(name+".key"))
		if err != nil {
			t.Fatal(err)
		}
		c, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{cert}})
		if err != nil {
			return err.Error()
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		text, err := io.ReadAll(c)
		if err != nil {
			return err.Error()
		}
		return string(text)
	}
	for _, step := range []struct{ in, out string }{{"first", "second"}, {"second", "first"}} {
		if got := ask(step.in); got != "welcome" {
			t.Errorf("%s has %s", step.in, got)
		}
		if got := ask(step.out); got == "welcome" {
			t.Errorf("%s is let in", step.out)
		}
		vouch("second")
		if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		awaitText(t, log, log, `"msg":"TLS files read","attrs":{"changed":true`)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the relay ended with %v\n%s", err, log.String())
	}
}

// A limit on descriptors that is too low is said, with what it should be.
func TestRelayUnderLowLimit(t *testing.T) {
	for _, c := range []struct{ args, out, log string }{
		{"", "  at most    164 connections at a time\n", `"msg":"the limit on descriptors allows few connections"`},
		{"-max-conns 5000", "  at most    5,000 connections at a time\n", `"descriptors_needed":10072`},
	} {
		cmd := exec.Command("sh", "-c", "ulimit -n 400 && exec rollway relay -metrics-listen 127.0.0.1:0 -listen tcp://127.0.0.1:0 -to tcp://127.0.0.1:1 "+c.args)
		out, log := new(testkit.Buffer), new(testkit.Buffer)
		cmd.Stdout, cmd.Stderr = out, log
		start(t, cmd)
		awaitText(t, out, log, "  metrics ")
		if !strings.Contains(out.String(), c.out) {
			t.Errorf("%q says\n%s", c.args, out.String())
		}
		awaitText(t, log, log, c.log)
		end(t, cmd, out, "stopped: ")
	}
}

// fullPipe returns the end of a pipe that takes nothing more, as nobody reads it.
func fullPipe(t *testing.T) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	fill(t, w)
	return w
}

// fill writes to a pipe until it takes nothing more.
func fill(t *testing.T, w *os.File) {
	t.Helper()
	for n := 1; n > 0; {
		if err := w.SetWriteDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		n, _ = w.Write(make([]byte, 4<<10))
	}
}

// Nobody reads standard error: connections are accepted, refused, relayed and
// ended, and so is the program.
func TestRelayWithUnreadLog(t *testing.T) {
	cmd := exec.Command("rollway", "relay", "-metrics-listen", "127.0.0.1:0", "-listen", "tcp://127.0.0.1:0", "-to", "tcp://"+upstream(t, echo), "-access-log", "-max-conns", "1")
	out := new(testkit.Buffer)
	cmd.Stdout, cmd.Stderr = out, fullPipe(t)
	start(t, cmd)
	defer cmd.Process.Kill()
	awaitText(t, out, out, "  metrics ")
	addr := relayAddr(out)
	// ask returns a connection through the relay, nil if it is refused.
	ask := func() net.Conn {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return nil // it is reset already
		}
		if err := exchange(c, "hello"); err != nil {
			if os.IsTimeout(err) {
				t.Error(err)
			}
			c.Close()
			return nil
		}
		return c
	}
	for range 50 {
		var held net.Conn
		waitFor(t, "a connection", func() bool { held = ask(); return held != nil })
		if ask() != nil {
			t.Error("a connection too many is taken")
		}
		held.Close()
	}
	end(t, cmd, out, "stopped: ")
}

// The same of a collector, which reads its tokens again each time it is asked to,
// though it says so in the log.
func TestServeWithUnreadLog(t *testing.T) {
	dir := t.TempDir()
	tokens, config := filepath.Join(dir, "tokens.yaml"), filepath.Join(dir, "rollway.yaml")
	secret := func(i int) string { return fmt.Sprintf("secret-0123456789-%d", i) }
	allow := func(i int) {
		t.Helper()
		writeFile(t, tokens+".new", fmt.Sprintf("- {name: one, secret: %s, may: write}\n", secret(i)))
		if err := os.Rename(tokens+".new", tokens); err != nil {
			t.Fatal(err)
		}
	}
	allow(0)
	writeFile(t, config, fmt.Sprintf("access: {tokens: %q}\n", tokens))
	cmd := exec.Command("rollway", "serve", "-listen", "127.0.0.1:0", "-data", filepath.Join(dir, "data"), "-config", config)
	out := new(testkit.Buffer)
	cmd.Stdout, cmd.Stderr = out, fullPipe(t)
	start(t, cmd)
	defer cmd.Process.Kill()
	awaitText(t, out, out, "rollway query hello")
	addr := httpRow.FindStringSubmatch(out.String())[1]
	for i := range 4 {
		allow(i)
		sendSignal(t, cmd, syscall.SIGHUP)
		waitFor(t, "the token to be known", func() bool {
			req, err := http.NewRequest("POST", addr+"/api/logs", strings.NewReader(`{"msg":"hello"}`))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+secret(i))
			code, _ := received(t)(http.DefaultClient.Do(req))
			return code == http.StatusOK
		})
	}
	end(t, cmd, out, "stopped: 4 lines stored")
}

// SIGHUP does not end a relay without files to reload.
func TestRelayWithoutFilesOutlivesHangup(t *testing.T) {
	cmd, out, log := startRelay(t, "-listen", "tcp://127.0.0.1:0", "-to", "tcp://"+upstream(t, echo))
	addr := relayAddr(out)
	for range 2 {
		sendSignal(t, cmd, syscall.SIGHUP)
		awaitText(t, log, log, "there are no certificates or authorities to reload")
	}
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	if err := exchange(c, "hello"); err != nil {
		t.Error(err)
	}
	c.Close()
	end(t, cmd, out, "stopped: ")
}

// -socket-memory takes a size, or -1 for no bound, and says so of anything else.
func TestRelaySocketMemory(t *testing.T) {
	for text, want := range map[string]int64{"64MiB": 64 << 20, "-1": -1, "0": 0, "-2": 0, "much": 0} {
		f := &relayFlags{}
		flags := flag.NewFlagSet("relay", flag.ContinueOnError)
		flags.SetOutput(io.Discard)
		f.declare(flags)
		err := flags.Parse([]string{"-socket-memory", text})
		if f.options.SocketMemory != want || (err == nil) != (want != 0) {
			t.Errorf("-socket-memory %s: %d, %v", text, f.options.SocketMemory, err)
		}
	}
}
