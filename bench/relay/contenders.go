package relay

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// A contender is one relay.
type contender struct {
	name       string
	plain, tls bool
	program    string // that it needs; "" for those in Go
	idle       int    // connections that it can have under the limit of 20,000 descriptors; 0: no bound
	job        job    // for those in Go

	// start starts it in front of the upstream. Nil for those in Go.
	start func(r *rig, tls bool) (*process, error)
}

// pooled are the buffer sizes of the published benchmark, and one more, in KiB.
var pooled = []int{4, 8, 16, 64}

func poolName(kib int) string { return fmt.Sprintf("pool %d KiB", kib) }

const stackName = "stack 16 KiB"

// contenders lists all relays in the order of the tables.
func contenders() []contender {
	all := []contender{
		{name: Ours, plain: true, tls: true, job: job{Own: true}},
		{name: Splice, plain: true, tls: true, idle: 3000, job: job{Pump: pumpSplice}},
	}
	for _, kib := range pooled {
		all = append(all, contender{name: poolName(kib), plain: true, tls: true, job: job{Pump: pumpPool, Size: kib << 10}})
	}
	return append(all,
		contender{name: stackName, plain: true, tls: true, job: job{Pump: pumpStack}},
		contender{name: "HAProxy", program: "haproxy", plain: true, tls: true, start: startHAProxy("")},
		contender{name: "HAProxy, splice", program: "haproxy", plain: true, idle: 3000, start: startHAProxy("option splice-auto")},
		contender{name: "nginx stream", program: "nginx", plain: true, tls: true, start: startNginx},
		contender{name: "socat", program: "socat", plain: true, idle: 500, start: startSocat},
		contender{name: "stunnel", program: "stunnel4", tls: true, idle: 2000, start: startStunnel},
	)
}

// inGo reports whether the contender is a process of this program.
func (c contender) inGo() bool { return c.start == nil }

// lacks says what the contender needs and this machine does not have, or "".
func (c contender) lacks() string {
	if c.program == "" {
		return ""
	}
	if _, err := exec.LookPath(c.program); err != nil {
		return c.program
	}
	if c.program == "nginx" && streamModule() == "" {
		return "nginx's stream module"
	}
	return ""
}

// run starts the contender, in front of the upstream's plain listener.
func (c contender) run(r *rig, tls bool) (*process, error) {
	if c.start != nil {
		return c.start(r, tls)
	}
	j := c.job
	j.TLS, j.To, j.Cert, j.Key = tls, r.upstream.Addr, r.cert, r.key
	return startChild(j)
}

// suite is the one that Go's TLS picks, so that all relays encrypt alike.
const suite = "TLS_AES_128_GCM_SHA256"

func startHAProxy(option string) func(*rig, bool) (*process, error) {
	return func(r *rig, tls bool) (*process, error) {
		bind := r.address()
		if tls {
			bind += " ssl crt " + r.both + " ssl-min-ver TLSv1.3 ciphersuites " + suite
		}
		path, err := r.config("haproxy", fmt.Sprintf(`global
	maxconn 9950
	no strict-limits
defaults
	mode tcp
	timeout connect 5s
	timeout client 1h
	timeout server 1h
	%s
frontend in
	bind %s
	default_backend out
backend out
	server upstream %s
`, option, bind, r.upstream.Addr))
		if err != nil {
			return nil, err
		}
		return startProgram(r.last, "haproxy", "-db", "-q", "-f", path)
	}
}

func startNginx(r *rig, tls bool) (*process, error) {
	listen, secrets := r.address(), ""
	if tls {
		listen += " ssl"
		secrets = fmt.Sprintf("ssl_certificate %s; ssl_certificate_key %s; ssl_protocols TLSv1.3; ssl_conf_command Ciphersuites %s;", r.cert, r.key, suite)
	}
	user := ""
	if os.Getuid() == 0 {
		user = "user root;"
	}
	path, err := r.config("nginx", fmt.Sprintf(`load_module %s;
%s
daemon off;
pid %s;
worker_processes auto;
worker_rlimit_nofile 20000;
events { worker_connections 19900; }
stream { server { listen %s backlog=4096; %s proxy_pass %s; proxy_timeout 1h; } }
`, streamModule(), user, filepath.Join(r.dir, "nginx.pid"), listen, secrets, r.upstream.Addr))
	if err != nil {
		return nil, err
	}
	return startProgram(r.last, "nginx", "-e", "stderr", "-c", path)
}

// streamModule is the path of the module, or "".
func streamModule() string {
	for _, pattern := range []string{"/usr/lib/nginx/modules", "/usr/lib64/nginx/modules"} {
		path := filepath.Join(pattern, "ngx_stream_module.so")
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return ""
}

func startSocat(r *rig, _ bool) (*process, error) {
	r.address()
	return startProgram(r.last, "socat",
		fmt.Sprintf("TCP-LISTEN:%d,bind=%s,fork,reuseaddr,nodelay,backlog=4096", r.port, r.ip), "TCP:"+r.upstream.Addr+",nodelay")
}

func startStunnel(r *rig, _ bool) (*process, error) {
	path, err := r.config("stunnel", fmt.Sprintf(`foreground = yes
debug = crit
pid =
[relay]
accept = %s
connect = %s
cert = %s
key = %s
sslVersionMin = TLSv1.3
ciphersuites = %s
`, r.address(), r.upstream.Addr, r.cert, r.key, suite))
	if err != nil {
		return nil, err
	}
	return startProgram(r.last, "stunnel4", path)
}
