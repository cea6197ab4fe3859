package relay

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"github.com/rollway/rollway/internal/openfiles"
	"github.com/rollway/rollway/internal/relaytune"
)

// Options configures a Relay. The zero value of each field is the recommended setting,
// except that To must be set.
type Options struct {
	// To lists the upstreams: tcp://host:port, tls://host:port or unix:///path.
	// A host with several addresses is several upstreams.
	To []string
	// Routes lists upstreams by the name that a TLS client asks for:
	// "logs.example.com", or "*.example.com" for one label below it. Other
	// connections go to To.
	Routes map[string][]string
	// Balance chooses the next upstream (default RoundRobin).
	Balance Balance
	// HealthInterval is the interval at which the relay connects to each upstream to
	// check it (default 0: never). In any case an upstream that cannot be connected to
	// is avoided for 1s at first, at most 30s.
	HealthInterval time.Duration
	// ResolveInterval is the interval of looking up names of upstreams
	// (default 30s).
	ResolveInterval time.Duration

	// ServerTLS is for tls listeners, which need a certificate here or in ServerFiles.
	// A version below TLS 1.2 is refused.
	ServerTLS *tls.Config
	// ServerFiles are certificates for clients, and authorities for theirs.
	ServerFiles TLSFiles
	// ClientTLS is for tls upstreams. By default their certificate has to be
	// for their host and signed by one of the system's roots.
	ClientTLS *tls.Config
	// ClientFiles are certificates for upstreams, and authorities for theirs.
	ClientFiles TLSFiles

	// TrustProxy lists the networks of trusted proxies. A connection from there has to
	// begin with a PROXY header of version 1 or 2, which names the client (default: none).
	TrustProxy []netip.Prefix
	// SendProxy is the version, 1 or 2, of the PROXY header for upstreams
	// (default 0: none).
	SendProxy int

	// MaxConns is the maximum number of open connections; others are reset (default: as
	// many as the process's limit on descriptors allows, at two for each connection and
	// each pipe; negative: no limit). New warns in Log if MaxConns exceeds that.
	MaxConns int
	// MaxConnsPerSource is the maximum for one client address, and with IPv6 for
	// one /64 (default 0: no limit).
	MaxConnsPerSource int

	// SocketMemory bounds, roughly, the bytes in the receive buffers of directions that
	// wait for their destination, so that many slow readers leave memory to the others
	// (default, on Linux: a sixteenth of the second value of tcp_mem; negative: no
	// limit). When there is little room, new connections, and directions that begin to
	// wait, get a part of the rest, at least 128 KiB.
	SocketMemory int64

	// DialTimeout bounds one attempt to connect to an upstream, its TLS
	// handshake included (default 5s).
	DialTimeout time.Duration
	// HandshakeTimeout bounds a client's PROXY header and TLS handshake
	// together (default 10s).
	HandshakeTimeout time.Duration
	// IdleTimeout ends a connection on which no byte has moved (default
	// 1h; negative: never).
	IdleTimeout time.Duration
	// StallTimeout resets a connection if one side has accepted nothing for that long
	// while bytes wait for it (default 5m; negative: never).
	//
	// On Linux a side accepts bytes when its system acknowledges them, and on a unix
	// socket when it reads them. On other Unix systems, without TLS, the relay's socket
	// counts. Elsewhere, and for a connection without a descriptor that is given to
	// Join, only a completed write of up to 64 KiB counts.
	StallTimeout time.Duration
	// DrainTimeout is how long Close, and Serve when its context ends, wait for
	// connections to end (default 30s; negative: not at all).
	DrainTimeout time.Duration

	// Log is for operators. A message that repeats is logged once a second
	// (default: no log).
	Log *slog.Logger
	// Access gets a record for each connection that has ended (default: none).
	//
	// The relay does not wait for the handlers of Log and Access. Each has a queue of
	// 16,384 records and a goroutine that calls it. Stats.Unlogged counts records that
	// found no room, that the handler did not take, or that were left at Shutdown.
	Access *slog.Logger

	noSplice    bool          // see relaytune
	bufferSize  int           // see relaytune
	maxPipes    int           // one for 300 descriptors, at most 128; without one, buffers copy
	grace       time.Duration // drainGrace; longer in tests
	coalesceFor time.Duration // coalesceFor; longer in tests
	logQueues   []*logQueue   // of Log and Access
}

// Balance is a way to choose among upstreams.
type Balance int

const (
	// RoundRobin chooses them in turn.
	RoundRobin Balance = iota
	// LeastConnections chooses the one with the fewest connections of this relay.
	LeastConnections
)

var bufferSizes = []int{4 << 10, 8 << 10, 16 << 10, 64 << 10}

// withDefaults fills in defaults and returns an error for each bad field.
func (o Options) withDefaults() (Options, error) {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	defaultTo(&o.ResolveInterval, 30*time.Second)
	defaultTo(&o.DialTimeout, 5*time.Second)
	defaultTo(&o.HandshakeTimeout, 10*time.Second)
	defaultTo(&o.IdleTimeout, time.Hour)
	defaultTo(&o.StallTimeout, 5*time.Minute)
	defaultTo(&o.DrainTimeout, 30*time.Second)
	defaultTo(&o.SocketMemory, defaultBudget())
	defaultTo(&o.grace, drainGrace)
	defaultTo(&o.coalesceFor, coalesceFor)
	defaultTo(&o.bufferSize, relaytune.BufferSize)
	o.noSplice = o.noSplice || relaytune.NoSplice
	check(len(o.To) > 0, "no upstream: To is empty")
	check(o.bufferSize == 0 || slices.Contains(bufferSizes, o.bufferSize), "the size of a buffer is %d: it must be 4, 8, 16 or 64 KiB", o.bufferSize)
	check(o.Balance == RoundRobin || o.Balance == LeastConnections, "unknown Balance %d", o.Balance)
	check(o.SendProxy >= 0 && o.SendProxy <= 2, "SendProxy is %d: it must be 0, 1 or 2", o.SendProxy)
	check(o.MaxConnsPerSource >= 0, "MaxConnsPerSource is negative")
	check(o.HealthInterval >= 0, "HealthInterval is negative")
	check(o.ResolveInterval > 0, "ResolveInterval is negative")
	check(o.DialTimeout > 0, "DialTimeout is negative")
	check(o.HandshakeTimeout > 0, "HandshakeTimeout is negative")
	for _, c := range []*tls.Config{o.ServerTLS, o.ClientTLS} {
		check(c == nil || c.MinVersion == 0 || c.MinVersion >= tls.VersionTLS12, "MinVersion is below TLS 1.2")
	}
	if o.ServerFiles.Authorities != "" && o.ServerTLS != nil {
		auth := o.ServerTLS.ClientAuth
		check((auth == tls.NoClientCert || auth >= tls.VerifyClientCertIfGiven) && o.ServerTLS.GetConfigForClient == nil,
			"ServerFiles.Authorities needs a ServerTLS whose ClientAuth verifies certificates and which has no GetConfigForClient")
	}
	for _, p := range o.TrustProxy {
		check(p.IsValid(), "TrustProxy has an invalid network")
	}
	for _, log := range []**slog.Logger{&o.Log, &o.Access} {
		if *log != nil {
			q := newLogQueue((*log).Handler())
			o.logQueues = append(o.logQueues, q)
			*log = slog.New(q)
		}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if len(errs) == 0 {
		o.fitDescriptors(openfiles.Limit())
	}
	return o, errors.Join(errs...)
}

func defaultTo[T comparable](field *T, value T) { *field = cmp.Or(*field, value) }
