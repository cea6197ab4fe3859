package remote

import (
	"cmp"
	"compress/gzip"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/rollway/rollway/internal/aside"
)

// Options says how a Writer talks to its peer. The zero value is the recommended
// setting. A field that the URL's scheme has no use for is an error.
type Options struct {
	// Timeout bounds one Write with its retries, and with Spill one attempt to send
	// what is on disk. An HTTP request with its answer takes at most a third of it,
	// as does the sending of 256 KiB over a stream or of a datagram; a connection
	// attempt, TLS handshake included, takes at most a sixth. Default 30 s.
	Timeout time.Duration

	// CloseTimeout bounds how long Close and Sync wait for the peer. Default 5 s.
	CloseTimeout time.Duration

	// Retries is how often one Write tries again after a failure that may pass: after
	// what the peer asked for and up to a tenth more, or after 50–100 ms, doubling up
	// to 2.5–5 s, while Timeout lasts. Leave it 0 for the destination of a writer that
	// retries, such as slab. A kept connection that turns out dead before any answer
	// is replaced once in any case. Default 0.
	Retries int

	// MaxBatch is the largest body of one HTTP request in bytes, before
	// compression. A larger Write becomes several requests, cut at line ends;
	// a single longer line goes alone. Default 4 MiB. HTTP only.
	MaxBatch int

	// Compress compresses the bodies of requests. One request at a time uses it.
	// Default: Gzip on a network and nothing to a loopback address. Log lines
	// shrink to a ninth for some 100 µs of CPU per 64 KiB. HTTP only.
	Compress Compressor

	// DisableCompression sends bodies as they are, also on a network.
	DisableCompression bool

	// Token is sent as "Authorization: Bearer <Token>". It never appears in
	// an error, in Stats or in String. HTTP only.
	Token string

	// AllowPlainToken allows Token and an Authorization header without TLS to a peer
	// that is not on this machine. Default false: Open refuses.
	AllowPlainToken bool

	// Header is sent with every request; Authorization here and Token exclude
	// each other. HTTP only.
	Header http.Header

	// TLSConfig is for https and tls: roots, client certificate, server name.
	// A version below TLS 1.2 is refused. nil means the system's roots.
	TLSConfig *tls.Config

	// ProxyFromEnvironment obeys HTTP_PROXY, HTTPS_PROXY and NO_PROXY. HTTP
	// only. Default false: the environment is not read.
	ProxyFromEnvironment bool

	// MaxDatagram is the largest datagram in bytes. A line that does not fit is
	// dropped and counted in Dropped.TooLarge. Default 65,507, the most that UDP over
	// IPv4 carries; a network cuts those beyond some 1,400 bytes into fragments. A
	// local socket takes up to about 200 KiB on Linux. Datagrams only.
	MaxDatagram int

	// PackDatagram lets short lines share a datagram of up to this many bytes, for a
	// peer that cuts datagrams at line ends; 1,400 suits most networks. Default 0:
	// each line has its own datagram. Datagrams of lines only.
	PackDatagram int

	// Syslog is for syslog+tcp, syslog+tls, syslog+udp and syslog+unix.
	Syslog Syslog

	// Journald is for journald.
	Journald Journald

	// Loki is for loki+http and loki+https.
	Loki Loki

	// OTLP is for otlp+http and otlp+https.
	OTLP OTLP

	// Spill makes a folder on disk the queue of lines to be sent. Default: each
	// Write sends its lines, and what cannot be sent stays with the caller.
	Spill Spill

	// OnError is called with what no Write returns: refused lines; connections that
	// broke with lines in flight; with Spill, that lines wait on disk, and lines lost
	// there. Each kind is reported at once and then at most once a minute; Close
	// reports the rest. One goroutine makes the calls. Default: a line on os.Stderr.
	OnError func(error)

	attempt time.Duration // bound on a request, a piece of a stream or a datagram
	dial    time.Duration // bound on a connection attempt
}

// A Compressor is a way to compress the body of a request.
type Compressor interface {
	// Encoding is the name for the header Content-Encoding, such as "zstd".
	Encoding() string
	// NewWriter returns a writer that compresses to w; its Close writes what
	// is left and does not close w.
	NewWriter(w io.Writer) (io.WriteCloser, error)
}

// Gzip is the Compressor for gzip at its fastest level.
type Gzip struct{}

// Encoding implements Compressor.
func (Gzip) Encoding() string { return "gzip" }

// NewWriter implements Compressor.
func (Gzip) NewWriter(w io.Writer) (io.WriteCloser, error) {
	z := gzipWriters.Get().(*gzipWriter)
	z.Reset(w)
	return z, nil
}

var gzipWriters = sync.Pool{New: func() any {
	z, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // fails only on an unknown level
	return &gzipWriter{z}
}}

// A gzipWriter returns to the pool when it is closed.
type gzipWriter struct{ *gzip.Writer }

func (z *gzipWriter) Close() error {
	err := z.Writer.Close()
	gzipWriters.Put(z)
	return err
}

// withDefaults returns o with every zero replaced, or what is wrong with it.
func (o Options) withDefaults(a *address) (Options, error) {
	if err := o.checkScheme(a); err != nil {
		return o, err
	}
	if err := errors.Join(
		setDefault("Timeout", &o.Timeout, 30*time.Second),
		setDefault("CloseTimeout", &o.CloseTimeout, 5*time.Second),
		setDefault("MaxBatch", &o.MaxBatch, 4<<20),
		setDefault("MaxDatagram", &o.MaxDatagram, 65507),
		setDefault("PackDatagram", &o.PackDatagram, 0),
		setDefault("Retries", &o.Retries, 0),
	); err != nil {
		return o, err
	}
	o.attempt, o.dial = o.Timeout/3, o.Timeout/6
	if o.PackDatagram > o.MaxDatagram {
		return o, fmt.Errorf("Options.PackDatagram is %d, more than Options.MaxDatagram %d", o.PackDatagram, o.MaxDatagram)
	}
	if o.OnError == nil {
		o.OnError = aside.ToStderr
	}
	if check := a.dialect.checkOptions; check != nil {
		if err := check(&o, a); err != nil {
			return o, err
		}
	}
	err := cmp.Or(o.checkCompression(a), o.checkHeader(a), o.checkTLS(a))
	return o, err
}

func setDefault[T int | time.Duration](name string, field *T, value T) error {
	if *field < 0 {
		return fmt.Errorf("Options.%s is %v: give a positive value, or 0 for the default %v", name, *field, value)
	}
	*field = cmp.Or(*field, value)
	return nil
}

// checkScheme refuses what the scheme has no use for.
func (o *Options) checkScheme(a *address) error {
	const overHTTPOnly = "http and https"
	http, grams := a.transport == overHTTP, a.transport == overDatagrams
	for _, c := range []struct {
		name     string
		set, use bool
		only     string
	}{
		{"MaxBatch", o.MaxBatch != 0, http, overHTTPOnly},
		{"Compress", o.Compress != nil, http, overHTTPOnly},
		{"Token", o.Token != "", http, overHTTPOnly},
		{"AllowPlainToken", o.AllowPlainToken, http, "http"},
		{"Header", len(o.Header) > 0, http, overHTTPOnly},
		{"ProxyFromEnvironment", o.ProxyFromEnvironment, http, overHTTPOnly},
		{"TLSConfig", o.TLSConfig != nil, a.tls, "https and tls"},
		{"MaxDatagram", o.MaxDatagram != 0, (grams || a.transport == overLocal) && a.dialect != journaldEntries, "datagrams (udp, unixgram)"},
		{"Syslog", o.Syslog != Syslog{}, a.dialect == syslogMessages, "syslog+tcp, syslog+tls, syslog+udp and syslog+unix"},
		{"Loki", o.Loki.Labels != nil || o.Loki.LevelLabel != "", a.dialect == lokiPush, "loki+http and loki+https"},
		{"OTLP", o.OTLP.Resource != nil, a.dialect == otlpLogs, "otlp+http and otlp+https"},
		{"Journald", o.Journald != Journald{}, a.dialect == journaldEntries, "journald"},
		{"PackDatagram", o.PackDatagram != 0, grams && a.dialect == plainLines, "datagrams of lines (udp, unixgram)"},
	} {
		if c.set && !c.use {
			return fmt.Errorf("leave out Options.%s: it is for %s, the URL is %s", c.name, c.only, a.name)
		}
	}
	return nil
}

func (o *Options) checkCompression(a *address) error {
	switch {
	case o.Compress != nil && o.DisableCompression:
		return errors.New("Options.Compress and Options.DisableCompression are set: give one of them")
	case o.Compress != nil && !validHeaderName(o.Compress.Encoding()):
		return fmt.Errorf("Options.Compress has the Encoding %q, which is not the name of a content coding", o.Compress.Encoding())
	case o.Compress == nil && !o.DisableCompression && !a.loopback():
		o.Compress = Gzip{}
	}
	return nil
}

func (o *Options) checkTLS(a *address) error {
	if !a.tls {
		return nil
	}
	if o.TLSConfig == nil {
		o.TLSConfig = &tls.Config{}
	} else {
		o.TLSConfig = o.TLSConfig.Clone()
	}
	c := o.TLSConfig
	c.MinVersion = cmp.Or(c.MinVersion, tls.VersionTLS12)
	if c.MinVersion < tls.VersionTLS12 || c.MaxVersion != 0 && c.MaxVersion < tls.VersionTLS12 {
		return errors.New("Options.TLSConfig allows a version below TLS 1.2: raise MinVersion and MaxVersion, or leave them 0")
	}
	return nil
}

// checkHeader refuses headers that net/http would refuse, and those that the Writer sets.
// It quotes names, never values.
func (o *Options) checkHeader(a *address) error {
	if !validHeaderValue(o.Token) || strings.TrimSpace(o.Token) != o.Token {
		return errors.New("Options.Token holds a control byte or outer white space (a line end from a file?): trim it")
	}
	header := http.Header{}
	for name, values := range o.Header {
		switch http.CanonicalHeaderKey(name) {
		case "Content-Encoding", "Content-Length", "Transfer-Encoding", "Trailer", "Connection", "Expect", "Host", "Idempotency-Key", "Idempotency-After":
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
			header.Add(name, v)
		}
	}
	o.Header = header
	if secret := o.Token != "" || header.Get("Authorization") != ""; secret && !a.tls && !a.loopback() && !o.AllowPlainToken {
		return errors.New("Options.Token or an Authorization header would pass the network unencrypted: use https, or allow it with Options.AllowPlainToken")
	}
	return nil
}

// validHeaderName reports whether s is a token of RFC 9110, section 5.6.2.
func validHeaderName(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool {
		return c <= ' ' || c >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c)
	})
}

// validHeaderValue reports whether s has no control byte except the tab (RFC 9110,
// section 5.5).
func validHeaderValue(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f })
}
