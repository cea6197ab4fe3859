package remote

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/rollway/rollway/internal/aside"
)

// Options says how a Writer talks to its peer. The zero value is the
// recommended setting. Open checks it and copies what it needs. A field that
// the URL's scheme has no use for is an error, not ignored.
type Options struct {
	// Timeout bounds one Write in all: the wait for its turn, dialling,
	// sending, the answers and the retries; with Spill one attempt to send a
	// piece of what is on disk. Default 30 s.
	Timeout time.Duration

	// DialTimeout bounds one connection attempt, the TLS handshake included.
	// Default 5 s.
	DialTimeout time.Duration

	// RequestTimeout bounds one HTTP request from the first byte sent to the
	// last byte of its answer. A link too slow to carry MaxBatch in this time
	// needs a longer one, or smaller batches. Default 10 s.
	RequestTimeout time.Duration

	// WriteTimeout bounds the sending of each 256 KiB over a stream (tcp, tls,
	// unix), or of one datagram (udp, unixgram). Default 10 s.
	WriteTimeout time.Duration

	// CloseTimeout bounds how long Close and Sync wait for the peer. Default 5 s.
	CloseTimeout time.Duration

	// Retries is how often one Write tries again after a failure that may
	// pass: after what the peer asked for and up to a tenth more, or after
	// 50–100 ms, doubling up to 2.5–5 s, while Timeout lasts. The wait is
	// random so that a fleet does not come back at once. Leave it 0 behind a
	// writer that retries by itself, as slab does. Apart from it, a kept
	// connection that turns out dead before any answer is replaced once, at
	// once. Default 0.
	Retries int

	// MaxBatch is the largest body of one HTTP request in bytes, before
	// compression. A larger Write becomes several requests, cut at line ends;
	// a single longer line goes alone. Default 4 MiB. HTTP only.
	MaxBatch int

	// Compression is "gzip", "none", or "" for gzip on a network and none to
	// a loopback address. Log lines shrink to a ninth at some 100 µs of CPU
	// per 64 KiB (BenchmarkWrite), which a network is glad of and a loopback,
	// where the whole request takes 70 µs, is not. HTTP only.
	Compression string

	// Compressor compresses the bodies of requests instead; Compression must
	// then be "". It is used by one request at a time. HTTP only.
	Compressor Compressor

	// Token is sent as "Authorization: Bearer <Token>". It never appears in
	// an error, in Stats or in String. HTTP only.
	Token string

	// AllowPlainToken allows Token and an Authorization header over http, that
	// is without TLS, to a peer that is not on this machine: everybody on the
	// way can read them. Default false: Open refuses.
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

	// MaxDatagram is the largest datagram in bytes. A line that does not fit
	// is dropped and counted in Dropped.TooLarge. Default 65,507, the most that
	// UDP over IPv4 carries; on the way over a network one beyond some 1,400
	// bytes is cut into fragments, and lost if one of them is. A local socket
	// takes up to about 200 KiB on Linux. Datagrams only.
	MaxDatagram int

	// PackDatagram lets short lines share a datagram of up to this many
	// bytes, for a peer that cuts datagrams at line ends; 1,400 suits most
	// networks. A longer line still goes alone. Default 0: each line has its
	// own datagram. Datagrams of lines only.
	PackDatagram int

	// Syslog is for syslog+tcp, syslog+tls, syslog+udp and syslog+unix.
	Syslog Syslog

	// Journald is for journald.
	Journald Journald

	// Loki is for loki+http and loki+https.
	Loki Loki

	// Spill makes a folder on disk the queue of lines to be sent. Default: each
	// Write sends its lines, and what cannot be sent stays with the caller.
	Spill Spill

	// OnError is told what no Write returns: lines that were refused or too large,
	// with the first reason; connections that broke with lines on the way; with
	// Spill, that lines wait on disk because the peer fails, and what was lost or
	// damaged there.
	// Each of these is told at once and then at most once a minute; Close tells the
	// rest. One goroutine makes the calls. Default: a line on os.Stderr.
	OnError func(error)
}

// A Compressor is a way to compress the body of a request.
type Compressor interface {
	// Encoding is the name for the header Content-Encoding, such as "zstd".
	Encoding() string
	// NewWriter returns a writer that compresses to w; its Close writes what
	// is left and does not close w.
	NewWriter(w io.Writer) (io.WriteCloser, error)
	// NewReader returns a reader of what r holds compressed.
	NewReader(r io.Reader) (io.ReadCloser, error)
}

const (
	compressNone = "none"
	compressGzip = "gzip"
)

// withDefaults returns o with every zero replaced, or what is wrong with it.
func (o Options) withDefaults(a *address) (Options, error) {
	if err := o.checkScheme(a); err != nil {
		return o, err
	}
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
	for _, d := range []struct {
		name  string
		value *int
		def   int
		what  string
	}{
		{"MaxBatch", &o.MaxBatch, 4 << 20, "bytes"},
		{"MaxDatagram", &o.MaxDatagram, 65507, "bytes"},
		{"PackDatagram", &o.PackDatagram, 0, "bytes"},
		{"Retries", &o.Retries, 0, "retries"},
	} {
		if *d.value < 0 {
			return o, fmt.Errorf("Options.%s is %d: give %s, or 0 for the default %d", d.name, *d.value, d.what, d.def)
		}
		if *d.value == 0 {
			*d.value = d.def
		}
	}
	if o.PackDatagram > o.MaxDatagram {
		return o, fmt.Errorf("Options.PackDatagram is %d, more than Options.MaxDatagram %d", o.PackDatagram, o.MaxDatagram)
	}
	if o.OnError == nil {
		o.OnError = aside.ToStderr
	}
	if err := o.checkFormat(a); err != nil {
		return o, err
	}
	if err := o.checkCompression(a); err != nil {
		return o, err
	}
	if err := o.checkHeader(a); err != nil {
		return o, err
	}
	return o, o.checkTLS(a)
}

// checkScheme refuses what the scheme has no use for.
func (o *Options) checkScheme(a *address) error {
	for _, c := range []struct {
		name string
		set  bool
		use  bool
		only string
	}{
		{"RequestTimeout", o.RequestTimeout != 0, a.carrier == carryHTTP, "http and https"},
		{"MaxBatch", o.MaxBatch != 0, a.carrier == carryHTTP, "http and https"},
		{"Compression", o.Compression != "" && o.Compression != compressNone, a.carrier == carryHTTP, "http and https"},
		{"Compressor", o.Compressor != nil, a.carrier == carryHTTP, "http and https"},
		{"Token", o.Token != "", a.carrier == carryHTTP, "http and https"},
		{"AllowPlainToken", o.AllowPlainToken, a.carrier == carryHTTP, "http"},
		{"Header", len(o.Header) > 0, a.carrier == carryHTTP, "http and https"},
		{"ProxyFromEnvironment", o.ProxyFromEnvironment, a.carrier == carryHTTP, "http and https"},
		{"TLSConfig", o.TLSConfig != nil, a.tls, "https and tls"},
		{"WriteTimeout", o.WriteTimeout != 0, a.carrier != carryHTTP, "streams and datagrams"},
		{"MaxDatagram", o.MaxDatagram != 0, (a.carrier == carryDatagram || a.carrier == carryEither) && a.format != formatJournald, "datagrams (udp, unixgram)"},
		{"Syslog", o.Syslog != Syslog{}, a.format == formatSyslog, "syslog+tcp, syslog+tls, syslog+udp and syslog+unix"},
		{"Loki", o.Loki.Labels != nil || o.Loki.LevelLabel != "", a.format == formatLoki, "loki+http and loki+https"},
		{"Journald", o.Journald != Journald{}, a.format == formatJournald, "journald"},
		{"PackDatagram", o.PackDatagram != 0, a.carrier == carryDatagram && a.format == formatLines, "datagrams of lines (udp, unixgram)"},
	} {
		if c.set && !c.use {
			return fmt.Errorf("leave out Options.%s: it is for %s, the URL is %s", c.name, c.only, a.name)
		}
	}
	return nil
}

// checkFormat fills in what belongs to the format.
func (o *Options) checkFormat(a *address) (err error) {
	switch a.format {
	case formatSyslog:
		o.Syslog, err = o.Syslog.withDefaults(a)
	case formatLoki:
		o.Loki, err = o.Loki.withDefaults()
	case formatJournald:
		o.Journald, err = o.Journald.withDefaults()
	}
	return err
}

func (o *Options) checkCompression(a *address) error {
	if o.Compressor != nil {
		switch name := o.Compressor.Encoding(); {
		case o.Compression != "":
			return fmt.Errorf("Options.Compression is %q and Options.Compressor is set: give one of them", o.Compression)
		case !validHeaderName(name):
			return fmt.Errorf("Encoding of Options.Compressor is %q, which is no name of a content coding", name)
		}
		o.Compression = compressNone
		return nil
	}
	switch o.Compression {
	case "":
		o.Compression = compressGzip
		if a.loopback() {
			o.Compression = compressNone
		}
	case compressNone, compressGzip:
	default:
		return fmt.Errorf(`Options.Compression is %q: known are "" (by address), "none" and "gzip"; for others set Options.Compressor`, o.Compression)
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
	if c.MinVersion == 0 {
		c.MinVersion = tls.VersionTLS12
	}
	if c.MinVersion < tls.VersionTLS12 || c.MaxVersion != 0 && c.MaxVersion < tls.VersionTLS12 {
		return errors.New("Options.TLSConfig allows a version below TLS 1.2: raise MinVersion and MaxVersion, or leave them 0")
	}
	return nil
}
