package remote

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Options says how a Writer talks to its peer. The zero value is the
// recommended setting. Open checks it and copies what it needs.
type Options struct {
	// Timeout bounds one Write in all: the wait for its turn, dialling,
	// sending, the answers and the retries. Default 30 s.
	Timeout time.Duration

	// DialTimeout bounds one connection attempt, the TLS handshake included.
	// Default 5 s.
	DialTimeout time.Duration

	// RequestTimeout bounds one HTTP request from the first byte sent to the
	// last byte of its answer. A link too slow to carry MaxBatch in this time
	// needs a longer one, or smaller batches. Default 10 s.
	RequestTimeout time.Duration

	// WriteTimeout bounds the sending of each 256 KiB over tcp and tls.
	// Default 10 s.
	WriteTimeout time.Duration

	// CloseTimeout bounds Close and Sync, which take no context. Default 5 s.
	CloseTimeout time.Duration

	// MaxBatch is the largest body of one HTTP request in bytes, before
	// compression. A larger Write becomes several requests, cut at line ends;
	// a single longer line goes alone. Default 4 MiB.
	MaxBatch int

	// Retries is how often one Write tries again after a failure that may
	// pass, waiting what the peer asked for, or 100 ms doubling up to 5 s,
	// while Timeout lasts. Leave it 0 behind a writer that retries by itself,
	// as slab does. Apart from it, a kept connection that turns out dead
	// before any answer is replaced once, at once. Default 0.
	Retries int

	// Compression is "gzip", "none", or "" for gzip on a network and none to
	// a loopback address. Log lines shrink to a ninth at some 100 µs of CPU
	// per 64 KiB (BenchmarkWrite), which a network is glad of and a loopback,
	// where the whole request takes 70 µs, is not. http and https only.
	Compression string

	// Token is sent as "Authorization: Bearer <Token>". It never appears in
	// an error, in Stats or in String. http and https only.
	Token string

	// Header is sent with every request; Authorization here and Token exclude
	// each other. http and https only.
	Header http.Header

	// TLSConfig is for https and tls: roots, client certificate, server name.
	// A version below TLS 1.2 is refused. nil means the system's roots.
	TLSConfig *tls.Config

	// ProxyFromEnvironment obeys HTTP_PROXY, HTTPS_PROXY and NO_PROXY. http
	// and https only. Default false: the environment is not read.
	ProxyFromEnvironment bool

	// OnError is told what no Write returns: lines that the peer refused, with
	// its first reason, and connections that broke with lines on the way. It
	// is called at most once a second and once by Close, from the goroutine of
	// a Write, Flush, Sync or Close, which it holds up. nil means nobody is
	// told; Stats counts all the same.
	OnError func(error)
}

const (
	compressNone = "none"
	compressGzip = "gzip"
)

// withDefaults returns o with every zero replaced, or what is wrong with it.
func (o Options) withDefaults(u *url.URL) (Options, error) {
	for _, d := range []struct {
		name  string
		value *time.Duration
		def   time.Duration
	}{
		{"Timeout", &o.Timeout, 30 * time.Second},
		{"DialTimeout", &o.DialTimeout, 5 * time.Second},
		{"RequestTimeout", &o.RequestTimeout, 10 * time.Second},
		{"WriteTimeout", &o.WriteTimeout, 10 * time.Second},
		{"CloseTimeout", &o.CloseTimeout, 5 * time.Second},
	} {
		if *d.value < 0 {
			return o, fmt.Errorf("bad Options.%s %v: give a positive time, or 0 for the default %v", d.name, *d.value, d.def)
		}
		if *d.value == 0 {
			*d.value = d.def
		}
	}
	if o.MaxBatch < 0 {
		return o, fmt.Errorf("Options.MaxBatch is %d bytes: give a positive size, or 0 for the default 4 MiB", o.MaxBatch)
	}
	if o.MaxBatch == 0 {
		o.MaxBatch = 4 << 20
	}
	if o.Retries < 0 {
		return o, fmt.Errorf("Options.Retries is %d: give 0 or more", o.Retries)
	}

	if u.Scheme == "tcp" || u.Scheme == "tls" {
		for _, c := range []struct {
			name string
			set  bool
		}{
			{"MaxBatch", o.MaxBatch != 4<<20},
			{"Compression", o.Compression != "" && o.Compression != compressNone},
			{"Token", o.Token != ""},
			{"Header", len(o.Header) > 0},
			{"ProxyFromEnvironment", o.ProxyFromEnvironment},
		} {
			if c.set {
				return o, fmt.Errorf("leave out Options.%s: it is for http and https, the scheme is %s", c.name, u.Scheme)
			}
		}
	}

	switch o.Compression {
	case "":
		o.Compression = compressGzip
		if isLoopback(u.Hostname()) {
			o.Compression = compressNone
		}
	case compressNone, compressGzip:
	default:
		return o, fmt.Errorf(`Options.Compression is %q: known are "" (by address), "none" and "gzip"`, o.Compression)
	}
	if err := o.checkHeader(); err != nil {
		return o, err
	}
	return o, o.checkTLS(u.Scheme)
}

// checkHeader refuses what net/http would refuse with every Write, and what
// the Writer sets itself. It quotes names, never values.
func (o *Options) checkHeader() error {
	if !validHeaderValue(o.Token) || strings.TrimSpace(o.Token) != o.Token {
		return errors.New("Options.Token holds a control byte or outer white space (a line end from a file?): trim it")
	}
	o.Header = o.Header.Clone()
	for name, values := range o.Header {
		switch http.CanonicalHeaderKey(name) {
		case "Content-Encoding", "Content-Length", "Transfer-Encoding", "Trailer", "Connection", "Expect", "Host", "Idempotency-Key":
			return fmt.Errorf("Options.Header holds %q, which the Writer sets itself: leave it out", name)
		case "Authorization":
			if o.Token != "" {
				return errors.New("Options.Header holds Authorization and Options.Token is set: give one of them")
			}
		}
		if !validHeaderName(name) {
			return fmt.Errorf("Options.Header holds %q, which is no HTTP header name", name)
		}
		for _, v := range values {
			if !validHeaderValue(v) {
				return fmt.Errorf("the value of %q in Options.Header holds a control byte", name)
			}
		}
	}
	return nil
}

func (o *Options) checkTLS(scheme string) error {
	if scheme != "https" && scheme != "tls" {
		if o.TLSConfig != nil {
			return fmt.Errorf("Options.TLSConfig is for https and tls, the scheme is %s: leave it out or change the URL", scheme)
		}
		return nil
	}
	if o.TLSConfig == nil {
		o.TLSConfig = &tls.Config{}
	} else {
		o.TLSConfig = o.TLSConfig.Clone()
	}
	c := o.TLSConfig
	if c.MinVersion == 0 {
		c.MinVersion = tls.VersionTLS12
	}
	if c.MinVersion < tls.VersionTLS12 || c.MaxVersion != 0 && c.MaxVersion < tls.VersionTLS12 {
		return errors.New("Options.TLSConfig allows a version below TLS 1.2: raise MinVersion and MaxVersion, or leave them 0")
	}
	return nil
}

// parseURL checks what Open was given. Its errors never quote user info, nor
// a URL that may hold one.
func parseURL(raw string) (*url.URL, error) {
	const known = "http, https, tcp, tls"
	u, err := url.Parse(raw)
	if err != nil {
		if strings.Contains(raw, "@") {
			return nil, errors.New("the URL cannot be parsed (not quoted: it may hold a password)")
		}
		if ue, ok := errors.AsType[*url.Error](err); ok {
			err = ue.Err
		}
		return nil, fmt.Errorf("parse URL %q: %w", raw, err)
	}
	if u.User != nil {
		return nil, errors.New("the URL holds a user or password: take it out and use Options.Token or Options.Header")
	}
	switch u.Scheme {
	case "http", "https":
		if u.Path == "" {
			return nil, fmt.Errorf("%s has no path: a Rollway collector takes logs at /api/logs; write a final / if the root is meant", display(u))
		}
	case "tcp", "tls":
		if u.Port() == "" {
			return nil, fmt.Errorf("%s has no port: write %s://host:port", display(u), u.Scheme)
		}
		if u.Path != "" || u.RawQuery != "" {
			return nil, fmt.Errorf("%s has more than host and port: write %s://host:port", display(u), u.Scheme)
		}
	case "":
		return nil, fmt.Errorf("%q has no scheme: known are %s", raw, known)
	default:
		// "localhost:4318" parses as scheme "localhost".
		return nil, fmt.Errorf("unknown scheme %q: known are %s (as in http://127.0.0.1:4318/api/logs)", u.Scheme, known)
	}
	if u.Hostname() == "" {
		return nil, fmt.Errorf("%s has no host", display(u))
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.ParseUint(p, 10, 16); err != nil || n == 0 {
			return nil, fmt.Errorf("%s has port %s: give 1 to 65535", display(u), p)
		}
	}
	if u.Fragment != "" {
		return nil, fmt.Errorf("%s has a fragment (#…): leave it out", display(u))
	}
	return u, nil
}

// display is u as errors and String show it: without user info, and without
// the query, which may hold a key.
func display(u *url.URL) string {
	s := u.Scheme + "://" + u.Host + u.EscapedPath()
	if u.RawQuery != "" {
		s += "?…"
	}
	return s
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback() || strings.EqualFold(host, "localhost")
}

// validHeaderName reports whether s is a token of RFC 9110, section 5.6.2.
func validHeaderName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return s != ""
}

// validHeaderValue reports whether s holds no control byte but the tab (RFC
// 9110, section 5.5).
func validHeaderValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
