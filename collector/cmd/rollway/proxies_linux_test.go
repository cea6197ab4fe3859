package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/testkit"
)

// A proxy is a program that runs in front of collectors.
type proxy struct {
	cmd *exec.Cmd
	log string // a file: HAProxy drops what a full pipe does not take at once
}

// startProxy runs a program until the test ends, and waits until it listens at
// addr.
func startProxy(t *testing.T, addr, name string, args ...string) *proxy {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		path = filepath.Join("/usr/sbin", name) // where an ordinary user's PATH does not lead
		_, err = os.Stat(path)
	}
	if err != nil {
		testkit.Missing(t, "the program "+name)
	}
	p := &proxy{cmd: exec.Command(path, args...), log: filepath.Join(t.TempDir(), "said")}
	said, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	testkit.OK(t, err)
	p.cmd.Stdout, p.cmd.Stderr = said, said
	err = p.cmd.Start()
	said.Close()
	testkit.OK(t, err)
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		p.cmd.Wait()
		if t.Failed() {
			t.Logf("%s said:\n%.4000s", name, readText(t, p.log))
		}
	})
	waitFor(t, name, func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return p
}

// startNginx runs nginx with what is to be in its block http.
func startNginx(t *testing.T, addr, http string) *proxy {
	t.Helper()
	dir := t.TempDir()
	user, temp := "", ""
	if os.Geteuid() == 0 {
		user = "user root;"
	}
	for _, of := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		temp += fmt.Sprintf("\t%s_temp_path %s;\n", of, filepath.Join(dir, of))
	}
	config := filepath.Join(dir, "nginx.conf")
	writeText(t, config, fmt.Sprintf(`%s
daemon off;
master_process off;
pid %s;
error_log stderr;
events { worker_connections 1024; }
http {
	access_log off;
	client_max_body_size 0;
%s%s
}
`, user, filepath.Join(dir, "pid"), temp, http))
	return startProxy(t, addr, "nginx", "-e", "stderr", "-c", config)
}

// startHAProxy runs haproxy with sections behind its defaults.
func startHAProxy(t *testing.T, addr, sections string) *proxy {
	t.Helper()
	config := filepath.Join(t.TempDir(), "haproxy.cfg")
	writeText(t, config, `defaults
	mode http
	timeout connect 5s
	timeout client 1m
	timeout server 1m
`+sections)
	return startProxy(t, addr, "haproxy", "-db", "-f", config)
}

func writeText(t *testing.T, path, text string) {
	t.Helper()
	writeFile(t, path, text)
}

// freeAddr returns an address of loopback where nobody listens.
func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func hostPort(url string) string { return url[strings.Index(url, "://")+3:] }

// front is a proxy before collectors: what is in front of the real one, by http or
// https, and whether it speaks HTTP/2 there.
type front struct {
	name  string
	start func(t *testing.T, addr string, collectors []string, pem string)
	tls   bool // to the client
	h2    bool
	deep  bool // TLS goes on to the collector
	blind bool // the proxy cannot say whose a request is, so that it must not be trusted
}

// nginxFront passes on by a location with these directives.
func nginxFront(listen, location string) func(*testing.T, string, []string, string) {
	return func(t *testing.T, addr string, collectors []string, pem string) {
		servers := ""
		for _, c := range collectors {
			servers += "server " + c + " max_fails=0; "
		}
		if pem != "" {
			pem = fmt.Sprintf("ssl_certificate %s; ssl_certificate_key %s;", pem, pem)
		}
		startNginx(t, addr, fmt.Sprintf(`upstream collectors { %s keepalive 16; }
server {
	listen %s %s;
	%s
	location / { %s proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; }
}`, servers, addr, listen, pem, location))
	}
}

// haproxyFront passes on in a mode, with options of the frontend, of the backend and
// of each of its servers.
func haproxyFront(mode, bind, backend, server string) func(*testing.T, string, []string, string) {
	return func(t *testing.T, addr string, collectors []string, pem string) {
		text := fmt.Sprintf("listen front\n\tmode %s\n\tbind %s %s\n\t%s\n", mode, addr, strings.ReplaceAll(bind, "PEM", pem), backend)
		for i, c := range collectors {
			text += fmt.Sprintf("\tserver c%d %s %s\n", i, c, server)
		}
		startHAProxy(t, addr, text)
	}
}

const (
	keptUpstream  = `proxy_pass http://collectors; proxy_http_version 1.1; proxy_set_header Connection "";`
	keptAtHAProxy = "http-reuse always\n\toption forwardfor"
)

var fronts = []front{
	{name: "nginx, HTTP/1.0 upstream", start: nginxFront("", `proxy_pass http://collectors;`)},
	{name: "nginx, kept connections", start: nginxFront("", keptUpstream)},
	{name: "nginx, bodies passed on at once", start: nginxFront("", keptUpstream+" proxy_request_buffering off;")},
	{name: "nginx, TLS and HTTP 2", start: nginxFront("ssl http2", keptUpstream), tls: true, h2: true},
	{name: "nginx, TLS on both sides", start: nginxFront("ssl", `proxy_pass https://collectors; proxy_http_version 1.1; proxy_set_header Connection "";`), tls: true, deep: true},
	{name: "HAProxy", start: haproxyFront("http", "", keptAtHAProxy, "")},
	{name: "HAProxy, no reuse", start: haproxyFront("http", "", "option http-server-close\n\toption forwardfor", "")},
	{name: "HAProxy, TLS and HTTP 2", start: haproxyFront("http", "ssl crt PEM alpn h2,http/1.1", keptAtHAProxy, ""), tls: true, h2: true},
	{name: "HAProxy, HTTP 2 upstream", start: haproxyFront("http", "", keptAtHAProxy, "proto h2")},
	{name: "HAProxy, TLS passed through", start: haproxyFront("tcp", "", "", ""), tls: true, h2: true, deep: true, blind: true},
}

// Behind nginx and HAProxy, in the ways in which they are set up, requests of each
// form that curl sends come through whole, once, and with the client's address, which
// is the one that the proxy has seen, whatever the client says of itself.
func TestBehindProxies(t *testing.T) {
	dir := t.TempDir()
	cert, key, both := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "both.pem")
	writeCertificate(t, 1, cert, key)
	writeText(t, both, readText(t, cert)+readText(t, key))
	for _, f := range fronts {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			config, client := "proxies: {trusted: 127.0.0.1}\nenrich: {client: true}\n", "127.0.0.2"
			if f.blind {
				config, client = "enrich: {client: true}\n", "127.0.0.1"
			}
			if f.deep {
				config += fmt.Sprintf("tls: {cert: %q, key: %q}\n", cert, key)
			}
			path := filepath.Join(t.TempDir(), "rollway.yaml")
			writeText(t, path, config)
			d := serveDaemon(t, "-config", path)
			addr, scheme := freeAddr(t), "http://"
			f.start(t, addr, []string{hostPort(d.addr)}, both)
			if f.tls {
				scheme = "https://"
			}
			long := strings.Repeat("long ", 40_000)
			body := filepath.Join(t.TempDir(), "body")
			writeText(t, body, fmt.Sprintf("{\"msg\":\"file\",\"text\":%q}\n", long))
			packed := body + ".gz"
			if out, err := exec.Command("sh", "-c", "gzip <"+body+" >"+packed).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			want := 0
			for _, args := range [][]string{
				{"-d", `{"msg":"plain"}`},
				{"-d", `{"msg":"one"}`, "--next", "-sS", "-k", "--interface", "127.0.0.2", "-d", `{"msg":"two on one connection"}`}, // each to the URL below
				{"-d", `{"msg":"made up"}`, "-H", "X-Forwarded-For: 192.0.2.9"},
				{"--data-binary", "@" + body},
				{"--data-binary", "@" + body, "-H", "Transfer-Encoding: chunked"},
				{"--data-binary", "@" + body, "-H", "Expect: 100-continue"},
				{"--data-binary", "@" + packed, "-H", "Content-Encoding: gzip"},
				{"--data-binary", "@" + packed, "-H", "Content-Encoding: gzip", "-H", "Transfer-Encoding: chunked", "-H", "Expect: 100-continue"},
				{"--http1.0", "-d", `{"msg":"1.0"}`},
				{"--http2", "-d", `{"msg":"offers 2"}`},
				{"--http1.1", "-d", `{"msg":"1.1"}`},
			} {
				url := scheme + addr + "/api/logs"
				all := []string{"-sS", "-k", "--max-time", "60", "--interface", "127.0.0.2"}
				for _, a := range args {
					if a == "--next" {
						all = append(all, url)
						want++
					}
					all = append(all, a)
				}
				want++
				out, err := exec.Command("curl", append(all, url)...).CombinedOutput()
				if err != nil || strings.Count(string(out), `"accepted":1`) != 1+strings.Count(strings.Join(args, " "), "--next") {
					t.Errorf("curl %.80q: %v, %s", args, err, out)
				}
			}
			if f.h2 {
				out, err := exec.Command("curl", "-sS", "-k", "--http2", "-o", "/dev/null", "-w", "%{http_version}", scheme+addr+"/healthz").CombinedOutput()
				if err != nil || string(out) != "2" {
					t.Errorf("HTTP version %s, %v", out, err)
				}
			}
			lines := queryBy(t, d, cert)
			if len(lines) != want {
				t.Errorf("%d lines, want %d", len(lines), want)
			}
			for _, l := range lines {
				if !strings.Contains(l, `"client_ip":"`+client+`"`) {
					t.Errorf("not of %s: %.200s", client, l)
				}
			}
		})
	}
}

// queryBy returns all lines of a collector whose certificate is that of the file.
func queryBy(t *testing.T, d *daemon, cert string) []string {
	t.Helper()
	cmd := exec.Command("rollway", "query", "-addr", d.addr, "")
	cmd.Env = append(os.Environ(), "ROLLWAY_CA="+cert)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}

func readText(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// While one of two collectors is stopped and started again, as for an upgrade, no
// request through a proxy that passes it to either fails.
func TestRollingRestarts(t *testing.T) {
	for _, f := range []front{
		{name: "nginx", start: nginxFront("", keptUpstream)},
		{name: "HAProxy", start: haproxyFront("http", "", "http-reuse always\n\toption redispatch\n\tretries 3", "")},
	} {
		t.Run(f.name, func(t *testing.T) {
			const clients, restarts = 16, 10
			dir := t.TempDir()
			path := filepath.Join(dir, "rollway.yaml")
			writeText(t, path, "timeouts: {linger: 2s}\n") // also on a machine that has no time
			addrs := []string{freeAddr(t), freeAddr(t)}
			daemons := make([]*daemon, len(addrs))
			start := func(i int) {
				d, err := startDaemon(dir, nil, "-config", path, "-listen", addrs[i], "-data", filepath.Join(dir, fmt.Sprint(i)))
				if err != nil {
					t.Fatal(err)
				}
				daemons[i] = d
				t.Cleanup(d.kill)
			}
			for i := range daemons {
				start(i)
			}
			addr := freeAddr(t)
			f.start(t, addr, addrs, "")
			stop := make(chan struct{})
			var done sync.WaitGroup
			var stored atomic.Int64
			for c := range clients {
				done.Go(func() {
					client := &http.Client{Transport: &http.Transport{}, Timeout: time.Minute}
					defer client.CloseIdleConnections()
					for i := 0; ; i++ {
						select {
						case <-stop:
							return
						default:
						}
						resp, err := client.Post("http://"+addr+"/api/logs", "", strings.NewReader(fmt.Sprintf(`{"msg":"%d of %d"}`, i, c)))
						if err != nil {
							t.Error(err)
							continue
						}
						io.Copy(io.Discard, resp.Body)
						resp.Body.Close()
						if resp.StatusCode != 200 {
							t.Error(resp.Status)
							continue
						}
						stored.Add(1)
					}
				})
			}
			for i := range restarts {
				before := stored.Load()
				waitFor(t, "load", func() bool { return stored.Load() > before+500 || t.Failed() })
				if err := daemons[i%2].stop(); err != nil {
					t.Error(err)
				}
				start(i % 2)
			}
			close(stop)
			done.Wait()
			found := 0
			for _, d := range daemons {
				found += len(d.query(t))
			}
			if int64(found) != stored.Load() {
				t.Errorf("%d lines, %d were answered for", found, stored.Load())
			}
		})
	}
}
