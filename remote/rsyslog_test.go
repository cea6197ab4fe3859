package remote_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/testkit"
	"github.com/rollway/rollway/remote"
)

// An rsyslog is a real rsyslogd with a configuration of its own.
type rsyslog struct {
	out string // where it writes messages, a line each
}

// startRsyslog runs rsyslogd with the inputs of config, in which %s is a
// directory for its files. It writes what it has read of each message:
// facility, severity, time, host, name, process id, MSGID, structured data and
// message.
func startRsyslog(t *testing.T, config string, args ...any) *rsyslog {
	t.Helper()
	daemon := testkit.Program(t, "rsyslogd")
	dir := t.TempDir()
	r := &rsyslog{filepath.Join(dir, "out")}
	text := `global(workDirectory="` + dir + `" maxMessageSize="256k" parser.escapeControlCharactersOnReceive="off")
` + fmt.Sprintf(config, args...) + `
template(name="all" type="string" string="%%syslogfacility-text%%|%%syslogseverity-text%%|%%timereported:::date-rfc3339%%|%%hostname%%|%%programname%%|%%procid%%|%%msgid%%|%%structured-data%%|%%msg%%\n")
*.* action(type="omfile" file="` + r.out + `" template="all")
`
	text = strings.ReplaceAll(text, "%%", "%")
	path := filepath.Join(dir, "rsyslog.conf")
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
	return r
}

// messages waits until rsyslogd has written n messages of app. It writes of
// itself too.
func (r *rsyslog) messages(t *testing.T, n int) []string {
	t.Helper()
	var own []string
	eventually(t, fmt.Sprintf("rsyslogd has written %d messages", n), func() bool {
		data, _ := os.ReadFile(r.out)
		own = own[:0]
		whole := data[:bytes.LastIndexByte(data, '\n')+1] // it may be amid a line
		for line := range strings.Lines(string(whole)) {
			if strings.Contains(line, "|shop|") {
				own = append(own, strings.TrimSuffix(line, "\n"))
			}
		}
		return len(own) >= n
	})
	return own
}

// freePort returns a port of 127.0.0.1 that a daemon can listen at.
func freePort(t *testing.T) int {
	t.Helper()
	addr, err := net.ResolveTCPAddr("tcp", reserve(t))
	if err != nil {
		t.Fatal(err)
	}
	return addr.Port
}

// retry writes p until the daemon, which may not listen yet, has taken it.
func retry(t *testing.T, w *remote.Writer, p string) {
	t.Helper()
	eventually(t, "rsyslogd listens", func() bool {
		n, err := w.Write([]byte(p))
		p = p[n:]
		return err == nil
	})
}

func TestRsyslog(t *testing.T) {
	t.Parallel()
	const (
		failed = `{"time":"2026-05-28T12:40:00.123456789Z","level":"ERROR","msg":"disk \"a\" full","attrs":{"path":"C:\\x]","n":2}}`
		plain  = `panic: runtime error: index out of range [5]`
	)
	identity := remote.Syslog{Facility: "local3", Hostname: "box", AppName: "shop", ProcID: "77", MsgID: "ID47"}
	stamp := func(layout string) string {
		return time.Date(2026, 5, 28, 12, 40, 0, 123456000, time.UTC).Format(layout)
	}
	with5424 := `local3|err|` + stamp(time.RFC3339Nano) + `|box|shop|77|ID47|`
	for _, c := range []struct {
		name   string
		scheme string
		input  string
		change func(*remote.Syslog)
		want   string // of the line failed
	}{
		{"udp", "syslog+udp", `module(load="imudp") input(type="imudp" address="127.0.0.1" port="%d")`, nil, with5424 + `-|` + failed},
		{"tcp, octets", "syslog+tcp", `module(load="imtcp") input(type="imtcp" address="127.0.0.1" port="%d")`, nil, with5424 + `-|` + failed},
		{"tcp, newline", "syslog+tcp", `module(load="imtcp") input(type="imtcp" address="127.0.0.1" port="%d")`,
			func(o *remote.Syslog) { o.Framing = "newline" }, with5424 + `-|` + failed},
		{"tcp, structured data and text", "syslog+tcp", `module(load="imtcp") input(type="imtcp" address="127.0.0.1" port="%d")`,
			func(o *remote.Syslog) { o.StructuredData, o.Text = "rollway@32473", true },
			with5424 + `[rollway@32473 path="C:\\x\]" n="2"]|disk "a" full`},
		{"tcp, 3164", "syslog+tcp", `module(load="imtcp") input(type="imtcp" address="127.0.0.1" port="%d")`,
			func(o *remote.Syslog) { o.Format = "rfc3164" }, "local3|err|*|box|shop|77|-|-| " + failed},
		{"udp, 3164", "syslog+udp", `module(load="imudp") input(type="imudp" address="127.0.0.1" port="%d")`,
			func(o *remote.Syslog) { o.Format = "rfc3164" }, "local3|err|*|box|shop|77|-|-| " + failed},
	} {
		t.Run(c.name, func(t *testing.T) {
			port := freePort(t)
			daemon := startRsyslog(t, c.input, port)
			o := identity
			if c.change != nil {
				c.change(&o)
			}
			w := open(t, fmt.Sprintf("%s://127.0.0.1:%d", c.scheme, port), remote.Options{Syslog: o})
			retry(t, w, failed+"\n"+plain+"\n"+numbered(0, 50))
			if err := w.Close(); err != nil {
				t.Errorf("Close = %v", err)
			}
			settled(t, w, 52, 52)
			got := daemon.messages(t, 52)
			if len(got) != 52 {
				t.Fatalf("%d messages, want 52", len(got))
			}
			if first := got[0]; !same(first, c.want) {
				t.Errorf("rsyslogd read\n %s\nwant\n %s", first, c.want)
			}
			if !strings.HasPrefix(got[1], "local3|info|") || !strings.HasSuffix(got[1], plain) {
				t.Errorf("rsyslogd read %s of a line that is not JSON", got[1])
			}
			for i, m := range got[2:] {
				want := strings.TrimSuffix(numbered(i, i+1), "\n")
				if o.Text {
					want = "|line"
				}
				if !strings.HasSuffix(m, want) {
					t.Errorf("message %d is %s", i, m)
				}
			}
		})
	}
}

// same compares field by field; * is any field.
func same(got, want string) bool {
	a, b := strings.SplitN(got, "|", 9), strings.SplitN(want, "|", 9)
	for i := range b {
		if i >= len(a) || b[i] != "*" && a[i] != b[i] {
			return false
		}
	}
	return len(a) == len(b)
}

// RFC 3164's 1024 bytes: what is longer is cut on request, and rsyslogd takes it
// with its header as it takes the others.
func TestRsyslogTruncated(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	daemon := startRsyslog(t, `module(load="imudp") input(type="imudp" address="127.0.0.1" port="%d")`, port)
	w := open(t, fmt.Sprintf("syslog+udp://127.0.0.1:%d", port), remote.Options{Syslog: remote.Syslog{
		Format: "rfc3164", Truncate: true, Facility: "local3", Hostname: "box", AppName: "shop", ProcID: "77",
	}})
	long := `{"time":"2026-05-28T12:40:00Z","level":"ERROR","msg":"` + strings.Repeat("long ", 300) + `"}`
	retry(t, w, long+"\n"+numbered(0, 1))
	if err := w.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
	settled(t, w, 2, 2)
	if n := w.Stats().Truncated; n != 1 {
		t.Errorf("%d truncated", n)
	}
	got := daemon.messages(t, 2)
	head, text, _ := strings.Cut(got[0], "|-|-| ")
	if !strings.HasPrefix(head, "local3|err|") || !strings.HasPrefix(text, long[:900]) || !strings.HasSuffix(text, " bytes]") {
		t.Errorf("rsyslogd read %s", got[0])
	}
}

// The local format at a socket as /dev/log is.
func TestRsyslogLocalSocket(t *testing.T) {
	t.Parallel()
	path := socketPath(t)
	daemon := startRsyslog(t, `module(load="imuxsock" SysSock.Use="off") input(type="imuxsock" Socket="%s" UsePIDFromSystem="off")`, path)
	w := open(t, "syslog+unix://"+path, remote.Options{Syslog: remote.Syslog{AppName: "shop", ProcID: "77"}})
	retry(t, w, `{"level":"WARN","msg":"low"}`+"\n")
	if err := w.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
	if got := daemon.messages(t, 1)[0]; !same(got, `user|warning|*|*|shop|77|-|-| {"level":"WARN","msg":"low"}`) {
		t.Errorf("rsyslogd read %s", got)
	}
	settled(t, w, 1, 1)
}

// TLS with certificates on both sides, by rsyslogd's GnuTLS driver.
func TestRsyslogTLS(t *testing.T) {
	t.Parallel()
	testkit.Program(t, "rsyslogd")
	if found, _ := filepath.Glob("/usr/lib*/*/rsyslog/lmnsd_gtls.so"); len(found) == 0 {
		testkit.Missing(t, "rsyslogd's driver for TLS, rsyslog-gnutls")
	}
	ca := newAuthority(t)
	server := ca.server(t, "logs.example").Certificates[0]
	dir := t.TempDir()
	caFile, certFile, keyFile := filepath.Join(dir, "ca"), filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	key, err := x509.MarshalPKCS8PrivateKey(server.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []struct {
		path, kind string
		der        []byte
	}{{caFile, "CERTIFICATE", ca.cert.Raw}, {certFile, "CERTIFICATE", server.Certificate[0]}, {keyFile, "PRIVATE KEY", key}} {
		if err := os.WriteFile(f.path, pem.EncodeToMemory(&pem.Block{Type: f.kind, Bytes: f.der}), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	port := freePort(t)
	daemon := startRsyslog(t, `global(defaultNetstreamDriver="gtls" defaultNetstreamDriverCAFile="%s" defaultNetstreamDriverCertFile="%s" defaultNetstreamDriverKeyFile="%s")
module(load="imtcp" StreamDriver.Name="gtls" StreamDriver.Mode="1" StreamDriver.AuthMode="x509/certvalid")
input(type="imtcp" address="127.0.0.1" port="%d")`, caFile, certFile, keyFile, port)
	w := open(t, fmt.Sprintf("syslog+tls://127.0.0.1:%d", port), remote.Options{
		Syslog: remote.Syslog{AppName: "shop", ProcID: "77", Hostname: "box"},
		TLSConfig: &tls.Config{
			RootCAs: ca.pool, ServerName: "logs.example", Certificates: ca.server(t, "client").Certificates,
		},
	})
	retry(t, w, numbered(0, 200))
	if err := w.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
	settled(t, w, 200, 200)
	for i, m := range daemon.messages(t, 200) {
		if !same(m, "user|info|*|box|shop|77|-|-|"+strings.TrimSuffix(numbered(i, i+1), "\n")) {
			t.Errorf("message %d is %s", i, m)
		}
	}
}
