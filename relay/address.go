package relay

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// An address is a URL of a listener or an upstream, understood.
type address struct {
	network string // "tcp" or "unix"
	dial    string // for net.Dial and net.Listen: host:port or a path
	host    string // without port; "" for a socket in the file system
	port    string
	tls     bool
}

// String is the URL.
func (a address) String() string {
	scheme := a.network
	if a.tls {
		scheme = "tls"
	}
	return scheme + "://" + a.dial
}

// maxSocketPath is the longest path that an address of a socket holds on every
// system: macOS has 104 bytes with the NUL, Linux 108.
const maxSocketPath = 103

// parseAddress reads tcp://host:port, tls://host:port or unix:///path. A
// listener may leave out the host and have port 0.
func parseAddress(raw string, listener bool) (a address, err error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return a, fmt.Errorf("%q is no URL: write tcp://host:port, tls://host:port or unix:///path", raw)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return a, fmt.Errorf("%q has more than an address", u.Redacted())
	}
	switch u.Scheme {
	case "unix":
		a.network, a.dial = "unix", u.Path
		switch {
		case u.Host != "" || !strings.HasPrefix(u.Path, "/"):
			return a, fmt.Errorf("%q has no absolute path: write unix:///path", raw)
		case len(u.Path) > maxSocketPath:
			return a, fmt.Errorf("%q is too long: the path of a socket has at most %d bytes", raw, maxSocketPath)
		}
		return a, nil
	case "tls":
		a.tls = true
	case "tcp":
	default: // "localhost:4318" parses as scheme "localhost"
		return a, fmt.Errorf("%q does not begin with tcp://, tls:// or unix://", raw)
	}
	a.network, a.dial, a.host, a.port = "tcp", u.Host, u.Hostname(), u.Port()
	n, err := strconv.ParseUint(a.port, 10, 16)
	switch {
	case u.Path != "":
		return a, fmt.Errorf("%q has more than host and port", raw)
	case err != nil || n == 0 && !listener:
		return a, fmt.Errorf("%q has no port of 1 to 65535: write %s://host:port", raw, u.Scheme)
	case a.host == "" && !listener:
		return a, fmt.Errorf("%q has no host", raw)
	}
	return a, nil
}

// A Listener is what [Listen] returns.
type Listener struct {
	net.Listener
	address address
}

// TLS reports whether connections begin with a TLS handshake.
func (l *Listener) TLS() bool { return l.address.tls }

// String is the URL of the listener, with the port that it got.
func (l *Listener) String() string {
	a := l.address
	a.dial = l.Addr().String()
	return a.String()
}

// Listen listens on tcp://host:port, tls://host:port or unix:///path. Serve
// does the handshakes of a tls listener, by Options.ServerTLS. A socket in the
// file system that no process listens on any more is replaced; it is removed
// when the listener is closed.
func Listen(ctx context.Context, url string) (*Listener, error) {
	a, err := parseAddress(url, true)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, a.network, a.dial)
	if err != nil && a.network == "unix" && isStale(a.dial) {
		if err = os.Remove(a.dial); err == nil {
			l, err = config.Listen(ctx, a.network, a.dial)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", url, err)
	}
	return &Listener{l, a}, nil
}

// isStale reports whether path is a socket that nobody answers at.
func isStale(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Type() != os.ModeSocket {
		return false
	}
	c, err := net.Dial("unix", path)
	if err == nil {
		c.Close()
		return false
	}
	return isErrno(err, syscall.ECONNREFUSED)
}
