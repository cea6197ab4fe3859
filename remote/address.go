package remote

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// A scheme says how the peer of a URL is spoken to.
type scheme struct {
	transport transport
	network   string // for net.Dial
	tls       bool
	dialect   *dialect
	path      string // of the socket, if the URL has none
}

type transport string

const (
	overHTTP      transport = "http"
	overStream    transport = "stream"
	overDatagrams transport = "datagrams"
	overLocal     transport = "a local socket of either kind"
)

var schemes = map[string]scheme{
	"http":     {overHTTP, "tcp", false, plainLines, ""},
	"https":    {overHTTP, "tcp", true, plainLines, ""},
	"tcp":      {overStream, "tcp", false, plainLines, ""},
	"tls":      {overStream, "tcp", true, plainLines, ""},
	"unix":     {overStream, "unix", false, plainLines, ""},
	"udp":      {overDatagrams, "udp", false, plainLines, ""},
	"unixgram": {overDatagrams, "unixgram", false, plainLines, ""},

	"syslog+tcp":  {overStream, "tcp", false, syslogMessages, ""},
	"syslog+tls":  {overStream, "tcp", true, syslogMessages, ""},
	"syslog+udp":  {overDatagrams, "udp", false, syslogMessages, ""},
	"syslog+unix": {overLocal, "unix", false, syslogMessages, "/dev/log"},

	"loki+http":     {overHTTP, "tcp", false, lokiPush, ""},
	"loki+https":    {overHTTP, "tcp", true, lokiPush, ""},
	"elastic+http":  {overHTTP, "tcp", false, elasticBulk, ""},
	"elastic+https": {overHTTP, "tcp", true, elasticBulk, ""},
	"otlp+http":     {overHTTP, "tcp", false, otlpLogs, ""},
	"otlp+https":    {overHTTP, "tcp", true, otlpLogs, ""},

	"journald": {overDatagrams, "unixgram", false, journaldEntries, "/run/systemd/journal/socket"},
}

// schemeNames is for errors: sorted, so that related schemes are adjacent.
func schemeNames() string {
	return strings.Join(slices.Sorted(maps.Keys(schemes)), ", ")
}

// local reports whether the peer is a socket in the file system.
func (s scheme) local() bool { return strings.HasPrefix(s.network, "unix") }

// An address is the parsed URL of a peer.
type address struct {
	scheme
	name string   // for errors and String: no user info, no query
	url  *url.URL // what is posted to; http only
	dial string   // for net.Dial; not for http
	host string   // without port; "" for a local socket
}

// parseURL parses the URL given to Open. Its errors never quote user info, nor a URL
// that may contain it.
func parseURL(raw string) (a address, err error) {
	u, err := url.Parse(raw)
	if err != nil {
		if strings.Contains(raw, "@") {
			return a, errors.New("the URL cannot be parsed (not quoted: it may hold a password)")
		}
		if ue, ok := errors.AsType[*url.Error](err); ok {
			err = ue.Err
		}
		return a, fmt.Errorf("parse URL %q: %w", raw, err)
	}
	if u.User != nil {
		return a, errors.New("the URL holds a user or password: take it out and use Options.Token or Options.Header")
	}
	s, known := schemes[u.Scheme]
	switch {
	case u.Scheme == "":
		return a, fmt.Errorf("%q has no scheme: known are %s", raw, schemeNames())
	case !known:
		// "localhost:4318" parses as scheme "localhost".
		return a, fmt.Errorf("unknown scheme %q: known are %s (as in http://127.0.0.1:4318/api/logs)", u.Scheme, schemeNames())
	case s.dialect == journaldEntries && !hasJournald:
		return a, errors.New("journald is on Linux only")
	case s.network == "unixgram" && !hasUnixgram:
		return a, errors.New("this system has no local datagram sockets: use unix or udp")
	case u.Fragment != "":
		return a, fmt.Errorf("%s has a fragment (#…): leave it out", display(u))
	}
	a = address{scheme: s, name: display(u), host: u.Hostname()}
	if s.local() {
		return a, a.parseSocket(u)
	}
	return a, a.parseHost(u)
}

func (a *address) parseSocket(u *url.URL) error {
	a.dial = u.Path
	if a.dial == "" && u.Opaque == "" && u.Host == "" {
		a.dial = a.path
	}
	switch {
	case u.Host != "" || !strings.HasPrefix(a.dial, "/"):
		return fmt.Errorf("%s has no absolute path of a socket: write %s:///path", a.name, u.Scheme)
	case u.RawQuery != "":
		return fmt.Errorf("%s has more than a path: write %s:///path", a.name, u.Scheme)
	case len(a.dial) > maxSocketPath:
		return fmt.Errorf("the path of %s has %d bytes: a socket's has at most %d", a.name, len(a.dial), maxSocketPath)
	}
	return nil
}

// maxSocketPath is the longest path of a socket that every system accepts: macOS has
// room for 104 bytes with the NUL, Linux for 108.
const maxSocketPath = 103

func (a *address) parseHost(u *url.URL) error {
	if a.transport == overHTTP {
		if complete := a.dialect.completeURL; complete != nil {
			if err := complete(u); err != nil {
				return fmt.Errorf("%s %w", a.name, err)
			}
			a.name = display(u)
		}
		u.Scheme = u.Scheme[strings.LastIndexByte(u.Scheme, '+')+1:]
		if u.Path == "" {
			return fmt.Errorf("%s has no path: a Rollway collector takes logs at /api/logs; write a final / if the root is meant", a.name)
		}
	} else {
		if u.Port() == "" {
			return fmt.Errorf("%s has no port: write %s://host:port", a.name, u.Scheme)
		}
		if u.Path != "" || u.RawQuery != "" {
			return fmt.Errorf("%s has more than host and port: write %s://host:port", a.name, u.Scheme)
		}
	}
	if a.host == "" {
		return fmt.Errorf("%s has no host", a.name)
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.ParseUint(p, 10, 16); err != nil || n == 0 {
			return fmt.Errorf("%s has port %s: give 1 to 65535", a.name, p)
		}
	}
	a.url, a.dial = u, u.Host
	return nil
}

// display returns u for errors and String: without user info, and without the query,
// which may hold a key.
func display(u *url.URL) string {
	s := u.Scheme + "://" + u.Host + u.EscapedPath()
	if u.RawQuery != "" {
		s += "?…"
	}
	return s
}

// loopback reports whether the peer is on this machine.
func (a *address) loopback() bool {
	if a.local() {
		return true
	}
	ip := net.ParseIP(a.host)
	return ip != nil && ip.IsLoopback() || strings.EqualFold(a.host, "localhost")
}
