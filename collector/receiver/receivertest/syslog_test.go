package receivertest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/syslog"
	"github.com/rollway/rollway/internal/testkit"
	"github.com/rollway/rollway/remote"
)

// syslogServer is a collector that takes syslog over UDP, TCP and TLS.
type syslogServer struct {
	*Server
	cert, key string // files
	roots     *x509.CertPool
}

func (s *syslogServer) at(network string) string {
	return s.SyslogAddrs()[map[string]int{"udp": 0, "tcp": 1, "tls": 2}[network]].String()
}

func startSyslog(t *testing.T) *syslogServer {
	t.Helper()
	s := new(syslogServer)
	s.cert, s.key, s.roots = certificate(t)
	s.Server = Run(t, func(cfg *config.Config) {
		cfg.ListenSyslog = "udp://127.0.0.1:0 tcp://:0 tls://127.0.0.1:0"
		cfg.TLS.Cert, cfg.TLS.Key = s.cert, s.key
	})
	s.Reader = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.roots}, DisableKeepAlives: true}}
	return s
}

// certificate writes one for 127.0.0.1.
func certificate(t *testing.T) (cert, key string, roots *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: raw}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	roots = x509.NewCertPool()
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots.AddCert(parsed)
	return cert, key, roots
}

// recorder is in front of a server and keeps what passes: streams as they are, one after
// the other, datagrams each behind the number of its octets.
type recorder struct {
	addr string
	mu   sync.Mutex
	sent []*bytes.Buffer // guarded by mu; of each connection, or of all datagrams
}

// begin begins a connection, whose bytes keep keeps.
func (r *recorder) begin() (keep func(format string, args ...any)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	sent := new(bytes.Buffer)
	r.sent = append(r.sent, sent)
	return func(format string, args ...any) {
		r.mu.Lock()
		defer r.mu.Unlock()
		fmt.Fprintf(sent, format, args...)
	}
}

func (r *recorder) bytes() (all []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, sent := range r.sent {
		all = append(all, sent.Bytes()...)
	}
	return all
}

func record(t *testing.T, network, to string) *recorder {
	t.Helper()
	r := &recorder{}
	if network == "udp" {
		in, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		out, err := net.Dial("udp", to)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { in.Close(); out.Close() })
		r.addr = in.LocalAddr().String()
		go func() {
			keep, buf := r.begin(), make([]byte, 1<<16)
			for {
				n, _, err := in.ReadFrom(buf)
				if err != nil {
					return
				}
				keep("%d %s", n, buf[:n])
				out.Write(buf[:n])
			}
		}()
		return r
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.streams(t, ln, func() (net.Conn, error) { return net.Dial("tcp", to) })
	return r
}

// recordTLS is record for TLS, which it ends and begins anew.
func (s *syslogServer) recordTLS(t *testing.T) *recorder {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(s.cert, s.key)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}})
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{}
	r.streams(t, ln, func() (net.Conn, error) { return tls.Dial("tcp", s.at("tls"), &tls.Config{RootCAs: s.roots}) })
	return r
}

// streams passes on what the connections of ln bring to those that dial opens.
func (r *recorder) streams(t *testing.T, ln net.Listener, dial func() (net.Conn, error)) {
	t.Cleanup(func() { ln.Close() })
	r.addr = ln.Addr().String()
	go func() {
		for {
			in, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer in.Close()
				out, err := dial()
				if err != nil {
					return
				}
				defer out.Close()
				go io.Copy(in, out) // answers
				keep, buf := r.begin(), make([]byte, 1<<16)
				for {
					n, err := in.Read(buf)
					keep("%s", buf[:n])
					out.Write(buf[:n])
					if err != nil {
						return
					}
				}
			}()
		}
	}()
}

// replaySyslog makes lines of what a client sent once.
func replaySyslog(t *testing.T, sent []byte) string {
	t.Helper()
	c := &receiver.Chunk{
		Data: bytes.Clone(sent), Received: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC),
		Norm: normalize.New(normalize.Limits{MaxPast: -1, MaxFuture: -1}), Batch: new(normalize.Batch),
	}
	session := syslog.Protocol{Zone: time.UTC}.Open()
	for _, c.End = range []bool{false, true} {
		n, err := session.Decode(c)
		if err != nil {
			t.Fatal(err)
		}
		c.Data = c.Data[n:]
	}
	if len(c.Data) > 0 || c.Batch.RejectedTotal > 0 {
		t.Errorf("%q is left, %+v", c.Data, c.Batch.Rejected)
	}
	return string(c.Batch.Lines)
}

// varying is what is different each time in the lines of one client.
var varying = []struct{ pattern, with string }{
	{`"time":"[^"]*"`, `"time":"T"`},
	{`"(procid)":"\d+"`, `"$1":"N"`},
	{`"(pid)":\d+`, `"$1":"N"`},
	{`"(host|hostname)":"[^"]*"`, `"$1":"H"`},
	{`in <module>.*?\\nZero`, `in <module>\nZero`}, // newer ones show the line
	{`,"timeQuality":\{[^}]*\}`, ``},
	{`,?"peer":"127.0.0.1"`, ``},
	{`"attrs":\{,`, `"attrs":{`},
}

func settled(line string) string {
	for _, v := range varying {
		line = regexp.MustCompile(v.pattern).ReplaceAllString(line, v.with)
	}
	return line
}

// sameLines checks that a client's lines are those of its golden file except for what
// varies.
func sameLines(t *testing.T, client string, lines []string) {
	t.Helper()
	want, err := os.ReadFile(golden(client, ".lines"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range lines {
		lines[i] = settled(lines[i])
	}
	expected := strings.Split(strings.TrimSuffix(settled(string(want)), "\n"), "\n")
	slices.Sort(lines) // connections are not stored in an order
	slices.Sort(expected)
	if !slices.Equal(lines, expected) {
		t.Errorf("stored\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(expected, "\n"))
	}
}

const (
	atError = `{"time":"2026-05-28T12:40:00.123456789Z","level":"ERROR","msg":"disk \"a\" full","attrs":{"path":"C:\\x]","n":2}}`
	atPlain = `panic: runtime error`
)

func TestSyslogRemoteWriter(t *testing.T) {
	for _, c := range []struct {
		client, network string
		change          func(*remote.Syslog)
	}{
		{"syslog/rollway-udp", "udp", nil},
		{"syslog/rollway-octets", "tcp", nil},
		{"syslog/rollway-newline-3164", "tcp", func(o *remote.Syslog) { o.Format = "rfc3164" }},
		{"syslog/rollway-structured", "tcp", func(o *remote.Syslog) { o.StructuredData, o.Text = "rollway@32473", true }},
	} {
		t.Run(c.client, func(t *testing.T) {
			s := startSyslog(t)
			r := record(t, c.network, s.at(c.network))
			o := remote.Syslog{Facility: "local3", Hostname: "box", AppName: "shop", ProcID: "77", MsgID: "ID47"}
			if c.change != nil {
				c.change(&o)
			}
			sendSyslog(t, "syslog+"+c.network+"://"+r.addr, remote.Options{Syslog: o})
			lines := s.Await(t, 2)
			Stream(t, c.client, r.bytes(), replaySyslog)
			sameLines(t, c.client, lines)
		})
	}
	t.Run("tls", func(t *testing.T) {
		s := startSyslog(t)
		sendSyslog(t, "syslog+tls://"+s.at("tls"), remote.Options{TLSConfig: &tls.Config{RootCAs: s.roots},
			Syslog: remote.Syslog{Facility: "local3", Hostname: "box", AppName: "shop", ProcID: "77", MsgID: "ID47"}})
		sameLines(t, "syslog/rollway-octets", s.Await(t, 2))
	})
}

func sendSyslog(t *testing.T, url string, o remote.Options) {
	t.Helper()
	w, err := remote.Open(url, o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, atError+"\n"+atPlain+"\n"); err != nil {
		t.Error(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

func TestSyslogLogger(t *testing.T) {
	program := testkit.Program(t, "logger")
	for client, args := range map[string]string{
		"syslog/logger-udp":      "-d",
		"syslog/logger-tcp":      "-T",
		"syslog/logger-octets":   "-T --octet-count",
		"syslog/logger-udp-3164": "-d --rfc3164",
	} {
		t.Run(client, func(t *testing.T) {
			s := startSyslog(t)
			network := map[bool]string{true: "udp", false: "tcp"}[strings.Contains(args, "-d")]
			r := record(t, network, s.at(network))
			_, port, _ := net.SplitHostPort(r.addr)
			full := append(strings.Fields(args), "-n", "127.0.0.1", "-P", port, "-p", "local1.warning", "-t", "backup", "-i", "disk is full")
			if out, err := exec.Command(program, full...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			lines := s.Await(t, 1)
			Stream(t, client, r.bytes(), replaySyslog)
			sameLines(t, client, lines)
		})
	}
}

func TestSyslogPython(t *testing.T) {
	python := testkit.Program(t, "python3")
	for network, kind := range map[string]string{"udp": "SOCK_DGRAM", "tcp": "SOCK_STREAM"} {
		t.Run(network, func(t *testing.T) {
			s := startSyslog(t)
			r := record(t, network, s.at(network))
			_, port, _ := net.SplitHostPort(r.addr)
			out, err := exec.Command(python, "-c", `
import logging, logging.handlers, socket
h = logging.handlers.SysLogHandler(("127.0.0.1", `+port+`), socktype=socket.`+kind+`)
log = logging.getLogger()
log.addHandler(h)
log.warning("syslog hello: é")
try:
    1 / 0
except ZeroDivisionError:
    log.exception("it failed")
h.ident = "shop[77]: "
log.critical("with a tag")
h.close()
`).CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			lines := s.Await(t, 3)
			Stream(t, "syslog/python-"+network, r.bytes(), replaySyslog)
			sameLines(t, "syslog/python-"+network, lines)
		})
	}
}

// TestSyslogRsyslog has a real rsyslogd forward what it takes.
func TestSyslogRsyslog(t *testing.T) {
	daemon := testkit.Program(t, "rsyslogd")
	for client, action := range map[string]string{
		"syslog/rsyslog-octets-5424": `protocol="tcp" tcp_framing="octet-counted" template="RSYSLOG_SyslogProtocol23Format"`,
		"syslog/rsyslog-newline-iso": `protocol="tcp" template="RSYSLOG_ForwardFormat"`,
		"syslog/rsyslog-udp-3164":    `protocol="udp" template="RSYSLOG_TraditionalForwardFormat"`,
		"syslog/rsyslog-tls-5424": `protocol="tcp" tcp_framing="octet-counted" template="RSYSLOG_SyslogProtocol23Format"
			streamDriver="gtls" streamDriverMode="1" streamDriverAuthMode="x509/certvalid"`,
	} {
		t.Run(client, func(t *testing.T) {
			s := startSyslog(t)
			var r *recorder
			switch {
			case strings.Contains(client, "tls"):
				if found, _ := filepath.Glob("/usr/lib/*/rsyslog/lmnsd_gtls.so"); len(found) == 0 {
					testkit.Missing(t, "rsyslogd's driver for TLS, rsyslog-gnutls")
				}
				r = s.recordTLS(t)
				action += ` streamDriver.CAFile="` + s.cert + `"`
			case strings.Contains(client, "udp"):
				r = record(t, "udp", s.at("udp"))
			default:
				r = record(t, "tcp", s.at("tcp"))
			}
			_, port, _ := net.SplitHostPort(r.addr)
			in := startRsyslog(t, daemon, `action(type="omfwd" target="127.0.0.1" port="`+port+`" `+action+`)`)
			var conn net.Conn
			Eventually(t, "rsyslogd listens", func() bool {
				var err error
				conn, err = net.Dial("tcp", in)
				return err == nil
			})
			defer conn.Close()
			io.WriteString(conn, "<35>1 2026-05-28T12:40:00.123456Z box shop 77 ID47 [x@1 a=\"b \\\"c\\\"\"] first\n<13>May 28 12:40:01 box backup[5]: second\n")
			lines := s.Await(t, 2)
			Stream(t, client, r.bytes(), replaySyslog)
			sameLines(t, client, lines)
		})
	}
}

// TestSyslogFluentBit has Fluent Bit send, or where it is not, what it once sent.
func TestSyslogFluentBit(t *testing.T) {
	const options = "    syslog_message_key message\n    syslog_severity_key level\n    syslog_appname_preset shop\n    syslog_hostname_preset box\n    syslog_sd_key nested\n    allow_longer_sd_id on\n"
	for client, format := range map[string]string{
		"syslog/fluent-bit-udp-5424": "rfc5424", "syslog/fluent-bit-udp-3164": "rfc3164",
		"syslog/fluent-bit-tcp-5424": "rfc5424", "syslog/fluent-bit-tls-3164": "rfc3164",
	} {
		t.Run(client, func(t *testing.T) {
			s := startSyslog(t)
			network := strings.Split(client, "-")[2]
			var r *recorder
			if network == "tls" {
				r = s.recordTLS(t)
			} else {
				r = record(t, network, s.at(network))
			}
			host, port, _ := net.SplitHostPort(r.addr)
			output := "    name syslog\n    host " + host + "\n    port " + port + "\n    mode " + network + "\n    syslog_format " + format + "\n" + options
			if network == "tls" {
				output += "    tls on\n    tls.ca_file " + s.cert + "\n"
			}
			var lines []string
			if !FluentBit(t, output, func() { lines = s.Await(t, AgentEvents) }) {
				Stream(t, client, nil, replaySyslog)
				return
			}
			Stream(t, client, r.bytes(), replaySyslog)
			sameLines(t, client, lines)
		})
	}
}

// startRsyslog runs rsyslogd with an action for the messages that it takes at
// the address returned.
func startRsyslog(t *testing.T, daemon, action string) (addr string) {
	t.Helper()
	addr, err := testkit.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(addr)
	dir := t.TempDir()
	path := filepath.Join(dir, "rsyslog.conf")
	text := `global(workDirectory="` + dir + `")
module(load="imtcp")
ruleset(name="on") { ` + action + ` }
input(type="imtcp" address="` + host + `" port="` + port + `" ruleset="on")
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(daemon, "-n", "-f", path, "-i", filepath.Join(dir, "pid"))
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if t.Failed() {
			t.Logf("rsyslogd said: %s", log.String())
		}
	})
	return addr
}
